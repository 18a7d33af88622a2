# SPDX-License-Identifier: Apache-2.0
"""Lists the candidates of requests after all movable consumers leave, and finds trees in which few moves gain much."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice
from operator import itemgetter

import numpy as np

from treeclaim.forest.placing.candidate import Candidate, no_trees
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.planning.moves.movers import (
    Cell,
    MoveSituation,
    flatten_cells,
    get_free_units,
    sum_by_cell,
)
from treeclaim.forest.solve.combine import distinct_candidates, first_of_each
from treeclaim.forest.solve.stage import find_all_anchors
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.planning import CapacityGoal, MixGoal
from treeclaim.model.request import CandidateRequest

MOST_PLACES = 20_000
"""Listed candidates of a request: columns of an integer program that HiGHS solves in seconds."""

_MOST_IN_A_TREE = 64
"""Listed candidates of one tree. Contract page 101, section 5.3, promises optimality up to 16."""

_MOST_LEAVING = 4
"""Requests of the largest leaving consumers for which promising trees are searched."""


class PlaceLister:
    """Lists the places of requests.

    Attributes:
        forest: The Forest after all movable consumers leave, without returns to holds.
        is_complete: Whether each list has all places in its trees.
    """

    def __init__(self, situation: MoveSituation) -> None:
        self._situation = situation
        scratch = ScratchForest(situation.forest)
        released: Counter[Cell] = Counter()
        reliefs: defaultdict[Cell, list[int]] = defaultdict(list)
        for mover in situation.movable:
            released.update(mover.allocations)
            for cell, units in mover.relief.items():
                reliefs[cell].append(units)
        scratch.give_back(flatten_cells(released))
        self.forest: Forest = scratch.forest
        self.is_complete = True
        self._pool = QueryPool(scratch, situation.budget)
        self._freed = {
            cell: np.cumsum(sorted(units, reverse=True)) for cell, units in reliefs.items()
        }
        """By cell: the most units that 1, 2, … moves free."""
        self._first_of_each_tree = cache(self._find_first_of_each_tree)

    # -- lists -----------------------------------------------------------------------------------

    def list_places(self, request: CandidateRequest, trees: Mask | None) -> Sequence[Candidate]:
        """Return the places in trees, without duplicates that take equal amounts; None means all trees.

        Divisions of an amount depend on the free amounts. The list has only the divisions for the current free
        amounts, and for those after all movable consumers leave.
        """
        self.is_complete &= not request.can_split
        places: dict[frozenset[tuple[Cell, int]], Candidate] = {}
        count: Counter[tuple[int, ...]] = Counter()
        for number, candidate in enumerate(self._draw(request, trees)):
            if number == MOST_PLACES:
                self.is_complete = False
                break
            key = frozenset(sum_by_cell(candidate.allocations).items())
            if key in places or not (trees is None or trees[list(candidate.trees)].all()):
                continue
            count[candidate.trees] += 1
            if count[candidate.trees] > _MOST_IN_A_TREE:
                self.is_complete = False
            else:
                places[key] = candidate
        return list(places.values())

    def _is_open(self, candidate: Candidate) -> bool:
        self._situation.budget.check()
        closed = self._situation.closed
        return not any(closed[row] for row, _, _ in candidate.allocations)

    def _draw(self, request: CandidateRequest, trees: Mask | None) -> Iterator[Candidate]:
        """Yield the open candidates: of an independent tree at most one more than the limit of a list."""
        query = self._pool.get_query(request)
        drawn_candidates = (
            _draw_candidates(query, trees) if query.are_apart else query.draw_candidates()
        )
        if request.can_split:
            now = ScratchForest(self._situation.forest)
            drawn_candidates = chain(
                Query(now, request, self._situation.budget).draw_candidates(), drawn_candidates
            )
        for candidate in drawn_candidates:
            if self._is_open(candidate):
                yield candidate
            elif request.tolerated:
                # A consumer that tolerates the condition could move there.
                self.is_complete = False

    def _find_first_of_each_tree(self, request: CandidateRequest) -> Sequence[Candidate]:
        """Return the first place of each tree, up to `MOST_PLACES`, without closed places."""
        drawn_candidates = islice(
            _draw_first_candidates(self._pool.get_query(request)), MOST_PLACES
        )
        return list(filter(self._is_open, drawn_candidates))

    # -- promising trees -------------------------------------------------------------------------

    def find_promising_trees(self, count: int, excluded: Mask | None = None) -> Mask:
        """Return about `count` trees in which few moves make room, and about as many that take the moved consumers."""
        situation, goal = self._situation, self._situation.call.goal
        trees = no_trees(situation.forest)
        closed = situation.emptied if excluded is None else situation.emptied | excluded
        requests = self._find_wanted_requests()
        for request in requests:
            for candidate in self._rank_places(request, closed)[: max(count // len(requests), 1)]:
                trees[list(candidate.trees)] = True
        if isinstance(goal, MixGoal) and goal.empty_trees:
            occupants = Counter(
                tree for occupied in situation.occupied.values() for tree in occupied
            )
            emptiest = sorted((n, tree) for tree, n in occupants.items() if not closed[tree])
            trees[[tree for _, tree in emptiest[:count]]] = True
        movers = [mover for mover in situation.movable if trees[list(mover.occupied)].any()]
        moving_requests = dict.fromkeys(mover.alternatives[0] for mover in movers)
        for request in moving_requests:
            places = self._draw_open_places(request, closed)
            with_room = (place for place in places if not self._find_missing_units(place))
            for candidate in islice(with_room, -(-count // len(moving_requests))):
                trees[list(candidate.trees)] = True
        return trees & ~closed

    def _find_wanted_requests(self) -> Sequence[CandidateRequest]:
        """Return the requests for which the goal needs room."""
        match self._situation.call.goal:
            case MixGoal() as goal:
                return [request for request, _ in goal.requests]
            case CapacityGoal() as goal:
                return [goal.request]
        leaving = (mover.alternatives[0] for mover in self._situation.leaving)
        return list(dict.fromkeys(leaving))[:_MOST_LEAVING]

    def _draw_open_places(self, request: CandidateRequest, closed: Mask) -> Iterator[Candidate]:
        """Yield the first places of trees that are not closed."""
        for candidate in self._first_of_each_tree(request):
            self._situation.budget.check()
            if not closed[list(candidate.trees)].any():
                yield candidate

    def _rank_places(self, request: CandidateRequest, closed: Mask) -> list[Candidate]:
        """Return the places in which moves can make room, by ascending number of needed moves."""
        # A place that has room already gains nothing for a mix.
        fewest = 1 if isinstance(self._situation.call.goal, MixGoal) else 0
        ranked = [
            (moves, candidate)
            for candidate in self._draw_open_places(request, closed)
            if (moves := self._bound_moves(candidate)) is not None and moves >= fewest
        ]
        return [candidate for _, candidate in sorted(ranked, key=itemgetter(0))]

    def _bound_moves(self, candidate: Candidate) -> int | None:
        """Return a lower bound of the moves that make room at a place; None if moves cannot make room."""
        fewest = 0
        for cell, missing in self._find_missing_units(candidate).items():
            enough = np.flatnonzero(self._freed.get(cell, np.zeros(0)) >= missing)
            if not len(enough):
                return None
            fewest = max(fewest, int(enough[0]) + 1)
        return fewest

    def _find_missing_units(self, candidate: Candidate) -> Counter[Cell]:
        forest, used_units = (
            self._situation.forest,
            self._situation.sum_used(candidate.allocations),
        )
        return +Counter({cell: n - get_free_units(forest, cell) for cell, n in used_units.items()})


def _draw_first_candidates(query: Query) -> Iterator[Candidate]:
    """Yield the first candidate of each tree."""
    if not query.are_apart:
        first: dict[tuple[int, ...], Candidate] = {}
        for candidate in islice(query.draw_candidates(), MOST_PLACES):
            query.budget.check()
            first.setdefault(candidate.trees, candidate)
        yield from first.values()
        return
    problem = query.relate()
    for block in first_of_each(problem, find_all_anchors(problem)):
        for chosen_rows in block.chosen_rows.tolist():
            yield query.make_candidate(problem, chosen_rows)


def _draw_candidates(query: Query, trees: Mask | None) -> Iterator[Candidate]:
    """Yield the candidates of trees; of a tree at most one more than the limit of a list."""
    problem = query.relate()
    anchors = find_all_anchors(problem)
    anchors = anchors if trees is None else anchors[trees[anchors]]
    options = [np.diff(relation.pairs.starts)[anchors] for relation in problem.relations]
    are_few = np.multiply.reduce(options, axis=0, dtype=np.float64) <= _MOST_IN_A_TREE
    # Trees with few candidates are searched together, which is many times faster.
    for part in (anchors[are_few], *anchors[~are_few].reshape(-1, 1)):
        candidates = (
            chosen_rows
            for block in distinct_candidates(problem, part)
            for chosen_rows in block.tolist()
        )
        for chosen_rows in (
            candidates if part.size > 1 else islice(candidates, _MOST_IN_A_TREE + 1)
        ):
            yield query.make_candidate(problem, chosen_rows)
