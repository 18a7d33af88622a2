# SPDX-License-Identifier: Apache-2.0
"""The minimal viable sets of offers: those of which no proper subset can give the amount."""

from collections.abc import Callable, Iterator, Sequence
from math import gcd

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.split.offers import Offer, Offers, Ranges, is_viable, ranges_of, ranges_reach

_VERDICT_BYTES = 8_000_000
"""Bytes of verdicts on sets that are kept while minimal sets are looked for: some ten thousand verdicts."""

_SET_BYTES = 100
"""Bytes that are counted for a set that was found."""


def minimal_sets(
    offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED
) -> Iterator[Offers]:
    """Yield the minimal viable sets, small ones first, lazily; each in the order of the offers.

    Where steps differ, all of them: what is minimal then depends on what was found.

    Args:
        offers: What there is.
        amount: What is to be divided.
        budget: What the question may cost. Finding out that nothing sums to an amount can take
            forever.
    """
    if sum(offer.most for offer in offers) < amount or amount % gcd(
        *(offer.step for offer in offers)
    ):
        return
    is_uniform = len({offer.step for offer in offers}) == 1
    judge = _Uniform(amount) if is_uniform else _Mixed(offers, amount, budget)
    try:
        for size in range(1, len(offers) + 1):
            finder = _Finder(offers, amount, size, judge, budget.check)
            yield from finder.sets((), 0)
            if not finder.may_grow:
                return
            judge.close_size()
    finally:
        judge.close()


class _Uniform:
    """Judges sets of offers with the same step."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def is_settled(self, offers: Offers) -> bool:
        """Tell whether a set (no more than could be given by all) contains a viable one."""
        return sum(offer.most for offer in offers) >= self._amount

    def is_minimal(self, offers: Offers) -> bool:
        """Tell whether a set is viable, and none of its members can be left out."""
        spare = sum(offer.most for offer in offers) - self._amount
        return is_viable(offers, self._amount) and spare < min(offer.most for offer in offers)

    def close_size(self) -> None:
        """Nothing to remember."""

    def close(self) -> None:
        """Nothing to forget."""


class _Mixed:
    """Judges sets of offers with different steps; remembers what it found, as sets of bits."""

    def __init__(self, offers: Sequence[Offer], amount: int, budget: Budget) -> None:
        self._amount = amount
        self._budget = budget
        self._bit = {offer: 1 << number for number, offer in enumerate(offers)}
        self._smaller: list[int] = []
        self._found: list[int] = []
        self._verdicts = ByteCache(_VERDICT_BYTES)

    def is_settled(self, offers: Offers) -> bool:
        """Tell whether a set contains a viable one of those found with fewer members."""
        self._budget.check()
        members = self._bits(offers)
        return any(smaller & members == smaller for smaller in self._smaller)

    def is_minimal(self, offers: Offers) -> bool:
        """Tell whether a set is viable, and contains no other viable one; remember it then."""
        if self.is_settled(offers) or not self._is_viable(ranges_of(offers)):
            return False
        self._budget.hold(_SET_BYTES)
        self._found.append(self._bits(offers))
        return True

    def _bits(self, offers: Offers) -> int:
        return sum(self._bit[offer] for offer in offers)

    def _is_viable(self, ranges: Ranges) -> bool:
        """Judge equal hardware once."""
        return bool(
            self._verdicts.get(
                ranges, lambda: np.bool_(ranges_reach(ranges, self._amount, self._budget))
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
        offers: Sequence[Offer],
        amount: int,
        size: int,
        judge: _Uniform | _Mixed,
        check: Callable[[], None],
    ) -> None:
        self.may_grow = False
        self._offers = offers
        self._amount = amount
        self._size = size
        self._judge = judge
        self._check = check
        self._greatest = [
            sorted((o.most for o in offers[at:]), reverse=True) for at in _range(offers)
        ]
        self._smallest = [sorted(o.least for o in offers[at:]) for at in _range(offers)]

    def sets(self, chosen: Offers, start: int) -> Iterator[Offers]:
        """Yield the sets that begin with some offers and go on from an index."""
        missing = self._size - len(chosen) - 1
        for at in range(start, len(self._offers) - missing):
            self._check()
            members = (*chosen, self._offers[at])
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


def _range(offers: Sequence[Offer]) -> range:
    return range(len(offers) + 1)
