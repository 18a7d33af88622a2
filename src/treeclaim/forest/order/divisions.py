# SPDX-License-Identifier: Apache-2.0
"""The first divisions of a combination, without drawing those that cannot be among them.

Which providers give how much of a divided class is found by a depth-first search for minimal sets
(`split/minimal_sets.py`), in the usual order. Where there are many, the score of a branch is bounded
from above before it is entered: terms of whole trees are the same for all divisions in one tree; those
of providers are at most what the amount comes to at the best rates, each provider up to what it offers.
A branch is left out if it cannot come before as many as are wanted. Of those that were found in the
usual order, equal ones do too, as who comes later is later; a few sets of the best rates, which are
divided first, have to be better.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.split_scores import OPPOSITE, GroupAllocation, SplitScores
from treeclaim.forest.split.candidate import SplitCandidate
from treeclaim.forest.split.division import SplitClass
from treeclaim.forest.split.minimal_sets import minimal_sets
from treeclaim.forest.split.offers import Offers
from treeclaim.forest.split.splitting import Splitter
from treeclaim.model.extension.order import DECIMALS, Order, Term, TermName
from treeclaim.model.request import NO_GROUP

_ROUNDING = 10.0 ** -(DECIMALS + 2)
"""By how much a sum of floats may be off; less than what a score is rounded to."""

_OF_TREES = {TermName.PACK, TermName.SPREAD, TermName.SHUFFLE}
_OF_SLOTS = {TermName.PACK_PROVIDERS, TermName.SPREAD_PROVIDERS}
_OF_SUFFIXED = {TermName.MOST, TermName.LEAST}


class FirstDivisions:
    """Divides combinations, and scores what it finds."""

    def __init__(
        self, splitter: Splitter, scores: SplitScores, order: Order, most: int | None
    ) -> None:
        """Take a search.

        Args:
            splitter: Divides.
            scores: Scores.
            order: What the candidates are ordered by.
            most: How many of a combination are enough; None for all.
        """
        self.splitter = splitter
        self.scores = scores
        self.order = order
        self._most = most

    def divided(
        self, anchor: int, chosen: tuple[int, ...]
    ) -> Iterator[tuple[SplitCandidate, float]]:
        """Yield divisions with their scores, in the usual order; the first ones are among them."""
        split = self.splitter.only_class
        if split is None or not self._most:
            for candidate in self.splitter.of_combination(anchor, chosen):
                yield candidate, self.scores.score(candidate)
            return
        interest = _Interest(self, anchor, chosen, split, self._most)
        for candidate in self.splitter.of_combination(anchor, chosen, interest.keeps):
            score = self.scores.score(candidate)
            interest.note(candidate, score)
            yield candidate, score


class _Interest:
    """Tells which sets of offers may be among the first divisions of a combination."""

    def __init__(
        self,
        divisions: FirstDivisions,
        anchor: int,
        chosen: tuple[int, ...],
        split: SplitClass,
        most: int,
    ) -> None:
        self._divisions = divisions
        self._place = anchor, chosen
        self._split = split
        self._most = most
        self._count = 0
        self._best: list[float] = []
        self._ceilings: Ceilings | None = None
        self._dived = -np.inf
        self._in_vain = 0

    def note(self, candidate: SplitCandidate, score: float) -> None:
        """Note what was found; where there are many, begin to judge the others."""
        self._count += 1
        heapq.heappush(self._best, score)
        if len(self._best) > self._most:
            heapq.heappop(self._best)
        if self._count == thresholds.FEW_DIVISIONS:
            anchor, chosen = self._place
            splitter = self._divisions.splitter
            offers = self._split.offers(anchor, splitter.taken(self._split.name, chosen))
            ceilings = Ceilings(
                self._divisions.scores, self._divisions.order, self._split, offers, candidate
            )
            self._dived = self._dive(offers, ceilings)
            self._ceilings = ceilings

    def keeps(self, members: Offers, start: int, size: int) -> bool:
        """Tell whether sets are of interest that begin with some offers and go on from an index."""
        if self._ceilings is None:
            return True
        ceiling = self._ceilings.ceiling(members, start, size)
        is_late = len(self._best) == self._most and ceiling <= self._best[0]
        if is_late or ceiling < self._dived:
            self._in_vain = 0
            return False
        self._in_vain += 1
        if self._in_vain > thresholds.JUDGED_IN_VAIN:
            self._ceilings = None
        return True

    def _dive(self, offers: Offers, ceilings: "Ceilings") -> float:
        """Return the least score of as many divisions as are wanted, those of the best rates first."""
        usual = {offer: at for at, offer in enumerate(offers)}
        scores = []
        sets = minimal_sets(ceilings.best_first(), self._split.amount, ceilings.budget)
        for members in islice(sets, self._most):
            in_order = tuple(sorted(members, key=usual.__getitem__))
            candidate = self._divisions.splitter.divided_by(*self._place, in_order)
            if candidate is not None:
                scores.append(self._divisions.scores.score(candidate))
        return min(scores) if len(scores) == self._most else -np.inf


@dataclass(frozen=True, slots=True)
class _Slots:
    """What is known of a term of slots before the class is divided.

    Attributes:
        weight: The weight of the term.
        is_opposite: Whether it is one less the mean of the shares in use.
        rest: The sum of the shares of slots of other classes.
        others: How many other slots there are of the divided class, of which nothing is known.
        count: How many slots there are.
    """

    weight: float
    is_opposite: bool
    rest: float
    others: int
    count: int

    def ceiling(self, share: float) -> float:
        """Return what the term is worth at most, given the least or greatest share of the parts."""
        if self.is_opposite:
            return 1 - (self.rest + share) / self.count
        return (self.rest + self.others + share) / self.count


class Ceilings:
    """What the divisions of a combination score at most.

    Attributes:
        budget: The budget of the search.
    """

    def __init__(
        self,
        scores: SplitScores,
        order: Order,
        split: SplitClass,
        offers: Offers,
        some: SplitCandidate,
    ) -> None:
        """Take any division, some terms of which are those of all.

        Args:
            scores: Scores.
            order: What the candidates are ordered by.
            split: The class that is divided.
            offers: What each provider can give.
            some: The division.
        """
        self.budget = scores.budget
        self._offers = offers
        self._index = {offer: at for at, offer in enumerate(offers)}
        self._most = [offer.most for offer in offers]
        self._amount = split.amount
        self._weight = sum(term.weight for term in order.terms)
        self._least_by_size: dict[int, Sequence[int]] = {}
        totals = scores.totals_of(split.name)
        positions = [offer.position for offer in offers]
        allocations, served = scores.allocations(some), scores.served(some)
        taken = dict.fromkeys(positions, 0)
        for allocation in allocations[: -len(some.parts)]:
            if allocation.name == split.name and allocation.position in taken:
                taken[allocation.position] += allocation.amount
        self._used = [float(totals.used[at]) + taken[at] for at in positions]
        self._capacity = [float(totals.capacity[at]) for at in positions]
        self._slots: list[_Slots] = []
        self._sum = 0.0
        is_flat = scores.are_in_one_tree(positions)
        for term in order.terms:
            if term.name in _OF_SLOTS and (not term.arguments or split.name in term.arguments):
                self._slots.append(_slots(scores, term, split, allocations))
            elif _is_constant(term, order, is_flat=is_flat):
                self._sum += term.weight * scores.value(term, allocations, served)
            else:
                self._sum += term.weight

    def ceiling(self, members: Offers, start: int, size: int) -> float:
        """Return a ceiling of the sets of a size that begin with some offers and go on from an index."""
        least = self._least_at(size)
        chosen = {self._index[offer] for offer in members}
        left = self._amount - sum(least[at] for at in chosen)
        if left < 0:
            return -np.inf
        total = self._sum
        for slots in self._slots:
            amounts = least if slots.is_opposite else self._most
            worth, room = 0.0, []
            for at, most in enumerate(self._most):
                if at in chosen or at >= start:
                    given = least[at] if at in chosen else 0
                    share = self._share(at, amounts[at])
                    worth += given * share
                    room.append((share, most - given))
            room.sort(reverse=not slots.is_opposite)
            worth += _filled(room, left)
            total += slots.weight * slots.ceiling(worth / self._amount)
        return float(np.round(total / self._weight + _ROUNDING, DECIMALS))

    def best_first(self) -> Offers:
        """Return the offers, those of the best rates first."""
        weight = sum(-slots.weight if slots.is_opposite else slots.weight for slots in self._slots)
        rates = [weight * self._share(at, offer.most) for at, offer in enumerate(self._offers)]
        order = sorted(range(len(rates)), key=lambda at: -rates[at])
        return tuple(self._offers[at] for at in order)

    def _least_at(self, size: int) -> Sequence[int]:
        """Return what each offer gives at least in sets of a size."""
        if size not in self._least_by_size:
            most = sorted(self._most, reverse=True)
            # What all others of a set leave to one at least.
            left = self._amount - sum(most[: size - 1])
            self._least_by_size[size] = [
                min(max(offer.least, left), offer.most) for offer in self._offers
            ]
        return self._least_by_size[size]

    def _share(self, at: int, amount: int) -> float:
        return min((self._used[at] + amount) / self._capacity[at], 1.0)


def _filled(room: Sequence[tuple[float, int]], left: int) -> float:
    """Return the sum of rates where an amount goes to those that come first."""
    worth = 0.0
    for rate, most in room:
        part = min(most, left)
        worth += part * rate
        left -= part
    return worth


def _is_constant(term: Term, order: Order, *, is_flat: bool) -> bool:
    """Tell whether a term is the same for all divisions; `is_flat` if all are in one tree."""
    if term.name in _OF_TREES:
        return is_flat
    if term.name in {TermName.NEAR, TermName.FAR}:
        return NO_GROUP not in term.arguments
    if term.name is TermName.PREFERRED:
        return all(preference.suffix != NO_GROUP for preference in order.preferences)
    # Of other classes than the divided one.
    return term.name in _OF_SLOTS | _OF_SUFFIXED


def _slots(
    scores: SplitScores, term: Term, split: SplitClass, allocations: Sequence[GroupAllocation]
) -> _Slots:
    shares = scores.shares_of_slots(term.arguments, allocations)
    of_class = [key for key in shares if key[1] == split.name]
    rest = sum(share for key, share in shares.items() if key[1] != split.name)
    return _Slots(term.weight, term.name in OPPOSITE, rest, len(of_class) - 1, len(shares))
