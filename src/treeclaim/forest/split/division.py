# SPDX-License-Identifier: Apache-2.0
"""Divides an amount over a viable set of offers (contract page 97, section 2, `can_split`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.split.offers import Offer, Offers, is_viable, ranges_of, ranges_reach

_DIVISION_BYTES = 4_000_000
"""Bytes of divisions that are kept: a few thousand divisions over some providers each."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A division that is kept."""

    parts: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return 100 + 40 * len(self.parts)


_divisions = ByteCache(_DIVISION_BYTES, makes_read_only=False)
"""Divisions by policy, offers and amount."""


def pack(offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the vector of parts is the greatest possible."""
    some = _without_positions(offers)
    found = _divisions.get(("pack", some, amount), lambda: _Parts(_pack(some, amount, budget)))
    return found.parts


def even(offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the parts differ least; then as `pack` does."""
    some = _without_positions(offers)
    found = _divisions.get(("even", some, amount), lambda: _Parts(_even(some, amount, budget)))
    return found.parts


def _without_positions(offers: Sequence[Offer]) -> Offers:
    """Forget where the offers are: equal hardware is divided equally, and only once."""
    return tuple(replace(offer, position=0) for offer in offers)


def _pack(offers: Offers, amount: int, budget: Budget) -> tuple[int, ...]:
    parts = []
    for number, offer in enumerate(offers):
        rest = offers[number + 1 :]
        ranges = ranges_of(rest)
        part = next(
            part
            for part in _parts_of(offer, rest, amount)
            if ranges_reach(ranges, amount - part, budget)
        )
        parts.append(part)
        amount -= part
    return tuple(parts)


def _parts_of(offer: Offer, rest: Offers, amount: int) -> range:
    """Return the parts of an offer that may leave what the rest can give, the greatest first.

    What is left must be a multiple of the divisor of the other steps.
    """
    most = min(offer.most, amount - sum(other.least for other in rest))
    least = max(offer.least, amount - sum(other.most for other in rest))
    # Nothing but 0 is a multiple of "no step".
    divisor = gcd(*(other.step for other in rest)) or max(amount, 1)
    common = gcd(offer.step, divisor)
    stride = lcm(offer.step, divisor)
    times = amount // common * pow(offer.step // common, -1, divisor // common)
    part = offer.step * (times % (divisor // common))
    greatest = most - (most - part) % stride
    return range(greatest, least - 1, -stride)


def _even(offers: Offers, amount: int, budget: Budget) -> tuple[int, ...]:
    """Find the narrowest window in which there is a division.

    No division's greatest part is below `top`, and none's smallest is above `bottom`, as the parts
    of a window that ends or begins there show. From `bottom` downwards each number that the
    smallest part can be is tried as the lower end of a window: first whether a window as narrow as
    the narrowest so far is enough, and if so, how narrow it can be. A window that reaches lower
    never has to reach higher.
    """
    ceiling = max(offer.most for offer in offers)
    top = _first(ceiling, lambda share: _most_below(offers, share) >= amount)
    bottom = _first(ceiling, lambda share: _least_above(offers, share) > amount) - 1
    top = max(top, *(offer.least for offer in offers))
    bottom = min(bottom, *(offer.most for offer in offers))
    width = ceiling
    found: list[int] = []
    low = bottom
    while low > 0 and top - low <= width:
        budget.check()
        low = max(_at_most(offer, low) for offer in offers)
        if low <= 0 or top - low > width:
            break
        if _has_division(offers, low, low + width, amount, budget):
            widths = range(max(top - low, 0), width + 1)
            narrowest = _narrowest(offers, low, widths, amount, budget)
            if narrowest < width:
                width, found = narrowest, []
            found.append(low)
        low -= 1
    windows = [_within(offers, low, low + width) for low in found]
    return max(_pack(window, amount, budget) for window in windows if window)


def _at_most(offer: Offer, low: int) -> int:
    """Return the greatest part of an offer that is not above a level, 0 for none."""
    part = min(offer.most, low // offer.step * offer.step)
    return part if part >= offer.least else 0


def _narrowest(offers: Offers, low: int, widths: range, amount: int, budget: Budget) -> int:
    """Return the least of some widths whose window has a division; the greatest one has."""
    return widths.start + _first(
        len(widths) - 1,
        lambda index: _has_division(offers, low, low + widths[index], amount, budget),
    )


def _has_division(offers: Offers, bottom: int, top: int, amount: int, budget: Budget) -> bool:
    cut = _within(offers, bottom, top)
    return cut is not None and is_viable(cut, amount, budget)


def _first(ceiling: int, holds: Callable[[int], bool]) -> int:
    """Return the first number from 0 for which something holds, `ceiling + 1` if none does."""
    low, high = 0, ceiling + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _most_below(offers: Sequence[Offer], top: int) -> int:
    """Return what the offers give at most if they keep below a level as far as they can."""
    return sum(
        max(offer.least, min(offer.most, top // offer.step * offer.step)) for offer in offers
    )


def _least_above(offers: Sequence[Offer], bottom: int) -> int:
    """Return what the offers give at least if they keep above a level as far as they can."""
    return sum(
        min(offer.most, max(offer.least, -(-bottom // offer.step) * offer.step))
        for offer in offers
    )


def _within(offers: Sequence[Offer], bottom: int, top: int) -> Offers | None:
    """Return the offers cut to a window, None if one has no part there."""
    cut = []
    for offer in offers:
        part = Offer.of(
            offer.position, (max(offer.least, bottom), min(offer.most, top)), offer.step
        )
        if part is None:
            return None
        cut.append(part)
    return tuple(cut)
