# SPDX-License-Identifier: Apache-2.0
"""Places: candidates of a request as if all movable consumers had left, and the trees in which few moves gain much."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice
from operator import itemgetter

import numpy as np

from treeclaim.forest.placing.candidate import Candidate, no_trees
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.room import QueryPool
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.moves.movers import (
    Cell,
    MoveSituation,
    allocations_of,
    cells_of,
    free_of,
)
from treeclaim.forest.solve.combine import distinct_candidates, first_of_each
from treeclaim.forest.solve.stage import all_anchors
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.planning import CapacityGoal, MixGoal
from treeclaim.model.request import CandidateRequest

MOST_PLACES = 20_000
"""Candidates of a request that are listed. One column each of an integer program that HiGHS solves in seconds."""

_MOST_IN_A_TREE = 64
"""Candidates of one tree that are listed. Contract page 101, section 5.3, promises optimality up to 16."""

_MOST_LEAVING = 4
"""Requests of consumers that must leave whose trees are compared, those of the largest consumers."""


class PlaceLister:
    """Lists the places of requests.

    Attributes:
        forest: The Forest as if all movable consumers, with what they drew from holds, had left.
        are_all: Whether no list was cut, apart from the trees that it is for.
    """

    def __init__(self, situation: MoveSituation) -> None:
        self._situation = situation
        scratch = Scratch(situation.forest)
        released: Counter[Cell] = Counter()
        reliefs: defaultdict[Cell, list[int]] = defaultdict(list)
        for mover in situation.movable:
            released.update(mover.allocations)
            for cell, units in mover.relief.items():
                reliefs[cell].append(units)
        scratch.give_back(allocations_of(released))
        self.forest: Forest = scratch.forest
        self.are_all = True
        self._pool = QueryPool(scratch, situation.budget)
        self._freed = {
            cell: np.cumsum(sorted(units, reverse=True)) for cell, units in reliefs.items()
        }
        """The most units of a cell that 1, 2, … moves free."""
        self._first_of_each_tree = cache(self._find_first_of_each_tree)

    # -- lists -----------------------------------------------------------------------------------

    def list_places(self, request: CandidateRequest, trees: Mask | None) -> Sequence[Candidate]:
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
        return not any(closed[row] for row, _, _ in candidate.allocations)

    def _draw(self, request: CandidateRequest, trees: Mask | None) -> Iterator[Candidate]:
        """Yield the open candidates: of independent trees at most one more than are listed."""
        query = self._pool.query(request)
        drawn = _of_trees(query, trees) if query.are_apart else query.candidates()
        if request.can_split:
            now = Scratch(self._situation.forest)
            drawn = chain(Query(now, request, self._situation.budget).candidates(), drawn)
        for candidate in drawn:
            if self._is_open(candidate):
                yield candidate
            elif request.tolerated:
                # A consumer that tolerates the condition there need not leave.
                self.are_all = False

    def _find_first_of_each_tree(self, request: CandidateRequest) -> Sequence[Candidate]:
        """Return the first place in each tree, up to `MOST_PLACES`; none where that place is closed."""
        drawn = islice(_first_of_trees(self._pool.query(request)), MOST_PLACES)
        return list(filter(self._is_open, drawn))

    # -- promising trees -------------------------------------------------------------------------

    def promising_trees(self, count: int, excluded: Mask | None = None) -> Mask:
        """Return about this many trees in which few moves make room, and about as many that take the consumers there.

        Args:
            count: The number of trees.
            excluded: Trees that are not returned; None for none.
        """
        situation, goal = self._situation, self._situation.call.goal
        trees = no_trees(situation.forest)
        closed = situation.emptied if excluded is None else situation.emptied | excluded
        requests = self._wanted_requests()
        for request in requests:
            for candidate in self._easiest(request, closed)[: max(count // len(requests), 1)]:
                trees[list(candidate.trees)] = True
        if isinstance(goal, MixGoal) and goal.empty_trees:
            occupants = Counter(
                tree for occupied in situation.occupied.values() for tree in occupied
            )
            fewest_first = sorted((n, tree) for tree, n in occupants.items() if not closed[tree])
            trees[[tree for _, tree in fewest_first[:count]]] = True
        movers = [mover for mover in situation.movable if trees[list(mover.occupied)].any()]
        moving_requests = dict.fromkeys(mover.alternatives[0] for mover in movers)
        for request in moving_requests:
            places = self._open_places(request, closed)
            with_room = (place for place in places if not self._missing(place))
            for candidate in islice(with_room, -(-count // len(moving_requests))):
                trees[list(candidate.trees)] = True
        return trees & ~closed

    def _wanted_requests(self) -> Sequence[CandidateRequest]:
        """Return the requests that the goal needs room for."""
        match self._situation.call.goal:
            case MixGoal() as goal:
                return [request for request, _ in goal.requests]
            case CapacityGoal() as goal:
                return [goal.request]
        leaving = (mover.alternatives[0] for mover in self._situation.leaving)
        return list(dict.fromkeys(leaving))[:_MOST_LEAVING]

    def _open_places(self, request: CandidateRequest, closed: Mask) -> Iterator[Candidate]:
        """Yield the first place of each tree that is not closed."""
        for candidate in self._first_of_each_tree(request):
            self._situation.budget.check()
            if not closed[list(candidate.trees)].any():
                yield candidate

    def _easiest(self, request: CandidateRequest, closed: Mask) -> list[Candidate]:
        """Return the places in which moves can make room, those that need the fewest moves first."""
        # A place that has room already gains nothing for a mix.
        fewest = 1 if isinstance(self._situation.call.goal, MixGoal) else 0
        ranked = [
            (moves, candidate)
            for candidate in self._open_places(request, closed)
            if (moves := self._fewest_moves(candidate)) is not None and moves >= fewest
        ]
        return [candidate for _, candidate in sorted(ranked, key=itemgetter(0))]

    def _fewest_moves(self, candidate: Candidate) -> int | None:
        """Return a lower bound of the moves that make room at a place; None if no moves are enough."""
        fewest = 0
        for cell, missing in self._missing(candidate).items():
            enough = np.flatnonzero(self._freed.get(cell, np.zeros(0)) >= missing)
            if not len(enough):
                return None
            fewest = max(fewest, int(enough[0]) + 1)
        return fewest

    def _missing(self, candidate: Candidate) -> Counter[Cell]:
        """Return the units that a place lacks, by cell."""
        forest, used_units = self._situation.forest, self._situation.used_by(candidate.allocations)
        return +Counter({cell: n - free_of(forest, cell) for cell, n in used_units.items()})


def _first_of_trees(query: Query) -> Iterator[Candidate]:
    """Yield the first candidate of each tree."""
    if not query.are_apart:
        first: dict[tuple[int, ...], Candidate] = {}
        for candidate in islice(query.candidates(), MOST_PLACES):
            query.budget.check()
            first.setdefault(candidate.trees, candidate)
        yield from first.values()
        return
    problem = query.relate()
    for block in first_of_each(problem, all_anchors(problem)):
        for chosen in block.chosen.tolist():
            yield query.make_candidate(problem, chosen)


def _of_trees(query: Query, trees: Mask | None) -> Iterator[Candidate]:
    """Yield the candidates of trees, at most one more of each than are listed."""
    problem = query.relate()
    anchors = all_anchors(problem)
    anchors = anchors if trees is None else anchors[trees[anchors]]
    options = [np.diff(relation.pairs.starts)[anchors] for relation in problem.relations]
    are_few = np.multiply.reduce(options, axis=0, dtype=np.float64) <= _MOST_IN_A_TREE
    # Trees with few candidates are searched together, which is many times faster.
    for part in (anchors[are_few], *anchors[~are_few].reshape(-1, 1)):
        candidates = (
            chosen for block in distinct_candidates(problem, part) for chosen in block.tolist()
        )
        for chosen in candidates if part.size > 1 else islice(candidates, _MOST_IN_A_TREE + 1):
            yield query.make_candidate(problem, chosen)
