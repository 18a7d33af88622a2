# SPDX-License-Identifier: Apache-2.0
"""Dividing an amount over several providers (contract page 97, section 2, `can_split`).

Plain arithmetic. A share is what one provider can give: the multiples of a step in a range. A set
of shares is viable if parts of theirs sum to the amount, and minimal if no proper subset is.

Almost always all steps are equal. Then everything that a set can give is a range too, and a set is
judged by two sums. Where steps differ, shares of equal step still add up to one range, so the
question is whether a few numbers, one of each range, sum to the amount.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from math import gcd


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

_REMEMBERED = 1024


def is_viable(shares: Sequence[Share], amount: int) -> bool:
    """Tell whether one part of each share sum to an amount; no shares give nothing."""
    ranges: dict[int, tuple[int, int]] = {}
    for one in shares:
        least, most = ranges.get(one.step, (0, 0))
        ranges[one.step] = least + one.least, most + one.most
    by_step = sorted(ranges.items(), reverse=True)
    return _reaches([(step, *bounds) for step, bounds in by_step], amount)


def _reaches(ranges: Sequence[tuple[int, int, int]], amount: int) -> bool:
    """Tell whether one number of each range (step, least, most) sum to an amount."""
    if not ranges:
        return amount == 0
    (step, least, most), *others = ranges
    if not others:
        return amount % step == 0 and least <= amount <= most
    low = max(least, amount - sum(one[2] for one in others))
    high = min(most, amount - sum(one[1] for one in others))
    first = -(-low // step) * step
    if len(others) == 1:
        # Only the remainder matters now, and it comes again after that many steps.
        high = min(high, first + step * others[0][0])
    return any(_reaches(others, amount - given) for given in range(first, high + 1, step))


def minimal_sets(
    shares: Sequence[Share], amount: int, check: Callable[[], None] = lambda: None
) -> Iterator[Shares]:
    """Yield the minimal viable sets, small ones first, lazily; each in the order of the shares.

    Args:
        shares: What there is.
        amount: What is to be divided.
        check: Called again and again meanwhile; it may raise to give up. Finding out that nothing
            sums to an amount can take forever.
    """
    if sum(one.most for one in shares) < amount or amount % gcd(*(one.step for one in shares)):
        return
    judge = _Uniform(amount) if len({one.step for one in shares}) == 1 else _Mixed(amount)
    for size in range(1, len(shares) + 1):
        finder = _Finder(shares, amount, size, judge, check)
        yield from finder.sets((), 0)
        if not finder.may_grow:
            return
        judge.close_size()


class _Uniform:
    """Judges sets of shares with the same step."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def is_settled(self, shares: Shares) -> bool:
        """Tell whether a set (no more than could be given by all) contains a viable one."""
        return sum(one.most for one in shares) >= self._amount

    def is_minimal(self, shares: Shares) -> bool:
        spare = sum(one.most for one in shares) - self._amount
        return is_viable(shares, self._amount) and spare < min(one.most for one in shares)

    def close_size(self) -> None:
        """Nothing to remember."""


class _Mixed:
    """Judges sets of shares with different steps; remembers what it found."""

    def __init__(self, amount: int) -> None:
        self._amount = amount
        self._smaller: list[frozenset[Share]] = []
        self._found: list[frozenset[Share]] = []

    def is_settled(self, shares: Shares) -> bool:
        members = frozenset(shares)
        return any(one <= members for one in self._smaller)

    def is_minimal(self, shares: Shares) -> bool:
        if self.is_settled(shares) or not is_viable(shares, self._amount):
            return False
        self._found.append(frozenset(shares))
        return True

    def close_size(self) -> None:
        """Let the sets found so far rule out bigger ones."""
        self._smaller += self._found
        self._found = []


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


def pack(shares: Sequence[Share], amount: int) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the vector of parts is the greatest there is."""
    return _pack(_placeless(shares), amount)


def even(shares: Sequence[Share], amount: int) -> tuple[int, ...]:
    """Divide an amount over a viable set so that the parts differ least; then as `pack` does."""
    return _even(_placeless(shares), amount)


def _placeless(shares: Sequence[Share]) -> Shares:
    """Forget where the shares are: equal hardware is divided equally, and only once."""
    return tuple(replace(one, place=0) for one in shares)


@lru_cache(_REMEMBERED)
def _pack(shares: Shares, amount: int) -> tuple[int, ...]:
    parts = []
    for number, one in enumerate(shares):
        rest = shares[number + 1 :]
        most = min(one.most, amount - sum(other.least for other in rest))
        part = next(
            part
            for part in range(most // one.step * one.step, 0, -one.step)
            if is_viable(rest, amount - part)
        )
        parts.append(part)
        amount -= part
    return tuple(parts)


@lru_cache(_REMEMBERED)
def _even(shares: Shares, amount: int) -> tuple[int, ...]:
    """Find the narrowest window in which there is a division.

    No division's greatest part is below `top`, and none's smallest is above `bottom`. So the
    parts lie in a window that holds both, and the narrowest window with a division is wanted. With
    equal steps it is the first one tried.
    """
    top = _first(max(one.most for one in shares), lambda it: _most_below(shares, it) >= amount)
    bottom = _first(max(one.most for one in shares), lambda it: _least_above(shares, it) > amount)
    top = max(top, *(one.least for one in shares))
    bottom = min(bottom - 1, *(one.most for one in shares))
    for width in count(max(top - bottom, 0)):
        windows = (_within(shares, low, low + width) for low in range(bottom, top - width - 1, -1))
        found = [_pack(one, amount) for one in windows if one and is_viable(one, amount)]
        if found:
            return max(found)
    raise AssertionError


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
    return sum(max(one.least, min(one.most, top // one.step * one.step)) for one in shares)


def _least_above(shares: Sequence[Share], bottom: int) -> int:
    """Return what the shares give at least if they keep above a level as far as they can."""
    return sum(min(one.most, max(one.least, -(-bottom // one.step) * one.step)) for one in shares)


def _within(shares: Sequence[Share], bottom: int, top: int) -> Shares | None:
    """Return the shares cut to a window, None if one has no part there."""
    cut = []
    for one in shares:
        part = Share.of(one.place, (max(one.least, bottom), min(one.most, top)), one.step)
        if part is None:
            return None
        cut.append(part)
    return tuple(cut)
