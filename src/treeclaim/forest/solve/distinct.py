# SPDX-License-Identifier: Apache-2.0
"""Which of the anchors that reach a candidate comes first.

A candidate of nothing but sharing providers can be reached from several anchors, and is returned
once (contract page 90, section 3.1, last point). Which candidates came before is not remembered,
as there may be very many: a candidate counts under the first of the anchors that reach all its
providers, and no rule between providers depends on the anchor, so it is found there.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import with_any_trait_by_place
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.solve.blocks import Anchored, Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.model.names import SHARING_TRAIT


def distinct(problem: Problem, found: Iterator[Anchored]) -> Iterator[Choices]:
    """Leave out candidates that an earlier anchor has too."""
    first = first_anchors(problem, problem.relations)
    for block in found:
        yield block.chosen if first is None else block.chosen[first.are_first(block)]


def first_anchors(problem: Problem, relations: Sequence[Relation]) -> "FirstAnchors | None":
    """Return what tells repetitions; None if no candidate can be of sharing providers alone."""
    if not all(relation.has_sharing for relation in relations):
        return None
    sharing = with_any_trait_by_place(problem.forest, (SHARING_TRAIT,))
    return FirstAnchors(relations, problem.allowed, sharing, problem.budget)


class FirstAnchors:
    """Tells which candidates are found under an earlier anchor too."""

    def __init__(
        self,
        relations: Sequence[Relation],
        allowed: Mask | None,
        sharing: Mask,
        budget: Budget,
    ) -> None:
        """Take what a search has.

        Args:
            relations: Who may take each slot, and under which anchor.
            allowed: Which roots may be anchors, shape (roots,); None for all.
            sharing: Which places are sharing providers, shape (places,).
            budget: What the question may cost.
        """
        self._relations = relations
        self._allowed = allowed
        self._sharing = sharing
        self._budget = budget
        self._keys: list[Rows] = []
        self._anchor_count = max(len(one.pairs.starts) - 1 for one in relations)

    def are_first(self, found: Anchored) -> Mask:
        """Tell which candidates, given with the numbers of their anchors, are not repetitions."""
        are_first = np.ones(len(found.chosen), dtype=np.bool_)
        shared = np.flatnonzero(np.logical_and.reduce(self._sharing[found.chosen], axis=1))
        if len(shared):
            are_first[shared] = self._first(found.chosen[shared]) == found.anchor[shared]
        return are_first

    def lists(self, numbers: Sequence[int], places: Sequence[int]) -> list[Rows]:
        """Return the anchors of some places, each by the relation with a number; ascending."""
        if not self._keys:
            self._keys = self._lent_to()
        count = self._anchor_count
        found = []
        for number, place in zip(numbers, places, strict=True):
            keys = self._keys[number]
            first, end = keys.searchsorted([place * count, (place + 1) * count])
            found.append(keys[first:end] - place * count)
        return found

    def common(self, lists: Sequence[Rows], start: int) -> int:
        """Return the first anchor from `start` on that is in all lists; beyond all for none."""
        reached = start
        while True:
            self._budget.check()
            before = reached
            for one in lists:
                at = int(one.searchsorted(reached))
                if at == len(one):
                    return self._anchor_count
                reached = int(one[at])
            if reached == before:
                return reached

    def _first(self, chosen: npt.NDArray[np.int64]) -> Rows:
        """Return the first anchor that reaches all places of each candidate.

        Each slot in turn goes on to the first anchor of its provider that is not before the one
        that the others came to, until all agree; they do at the candidate's own at the latest.
        """
        if not self._keys:
            self._keys = self._lent_to()
        first = np.zeros(len(chosen), dtype=np.int64)
        pending = np.arange(len(chosen))
        while len(pending):
            self._budget.check()
            reached = before = first[pending]
            for slot, keys in enumerate(self._keys):
                base = chosen[pending, slot] * self._anchor_count
                reached = keys[keys.searchsorted(base + reached)] - base
            first[pending] = reached
            pending = pending[reached != before]
        return first

    def _lent_to(self) -> list[Rows]:
        """Return for each slot `provider * anchors + anchor` of its sharing providers, ascending."""
        known: dict[int, Rows] = {}
        for one in self._relations:
            if id(one) not in known:
                known[id(one)] = self._keys_of(one)
                self._budget.hold(known[id(one)].nbytes)
        return [known[id(one)] for one in self._relations]

    def _keys_of(self, relation: Relation) -> Rows:
        pairs = relation.pairs
        numbers = pairs.sharing
        if relation.fits is not None:
            numbers = numbers[relation.fits[numbers]]
        anchor = pairs.starts.searchsorted(numbers, side="right") - 1
        keys: Rows = pairs.provider[numbers] * self._anchor_count + anchor
        if self._allowed is not None:
            keys = keys[self._allowed[anchor]]
        keys.sort()
        return keys
