# SPDX-License-Identifier: Apache-2.0
"""Dividing an amount over several providers (contract page 97, section 2, `can_split`).

Plain arithmetic. A share is what one provider can give: the multiples of a step in a range. A set
of shares is viable if parts of theirs sum to the amount, and minimal if no proper subset is.

Almost always all steps are equal. Then everything that a set can give is a range too, and a set is
judged by two sums. Where steps differ, shares of equal step still add up to one range, so the
question is whether a few numbers, one of each range, sum to the amount; `sums` answers it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.split.sums import reaches


@dataclass(frozen=True, slots=True)
class Share:
    """What one provider can give.

    Attributes:
        place: The provider.
        least, most: Units, both multiples of the step, `0 < least <= most`.
        step: Units.
    """

    place: int
    least: int
    most: int
    step: int

    @classmethod
    def of(cls, place: int, bounds: tuple[int, int], step: int) -> "Share | None":
        """Return the share with the multiples of a step within some bounds, None if empty."""
        least, most = -(-max(bounds[0], 1) // step) * step, bounds[1] // step * step
        return cls(place, least, most, step) if least <= most else None


Shares = tuple[Share, ...]

_DIVISION_BYTES = 4_000_000
"""Of divisions: a few thousand of some providers each."""

_VERDICT_BYTES = 8_000_000
"""Of verdicts on sets while minimal sets are looked for: some ten thousand."""

_SET_BYTES = 100
"""Memory that is counted for a set that was found."""


def is_viable(shares: Sequence[Share], amount: int, budget: Budget = UNBOUNDED) -> bool:
    """Tell whether one part of each share sum to an amount; no shares give nothing."""
    return _is_viable(_ranges(shares), amount, budget)


_Ranges = tuple[tuple[int, int, int], ...]
"""What the shares of each step give together: step, least and most."""


def _ranges(shares: Sequence[Share]) -> _Ranges:
    ranges: dict[int, tuple[int, int]] = {}
    for share in shares:
        least, most = ranges.get(share.step, (0, 0))
        ranges[share.step] = least + share.least, most + share.most
    return tuple(sorted((step, *bounds) for step, bounds in ranges.items()))


def _is_viable(ranges: _Ranges, amount: int, budget: Budget) -> bool:
    terms = [(step, (most - least) // step) for step, least, most in ranges]
    return reaches(terms, amount - sum(least for _, least, _ in ranges), budget.check)


def minimal_sets(
    shares: Sequence[Share], amount: int, budget: Budget = UNBOUNDED
) -> Iterator[Shares]:
    """Yield the minimal viable sets, small ones first, lazily; each in the order of the shares.

    Args:
        shares: What there is.
        amount: What is to be divided.
        budget: What the question may cost. Finding out that nothing sums to an amount can take
            forever.
    """
    if sum(share.most for share in shares) < amount or amount % gcd(
        *(share.step for share in shares)
    ):
        return
    is_uniform = len({share.step for share in shares}) == 1
    judge = _Uniform(amount) if is_uniform else _Mixed(shares, amount, budget)
    try:
        for size in range(1, len(shares) + 1):
            finder = _Finder(shares, amount, size, judge, budget.check)
            yield from finder.sets((), 0)
            if not finder.may_grow:
                return
            judge.close_size()
    finally:
        judge.close()


class _Uniform:
    """Judges sets of shares with the same step."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def is_settled(self, shares: Shares) -> bool:
        """Tell whether a set (no more than could be given by all) contains a viable one."""
        return sum(share.most for share in shares) >= self._amount

    def is_minimal(self, shares: Shares) -> bool:
        spare = sum(share.most for share in shares) - self._amount
        return is_viable(shares, self._amount) and spare < min(share.most for share in shares)

    def close_size(self) -> None:
        """Nothing to remember."""

    def close(self) -> None:
        """Nothing to forget."""


class _Mixed:
    """Judges sets of shares with different steps; remembers what it found, as sets of bits."""

    def __init__(self, shares: Sequence[Share], amount: int, budget: Budget) -> None:
        self._amount = amount
        self._budget = budget
        self._bit = {share: 1 << number for number, share in enumerate(shares)}
        self._smaller: list[int] = []
        self._found: list[int] = []
        self._verdicts = ByteCache(_VERDICT_BYTES)

    def is_settled(self, shares: Shares) -> bool:
        self._budget.check()
        members = self._bits(shares)
        return any(smaller & members == smaller for smaller in self._smaller)

    def is_minimal(self, shares: Shares) -> bool:
        if self.is_settled(shares) or not self._is_viable(_ranges(shares)):
            return False
        self._budget.hold(_SET_BYTES)
        self._found.append(self._bits(shares))
        return True

    def _bits(self, shares: Shares) -> int:
        return sum(self._bit[share] for share in shares)

    def _is_viable(self, ranges: _Ranges) -> bool:
        """Judge equal hardware once."""
        return bool(
            self._verdicts.get(
                ranges, lambda: np.bool_(_is_viable(ranges, self._amount, self._budget))
            )
        )

    def close_size(self) -> None:
        """Let the sets found so far rule out bigger ones."""
        self._smaller += self._found
        self._found = []

    def close(self) -> None:
        """Give back the memory counted."""
        self._budget.hold(-_SET_BYTES * (len(self._smaller) + len(self._found)))


class _Finder:
    """Finds the minimal sets of one size.

    Attributes:
        may_grow: True when a set was given up that could become viable by another member.
    """

    def __init__(
        self,
        shares: Sequence[Share],
        amount: int,
        size: int,
        judge: _Uniform | _Mixed,
        check: Callable[[], None],
    ) -> None:
        self.may_grow = False
        self._shares = shares
        self._amount = amount
        self._size = size
        self._judge = judge
        self._check = check
        self._greatest = [
            sorted((o.most for o in shares[at:]), reverse=True) for at in _range(shares)
        ]
        self._smallest = [sorted(o.least for o in shares[at:]) for at in _range(shares)]

    def sets(self, chosen: Shares, start: int) -> Iterator[Shares]:
        """Yield the sets that begin with some shares and go on from an index."""
        missing = self._size - len(chosen) - 1
        for at in range(start, len(self._shares) - missing):
            self._check()
            members = (*chosen, self._shares[at])
            if sum(o.most for o in members) + sum(self._greatest[at + 1][:missing]) < self._amount:
                self.may_grow = True
                continue
            if (
                sum(o.least for o in members) + sum(self._smallest[at + 1][:missing])
                > self._amount
            ):
                continue
            if missing:
                if not self._judge.is_settled(members):
                    yield from self.sets(members, at + 1)
            elif self._judge.is_minimal(members):
                yield members
            elif not self._judge.is_settled(members):
                self.may_grow = True


def _range(shares: Sequence[Share]) -> range:
    return range(len(shares) + 1)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A division that is kept."""

    parts: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return 100 + 40 * len(self.parts)


_divisions = ByteCache(_DIVISION_BYTES)
"""Divisions by policy, shares and amount."""


def pack(shares: Sequence[Share], amount: int, budget: Budget = UNBOUNDED) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the vector of parts is the greatest there is."""
    some = _placeless(shares)
    found = _divisions.get(("pack", some, amount), lambda: _Parts(_pack(some, amount, budget)))
    return found.parts


def even(shares: Sequence[Share], amount: int, budget: Budget = UNBOUNDED) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the parts differ least; then as `pack` does."""
    some = _placeless(shares)
    found = _divisions.get(("even", some, amount), lambda: _Parts(_even(some, amount, budget)))
    return found.parts


def _placeless(shares: Sequence[Share]) -> Shares:
    """Forget where the shares are: equal hardware is divided equally, and only once."""
    return tuple(replace(share, place=0) for share in shares)


def _pack(shares: Shares, amount: int, budget: Budget) -> tuple[int, ...]:
    parts = []
    for number, share in enumerate(shares):
        rest = shares[number + 1 :]
        ranges = _ranges(rest)
        part = next(
            part
            for part in _parts_of(share, rest, amount)
            if _is_viable(ranges, amount - part, budget)
        )
        parts.append(part)
        amount -= part
    return tuple(parts)


def _parts_of(share: Share, rest: Shares, amount: int) -> range:
    """Return the parts of a share that may leave what the rest can give, the greatest first.

    What is left must be a multiple of the divisor of the other steps.
    """
    most = min(share.most, amount - sum(other.least for other in rest))
    least = max(share.least, amount - sum(other.most for other in rest))
    # Nothing but 0 is a multiple of "no step".
    divisor = gcd(*(other.step for other in rest)) or max(amount, 1)
    common = gcd(share.step, divisor)
    stride = lcm(share.step, divisor)
    times = amount // common * pow(share.step // common, -1, divisor // common)
    part = share.step * (times % (divisor // common))
    greatest = most - (most - part) % stride
    return range(greatest, least - 1, -stride)


def _even(shares: Shares, amount: int, budget: Budget) -> tuple[int, ...]:
    """Find the narrowest window in which there is a division.

    No division's greatest part is below `top`, and none's smallest is above `bottom`, as the parts
    of a window that ends or begins there show. From `bottom` downwards each number that the
    smallest part can be is tried as the lower end of a window: first whether a window as narrow as
    the narrowest so far is enough, and if so, how narrow it can be. A window that reaches lower
    never has to reach higher.
    """
    ceiling = max(share.most for share in shares)
    top = _first(ceiling, lambda it: _most_below(shares, it) >= amount)
    bottom = _first(ceiling, lambda it: _least_above(shares, it) > amount) - 1
    top = max(top, *(share.least for share in shares))
    bottom = min(bottom, *(share.most for share in shares))
    width = ceiling
    found: list[int] = []
    low = bottom
    while low > 0 and top - low <= width:
        budget.check()
        low = max(_at_most(share, low) for share in shares)
        if low <= 0 or top - low > width:
            break
        if _has_division(shares, low, low + width, amount, budget):
            widths = range(max(top - low, 0), width + 1)
            narrowest = _narrowest(shares, low, widths, amount, budget)
            if narrowest < width:
                width, found = narrowest, []
            found.append(low)
        low -= 1
    windows = [_within(shares, low, low + width) for low in found]
    return max(_pack(window, amount, budget) for window in windows if window)


def _at_most(share: Share, low: int) -> int:
    """Return the greatest part of a share that is not above a level, 0 for none."""
    part = min(share.most, low // share.step * share.step)
    return part if part >= share.least else 0


def _narrowest(shares: Shares, low: int, widths: range, amount: int, budget: Budget) -> int:
    """Return the least of some widths whose window has a division; the greatest one has."""
    return widths.start + _first(
        len(widths) - 1,
        lambda it: _has_division(shares, low, low + widths[it], amount, budget),
    )


def _has_division(shares: Shares, bottom: int, top: int, amount: int, budget: Budget) -> bool:
    cut = _within(shares, bottom, top)
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


def _most_below(shares: Sequence[Share], top: int) -> int:
    """Return what the shares give at most if they keep below a level as far as they can."""
    return sum(
        max(share.least, min(share.most, top // share.step * share.step)) for share in shares
    )


def _least_above(shares: Sequence[Share], bottom: int) -> int:
    """Return what the shares give at least if they keep above a level as far as they can."""
    return sum(
        min(share.most, max(share.least, -(-bottom // share.step) * share.step))
        for share in shares
    )


def _within(shares: Sequence[Share], bottom: int, top: int) -> Shares | None:
    """Return the shares cut to a window, None if one has no part there."""
    cut = []
    for share in shares:
        part = Share.of(share.place, (max(share.least, bottom), min(share.most, top)), share.step)
        if part is None:
            return None
        cut.append(part)
    return tuple(cut)
