# SPDX-License-Identifier: Apache-2.0
"""The first of the anchors that reach a candidate.

A candidate of nothing but sharing providers can be reached from several anchors, and is returned
once (contract page 90, section 3.1, last point). Which candidates came before is not remembered,
as there may be very many: a candidate counts under the first of the anchors that reach all its
providers, and no rule between providers depends on the anchor, so it is found there.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import sharing_rows
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.solve.partial.blocks import CandidateBlock, Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Mask, search_ascending


def distinct(problem: Problem, blocks: Iterator[CandidateBlock]) -> Iterator[Choices]:
    """Leave out candidates that an earlier anchor has too."""
    first = first_anchors(problem, problem.relations)
    for block in blocks:
        yield block.chosen if first is None else block.chosen[first.are_first(block)]


def first_anchors(problem: Problem, relations: Sequence[Relation]) -> "FirstAnchors | None":
    """Return what recognises repetitions; None if no candidate can be of only sharing providers."""
    if not all(relation.has_sharing for relation in relations):
        return None
    sharing = sharing_rows(problem.forest)
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
        """Prepare the lookup; nothing is computed before it is needed.

        Args:
            relations: Who may take each slot, and under which anchor.
            allowed: Which roots may be anchors, shape (roots,); None for all.
            sharing: Which rows are sharing providers, shape (rows,).
            budget: What the question may cost.
        """
        self._relations = relations
        self._allowed = allowed
        self._sharing = sharing
        self._budget = budget
        self._keys: list[Integers] = []
        self._anchor_count = max(len(relation.pairs.starts) - 1 for relation in relations)

    def are_first(self, candidates: CandidateBlock) -> Mask:
        """Tell which candidates, given with the numbers of their anchors, are not repetitions."""
        are_first = np.ones(len(candidates.chosen), dtype=np.bool_)
        shared = np.flatnonzero(np.logical_and.reduce(self._sharing[candidates.chosen], axis=1))
        if len(shared):
            chosen = candidates.chosen[shared]
            start = np.zeros(len(shared), dtype=np.int64)
            first = self.first_common(range(len(self._relations)), chosen, start)
            are_first[shared] = first == candidates.tree[shared]
        return are_first

    def first_common(self, relations: Sequence[int], chosen: Choices, start: Integers) -> Integers:
        """Return the first anchor, from one on, that reaches all providers of each candidate.

        Each column in turn goes on to the first anchor of its provider that is not before the one
        that the others came to, until all agree; they do at the candidate's own at the latest.

        Args:
            relations: The number of the relation of each column.
            chosen: Rows of providers.
            start: The first anchor that counts, by candidate.
        """
        if not self._keys:
            self._keys = self._lent_to()
        first = start.copy()
        pending = np.arange(len(chosen))
        while len(pending):
            self._budget.check()
            reached = before = first[pending]
            for column, relation in enumerate(relations):
                keys, base = self._keys[relation], chosen[pending, column] * self._anchor_count
                reached = keys[search_ascending(keys, base + reached)] - base
            first[pending] = reached
            pending = pending[reached != before]
        return first

    def _lent_to(self) -> list[Integers]:
        """Return for each slot `provider * anchors + anchor` of its sharing providers, ascending."""
        keys_by_relation: dict[int, Integers] = {}
        for relation in self._relations:
            if id(relation) not in keys_by_relation:
                keys_by_relation[id(relation)] = self._keys_of(relation)
                self._budget.hold(keys_by_relation[id(relation)].nbytes)
        return [keys_by_relation[id(relation)] for relation in self._relations]

    def _keys_of(self, relation: Relation) -> Integers:
        pairs = relation.pairs
        numbers = pairs.sharing
        if relation.fits is not None:
            numbers = numbers[relation.fits[numbers]]
        anchor = search_ascending(pairs.starts, numbers, side="right") - 1
        keys: Integers = pairs.provider[numbers] * self._anchor_count + anchor
        if self._allowed is not None:
            keys = keys[self._allowed[anchor]]
        keys.sort()
        return keys
