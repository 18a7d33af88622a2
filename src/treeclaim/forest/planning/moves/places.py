# SPDX-License-Identifier: Apache-2.0
"""Places: candidates of a request as if all movable consumers had left."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np

from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import IndependentQuery, Query, query_of
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.moves.movers import Cell, MoveSituation, allocations_of, cells_of
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import distinct_blocks, first_of_each
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
        are_all: Whether no list was cut, apart from the trees that it is for.
    """

    def __init__(self, situation: MoveSituation) -> None:
        self._situation = situation
        self._scratch = Scratch(situation.forest)
        released: Counter[Cell] = Counter()
        for mover in situation.movable:
            released.update(mover.allocations)
        self._scratch.give_back(allocations_of(released))
        self.forest: Forest = self._scratch.forest
        self._pool = QueryPool(self._scratch, situation.budget)
        self._first: dict[CandidateRequest, Sequence[Candidate]] = {}
        self.are_all = True

    def first_of_each_tree(self, request: CandidateRequest) -> Sequence[Candidate]:
        """Return the first place in each tree, up to `MOST_PLACES`; none where that place is closed."""
        if request not in self._first:
            drawn = islice(_first_of_trees(self._pool.query(request)), MOST_PLACES)
            self._first[request] = list(filter(self._is_open, drawn))
        return self._first[request]

    def listed(self, request: CandidateRequest, trees: Mask | None) -> Sequence[Candidate]:
        """Return the places in some trees, or in all; those that take the same only once.

        Divisions of an amount depend on what is free: those of a list are only estimates, from what is free now, and
        from what is free once all have left.
        """
        self.are_all &= not request.can_split
        places: dict[frozenset[tuple[Cell, int]], Candidate] = {}
        count: Counter[tuple[int, ...]] = Counter()
        for number, candidate in enumerate(self._draw(request, trees)):
            if number == MOST_PLACES:
                self.are_all = False
                break
            key = frozenset(cells_of(candidate.allocations).items())
            if key in places or not (trees is None or trees[list(candidate.trees)].all()):
                continue
            count[candidate.trees] += 1
            if count[candidate.trees] > _MOST_IN_A_TREE:
                self.are_all = False
            else:
                places[key] = candidate
        return list(places.values())

    def _is_open(self, candidate: Candidate) -> bool:
        self._situation.budget.check()
        closed = self._situation.closed
        return not any(closed[position] for position, _, _ in candidate.allocations)

    def _draw(self, request: CandidateRequest, trees: Mask | None) -> Iterator[Candidate]:
        """Yield the open candidates: of independent trees at most one more than are listed."""
        query = self._pool.query(request)
        drawn = _of_trees(query, trees) if isinstance(query, IndependentQuery) else query.each()
        if request.can_split:
            now = Scratch(self._situation.forest)
            drawn = chain(query_of(now, request, self._situation.budget).each(), drawn)
        for candidate in drawn:
            if self._is_open(candidate):
                yield candidate
            elif request.tolerated:
                # A consumer that tolerates the condition there need not leave.
                self.are_all = False


def _first_of_trees(query: Query) -> Iterator[Candidate]:
    """Yield the first candidate of each tree."""
    if not isinstance(query, IndependentQuery):
        first: dict[tuple[int, ...], Candidate] = {}
        for candidate in islice(query.each(), MOST_PLACES):
            query.budget.check()
            first.setdefault(candidate.trees, candidate)
        yield from first.values()
        return
    problem = query.search()
    for block in first_of_each(problem, all_anchors(problem)):
        for chosen in block.chosen.tolist():
            yield query.made(problem, chosen)


def _of_trees(query: IndependentQuery, trees: Mask | None) -> Iterator[Candidate]:
    """Yield the candidates of trees, at most one more of each than are listed."""
    problem = query.search()
    anchors = all_anchors(problem)
    anchors = anchors if trees is None else anchors[trees[anchors]]
    options = [np.diff(relation.pairs.starts)[anchors] for relation in problem.relations]
    are_few = np.multiply.reduce(options, axis=0, dtype=np.float64) <= _MOST_IN_A_TREE
    # Trees with few candidates are searched together, which is many times faster.
    for part in (anchors[are_few], *anchors[~are_few].reshape(-1, 1)):
        candidates = (
            chosen for block in distinct_blocks(problem, part) for chosen in block.chosen.tolist()
        )
        for chosen in candidates if part.size > 1 else islice(candidates, _MOST_IN_A_TREE + 1):
            yield query.made(problem, chosen)
