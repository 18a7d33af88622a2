# SPDX-License-Identifier: Apache-2.0
"""Places: candidates of a request as if all movable consumers had left."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import IndependentQuery, Query, query_of
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.moves.movers import Cell, MoveSituation, allocations_of, cells_of
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import distinct_blocks
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest

MOST_PLACES = 20_000
"""Candidates of a request that are listed. One column each of an integer program that HiGHS solves in seconds."""

_MOST_IN_A_TREE = 64
"""Candidates of one tree that are listed. Contract page 101, section 5.3, promises optimality up to 16."""


class Places:
    """Lists the places of requests.

    Attributes:
        forest: The Forest as if all movable consumers, with what they drew from holds, had left.
        are_all: Whether no list so far was cut.
    """

    def __init__(self, situation: MoveSituation) -> None:
        self._situation = situation
        self._scratch = Scratch(situation.forest)
        released: Counter[Cell] = Counter()
        for mover in situation.movable:
            released.update(mover.allocations)
        self._scratch.give_back(allocations_of(released))
        self.forest: Forest = self._scratch.forest
        self._queries: dict[CandidateRequest, Query] = {}
        self._first: dict[CandidateRequest, Sequence[Candidate]] = {}
        self.are_all = True

    def first_of_each_tree(self, request: CandidateRequest) -> Sequence[Candidate]:
        """Return the first place in each tree, in canonical order of trees, up to `MOST_PLACES`."""
        if request not in self._first:
            self._first[request] = list(islice(self._draw(request, None, 1), MOST_PLACES))
        return self._first[request]

    def listed(self, request: CandidateRequest, trees: Mask | None) -> Sequence[Candidate]:
        """Return the places in some trees, or in all; those that take the same only once."""
        # Divisions of an amount depend on free amounts, so that no list of them holds for long.
        self.are_all &= not request.can_split and trees is None
        if request.can_split:
            return ()
        places: dict[frozenset[tuple[Cell, int]], Candidate] = {}
        count: Counter[tuple[int, ...]] = Counter()
        for candidate in self._draw(request, trees, _MOST_IN_A_TREE + 1):
            key = frozenset(cells_of(candidate.allocations).items())
            if key in places or not (trees is None or trees[list(candidate.trees)].all()):
                continue
            count[candidate.trees] += 1
            if count[candidate.trees] > _MOST_IN_A_TREE or len(places) == MOST_PLACES:
                self.are_all = False
                continue
            places[key] = candidate
        return list(places.values())

    def _draw(
        self, request: CandidateRequest, trees: Mask | None, most: int
    ) -> Iterator[Candidate]:
        """Yield candidates outside of closed positions: of independent trees at most `most` of each."""
        if request not in self._queries:
            self._queries[request] = query_of(self._scratch, request, self._situation.budget)
        closed = self._situation.closed
        for candidate in _draw_by_tree(self._queries[request], trees, most):
            self._situation.budget.check()
            if not any(closed[position] for position, _, _ in candidate.allocations):
                yield candidate
            elif request.tolerated:
                # A consumer that tolerates the condition there need not leave.
                self.are_all = False


def _draw_by_tree(query: Query, trees: Mask | None, most: int) -> Iterator[Candidate]:
    if not isinstance(query, IndependentQuery):
        yield from islice(query.each(), MOST_PLACES)
        return
    problem = query.search()
    anchors = all_anchors(problem)
    for anchor in (anchors if trees is None else anchors[trees[anchors]]).tolist():
        candidates = (
            chosen
            for block in distinct_blocks(problem, np.array([anchor]))
            for chosen in block.chosen.tolist()
        )
        for chosen in islice(candidates, most):
            yield query.made(problem, chosen)
