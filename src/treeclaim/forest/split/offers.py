# SPDX-License-Identifier: Apache-2.0
"""What some providers can give together of an amount (contract page 97, section 2, `can_split`).

Plain arithmetic. An offer is what one provider can give: the multiples of a step in a range. A set
of offers is viable if parts of theirs sum to the amount, and minimal if no proper subset is.

Almost always all steps are equal. Then everything that a set can give is a range too, and a set is
judged by two sums. Where steps differ, offers of equal step still add up to one range, so the
question is whether one number of each of a few ranges sum to the amount. With the least of each taken
off, that is whether `step_1 * n_1 + ... + step_k * n_k = rest` with `0 <= n_i <= most_i`: a bounded linear
Diophantine equation. In general that is the subset sum problem, but:

- Only multiples of the greatest common divisor of all steps can be reached.
- With two steps the numbers are known modulo the steps, by an inverse (extended Euclid).
- Where one step can give all of the rest, only its remainder matters: the least sum of the others
  that leaves no remainder is found by dynamic programming over the remainders (Boecker and Liptak,
  "The money changing problem revisited", 2007), here with bounds, by the minimum of a window that
  slides around each cycle of remainders.
- Where the rest is small, all sums that there are fit into the bits of a number.
- What is left is tried, the step with fewest multiples first. Only there can it take long.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.budget import UNBOUNDED, Budget

Term = tuple[int, int]
"""A step and how many times it may be taken at most."""

_UNREACHED = 2**61
"""More than any sum. The product of two steps is less too, as they have 31 bits."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one provider can give.

    Attributes:
        position: The provider.
        least, most: Units, both multiples of the step, `0 < least <= most`.
        step: Units.
    """

    position: int
    least: int
    most: int
    step: int

    @classmethod
    def of(cls, position: int, bounds: tuple[int, int], step: int) -> "Offer | None":
        """Return the offer with the multiples of a step within some bounds, None if empty."""
        least, most = -(-max(bounds[0], 1) // step) * step, bounds[1] // step * step
        return cls(position, least, most, step) if least <= most else None


Offers = tuple[Offer, ...]


def is_viable(offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED) -> bool:
    """Tell whether one part of each offer sum to an amount; no offers give nothing."""
    return ranges_reach(ranges_of(offers), amount, budget)


Ranges = tuple[tuple[int, int, int], ...]
"""What the offers of each step give together: step, least and most."""


def ranges_of(offers: Sequence[Offer]) -> Ranges:
    """Return what some offers give together, by step."""
    ranges: dict[int, tuple[int, int]] = {}
    for offer in offers:
        least, most = ranges.get(offer.step, (0, 0))
        ranges[offer.step] = least + offer.least, most + offer.most
    return tuple(sorted((step, *bounds) for step, bounds in ranges.items()))


def ranges_reach(ranges: Ranges, amount: int, budget: Budget) -> bool:
    """Tell whether one number of each of some ranges sum to an amount."""
    terms = [(step, (most - least) // step) for step, least, most in ranges]
    return reaches(terms, amount - sum(least for _, least, _ in ranges), budget.check)


def reaches(terms: Sequence[Term], rest: int, check: Callable[[], None]) -> bool:
    """Tell whether multiples of steps within their bounds sum to a rest.

    Args:
        terms: Each step once.
        rest: What they shall sum to.
        check: Called again and again; may raise to give up.
    """
    check()
    whole = sum(step * times for step, times in terms)
    # What is not taken sums to what is left of the whole: the smaller question is the easier one.
    rest = min(rest, whole - rest)
    if rest <= 0:
        return rest == 0
    terms = [(step, min(times, rest // step)) for step, times in terms if step <= rest and times]
    divisor = gcd(*(step for step, _ in terms)) if terms else 0
    if not divisor or rest % divisor:
        return False
    rest //= divisor
    return _reaches_without_divisor(
        sorted((step // divisor, times) for step, times in terms), rest, check
    )


def _reaches_without_divisor(terms: list[Term], rest: int, check: Callable[[], None]) -> bool:
    if sum(step * times for step, times in terms) < rest:
        return False
    if not terms[2:]:
        # A single step is the divisor, so it is 1.
        return not terms[1:] or _two_reach(terms[0], terms[1], rest)
    *few, _, _ = sorted(times for _, times in terms)
    if prod(times + 1 for times in few) <= thresholds.FEW_TRIES:
        return _tried(terms, rest, check)
    for number, (step, times) in enumerate(terms):
        if times >= rest // step and step <= thresholds.MOST_REMAINDERS:
            others = [*terms[:number], *terms[number + 1 :]]
            return bool(_least_sums(others, step, check)[rest % step] <= rest)
    if rest <= thresholds.MOST_SUM_BITS:
        return _sum_in_bits(terms, rest, check)
    return _tried(terms, rest, check)


def _tried(terms: list[Term], rest: int, check: Callable[[], None]) -> bool:
    """Try how many times the step with fewest multiples is taken."""
    rarest = min(range(len(terms)), key=lambda number: terms[number][1])
    step, times = terms[rarest]
    others = [*terms[:rarest], *terms[rarest + 1 :]]
    most_of_others = sum(step * count for step, count in others)
    fewest = max(0, -(-(rest - most_of_others) // step))
    tries = range(fewest, min(times, rest // step) + 1)
    if not others[2:] and rest + most_of_others < _UNREACHED:
        return any(
            _two_reach_some(
                others, rest - step * _numbers(tries[at : at + thresholds.TRIES_TOGETHER]), check
            )
            for at in range(0, len(tries), thresholds.TRIES_TOGETHER)
        )
    return any(reaches(others, rest - step * taken, check) for taken in tries)


def _numbers(some: range) -> npt.NDArray[np.int64]:
    return np.arange(some.start, some.stop, dtype=np.int64)


def _two_reach_some(
    terms: Sequence[Term], rests: npt.NDArray[np.int64], check: Callable[[], None]
) -> bool:
    """Tell whether two terms sum to any of some rests; see `_two_reach`."""
    check()
    divisor = gcd(terms[0][0], terms[1][0])
    (step, times), (modulus, most) = ((step // divisor, count) for step, count in terms)
    rests = rests[rests % divisor == 0] // divisor
    first = rests % modulus * pow(step, -1, modulus) % modulus
    fewest = np.maximum(-(-(rests - modulus * most) // step), 0)
    taken = first + -(-np.maximum(fewest - first, 0) // modulus) * modulus
    return bool((taken <= np.minimum(times, rests // step)).any())


def _two_reach(smaller: Term, other: Term, rest: int) -> bool:
    """Tell the same for two coprime steps."""
    (step, times), (modulus, most) = smaller, other
    first = rest * pow(step, -1, modulus) % modulus
    # Enough must be taken of the first step for the second one to give what is left.
    fewest = max(0, -(-(rest - modulus * most) // step))
    taken = first + -(-max(fewest - first, 0) // modulus) * modulus
    return taken <= min(times, rest // step)


def _least_sums(
    terms: Sequence[Term], modulus: int, check: Callable[[], None]
) -> npt.NDArray[np.int64]:
    """Return the least sum of some terms by its remainder, int64, shape (modulus,)."""
    least = np.full(modulus, _UNREACHED, dtype=np.int64)
    least[0] = 0
    for step, times in terms:
        check()
        cycles = gcd(step, modulus)
        length = modulus // cycles
        # Row c holds the remainders c, c + step, c + 2 step, ... in this order.
        around = np.arange(length, dtype=np.int64) * (step % modulus) % modulus
        at = (around[None, :] + np.arange(cycles)[:, None]) % modulus
        cost = np.arange(length, dtype=np.int64) * step
        wide = np.concatenate([least[at], least[at]], axis=1)
        wide -= np.concatenate([cost, cost + length * step])
        best = _window_minimum(wide, min(times, length - 1) + 1)[:, length:]
        least[at] = np.minimum(best + cost + length * step, _UNREACHED)
    return least


def _window_minimum(numbers: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int64]:
    """Return the minimum of each number and the `width - 1` before it, by doubling the window."""
    done = 1
    minimum = numbers.copy()
    while done < width:
        shift = min(done, width - done)
        np.minimum(minimum[:, shift:], minimum[:, :-shift].copy(), out=minimum[:, shift:])
        done += shift
    return minimum


def _sum_in_bits(terms: Sequence[Term], rest: int, check: Callable[[], None]) -> bool:
    """Write all sums up to the rest as bits, and look at the last one."""
    mask = (1 << (rest + 1)) - 1
    sums = 1
    for step, times in terms:
        left, part = times, 1
        # Parts of 1, 2, 4, ... times and what is left make every number of times.
        while left:
            check()
            part = min(part, left)
            sums |= (sums << (step * part)) & mask
            left -= part
            part *= 2
    return bool(sums >> rest & 1)
