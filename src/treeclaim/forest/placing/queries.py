# SPDX-License-Identifier: Apache-2.0
"""The first candidate of a query, again and again, while room is taken.

Where every provider serves its own tree alone, trees do not concern each other (`independent.py`). Where
sharing providers may serve, all of it is searched each time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.bounds.cache import size_of
from treeclaim.forest.order.ordered import OrderedSearch
from treeclaim.forest.order.scoring import Scoring, scoring_of
from treeclaim.forest.placing.candidate import Candidate, CandidateMaker
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import combined_under, distinct_blocks, matching_anchors
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.split.splitting import Splitter, splits
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.model.request import CandidateRequest, SearchOptions

_BYTES_FOR_A_QUERY = 4_000
"""Further bytes that a kept query takes, apart from a few times its request."""

Keeps = Callable[[Sequence[int]], bool]
"""Tells whether a candidate with some trees may be taken."""


class Query(ABC):
    """A query in a scratch Forest."""

    def __init__(self, scratch: Scratch, request: CandidateRequest, budget: Budget) -> None:
        """Take where to search, and what for; a limit is of no meaning."""
        self.scratch = scratch
        self.request = replace(request, limit=None)
        self.budget = budget
        self._maker: CandidateMaker | None = None
        self._own_bytes = _BYTES_FOR_A_QUERY + 3 * size_of(self.request.without_mixes())

    @property
    def nbytes(self) -> int:
        """Return the bytes that this takes, about, with what it was made from."""
        return self._own_bytes

    def kept(self) -> Callable[[], None]:
        """Return a function to call once all that is taken and given back from now on is undone."""
        return lambda: None

    def searched(self) -> Problem:
        """Return the search as things are now."""
        return relate(self.scratch.forest, self.request, SearchOptions(), self.budget)

    def scoring(self, problem: Problem) -> Scoring | None:
        """Return how a search is ordered; None for the usual order."""
        order = self.request.order
        if order is None:
            return None
        return scoring_of(problem, order, self.scratch.totals)

    @abstractmethod
    def first(self, allowed: Mask, keeps: Keeps) -> Candidate | None:
        """Return the first candidate that may be taken.

        Args:
            allowed: Which trees may be the only one of a candidate, shape (roots,).
            keeps: Judges candidates, whatever trees they have.
        """

    def each(self) -> Iterator[Candidate]:
        """Yield all candidates in order, as things are now."""
        yield from self._drawn(self.searched())

    def each_of_anchors(self) -> Iterator[tuple[int, Candidate]]:
        """Yield all candidates of each anchor, those of other anchors included, in any order."""
        problem = self.searched()
        if problem.plan.split:
            for anchor, candidate in Splitter(problem).of_anchors(all_anchors(problem)):
                yield anchor, self.made(problem, candidate.chosen, candidate.parts)
            return
        for block in combined_under(problem):
            for anchor, positions in zip(block.tree.tolist(), block.chosen.tolist(), strict=True):
                yield anchor, self.made(problem, positions)

    @abstractmethod
    def matching(self) -> Mask | None:
        """Tell which trees have a candidate, as things are now.

        Returns:
            One truth for each root; None where a candidate may be of other trees than its
            anchor's.
        """

    def _drawn(self, problem: Problem, anchors: Rows | None = None) -> Iterator[Candidate]:
        """Yield the candidates of a search that splits nothing, of some anchors or all."""
        scoring = self.scoring(problem)
        if scoring is None:
            for block in distinct_blocks(problem, anchors):
                for positions in block.chosen.tolist():
                    yield self.made(problem, positions)
            return
        for ranked in OrderedSearch(problem, scoring, anchors=anchors):
            for positions in ranked.rows.tolist():
                candidate = self.made(problem, positions)
                yield replace(candidate, is_approximate=ranked.is_approximate)

    def made(
        self,
        problem: Problem,
        positions: Sequence[int],
        parts: Sequence[tuple[str, int, int]] = (),
    ) -> Candidate:
        """Return a candidate as such."""
        if self._maker is None:
            are_own = not problem.plan.split and all(
                relation.pairs.is_local for relation in problem.relations
            )
            self._maker = CandidateMaker(self.scratch.forest, problem.plan, are_own=are_own)
        return self._maker.made(positions, parts)


class Coupled(Query):
    """A query in which trees affect each other: it is searched again each time."""

    def first(self, allowed: Mask, keeps: Keeps) -> Candidate | None:
        """Return the first candidate that may be taken."""
        problem = self.searched()
        anchors = None
        if not problem.may_leave_anchors:
            # Every candidate has the tree of its anchor, and no other.
            anchors = all_anchors(problem)
            anchors = anchors[allowed[anchors]]
        for candidate in self._drawn(problem, anchors):
            self.budget.check()
            if keeps(candidate.trees):
                return candidate
        return None

    def matching(self) -> Mask | None:
        """Tell which trees have a candidate, if no other than these are in candidates."""
        problem = self.searched()
        return None if problem.may_leave_anchors else mask_of(problem)


class Divided(Query):
    """A query that splits amounts: divisions are found one after the other."""

    def first(self, allowed: Mask, keeps: Keeps) -> Candidate | None:
        """Return the first candidate that may be taken."""
        del allowed
        return next((candidate for candidate in self.each() if keeps(candidate.trees)), None)

    def each(self) -> Iterator[Candidate]:
        """Yield all candidates in order."""
        problem = self.searched()
        scoring = self.scoring(problem)
        if scoring is None:
            for split in splits(problem):
                self.budget.check()
                yield self.made(problem, split.chosen, split.parts)
            return
        for ranked in OrderedSearch(problem, scoring):
            for split in ranked.rows.tolist():
                self.budget.check()
                candidate = self.made(problem, split.chosen, split.parts)
                yield replace(candidate, is_approximate=ranked.is_approximate)

    def matching(self) -> Mask | None:
        """Say that it is not known."""
        return None


def mask_of(problem: Problem) -> Mask:
    """Return which trees have a candidate under their own anchor, shape (roots,)."""
    mask = np.zeros(len(problem.forest.order.roots), dtype=np.bool_)
    mask[problem.forest.order.tree[matching_anchors(problem)]] = True
    return mask
