# SPDX-License-Identifier: Apache-2.0
"""The minimal viable sets of offers: those of which no proper subset can give the amount."""

from collections.abc import Iterator, Sequence

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.split.division import Offer, Offers, is_viable


def minimal_sets(
    offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED
) -> Iterator[Offers]:
    """Yield the minimal viable sets, small ones first, lazily; each in the order of the offers.

    Args:
        offers: What there is, all with the same step.
        amount: What is to be divided, a multiple of the step.
        budget: What the search may cost.
    """
    if sum(offer.most for offer in offers) < amount:
        return
    for size in range(1, len(offers) + 1):
        finder = _Finder(offers, amount, size, budget)
        yield from finder.sets((), 0)
        if not finder.may_grow:
            return


class _Finder:
    """Finds the minimal sets of one size.

    Attributes:
        may_grow: Whether a set was given up that could become viable by another member.
    """

    def __init__(self, offers: Sequence[Offer], amount: int, size: int, budget: Budget) -> None:
        self.may_grow = False
        self._offers = offers
        self._amount = amount
        self._size = size
        self._budget = budget
        places = range(len(offers) + 1)
        self._greatest = [sorted((o.most for o in offers[at:]), reverse=True) for at in places]
        self._smallest = [sorted(o.least for o in offers[at:]) for at in places]

    def sets(self, chosen: Offers, start: int) -> Iterator[Offers]:
        """Yield the sets that begin with some offers and go on from an index."""
        missing = self._size - len(chosen) - 1
        for at in range(start, len(self._offers) - missing):
            self._budget.check()
            members = (*chosen, self._offers[at])
            most = sum(offer.most for offer in members)
            least = sum(offer.least for offer in members)
            if most + sum(self._greatest[at + 1][:missing]) < self._amount:
                self.may_grow = True
            elif least + sum(self._smallest[at + 1][:missing]) > self._amount:
                continue
            elif missing:
                # A set that gives the amount already has no further member.
                if most < self._amount:
                    yield from self.sets(members, at + 1)
            elif self._is_minimal(members, most):
                yield members
            elif most < self._amount:
                self.may_grow = True

    def _is_minimal(self, members: Offers, most: int) -> bool:
        """Return whether a set is viable, and none of its members can be left out."""
        spare = most - self._amount
        return is_viable(members, self._amount) and spare < min(offer.most for offer in members)
