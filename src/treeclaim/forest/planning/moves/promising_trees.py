# SPDX-License-Identifier: Apache-2.0
"""The trees of a large cloud that an integer program is about: few moves gain much there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter

from treeclaim.forest.placing.candidate import Candidate, no_trees
from treeclaim.forest.planning.moves.movers import Cell, MoveSituation, cells_of
from treeclaim.forest.planning.moves.places import Places
from treeclaim.forest.table.columns import Mask
from treeclaim.model.extension.moves import Fit, Keep
from treeclaim.model.request import CandidateRequest

_MOST_LEAVING = 4
"""Requests of consumers that must leave whose trees are compared, those of the largest consumers."""


class PromisingTrees:
    """Chooses trees in which few moves make room, and trees that take the consumers which move."""

    def __init__(self, situation: MoveSituation, places: Places) -> None:
        self._situation = situation
        self._places = places
        self._relief_by_cell: dict[Cell, list[int]] = {}
        for mover in situation.movable:
            for cell, n in mover.relief.items():
                self._relief_by_cell.setdefault(cell, []).append(n)
        for amounts in self._relief_by_cell.values():
            amounts.sort(reverse=True)

    def choose(self, count: int, excluded: Mask | None = None) -> Mask:
        """Return about this many trees for room, and about as many for the consumers in them.

        Args:
            count: How many.
            excluded: Trees that are not chosen; None for none.
        """
        situation, goal = self._situation, self._situation.call.goal
        trees = no_trees(situation.forest)
        closed = situation.emptied if excluded is None else situation.emptied | excluded
        requests = self._requests()
        for request in requests:
            for candidate in self._easiest(request, closed)[: max(count // len(requests), 1)]:
                trees[list(candidate.trees)] = True
        if isinstance(goal, Keep) and goal.empty_trees:
            occupants = Counter(
                tree for occupied in situation.occupied.values() for tree in occupied
            )
            fewest_first = sorted((n, tree) for tree, n in occupants.items() if not closed[tree])
            trees[[tree for _, tree in fewest_first[:count]]] = True
        movers = [mover for mover in situation.movable if trees[list(mover.occupied)].any()]
        distinct_requests = dict.fromkeys(mover.alternatives[0] for mover in movers)
        for request in distinct_requests:
            for candidate in self._with_room(request, closed, -(-count // len(distinct_requests))):
                trees[list(candidate.trees)] = True
        return trees & ~closed

    def _requests(self) -> Sequence[CandidateRequest]:
        """Return the requests that the goal needs room for."""
        match self._situation.call.goal:
            case Keep() as goal:
                return [request for request, _ in goal.requests]
            case Fit() as goal:
                return [goal.request]
        leaving = (mover.alternatives[0] for mover in self._situation.leaving)
        return list(dict.fromkeys(leaving))[:_MOST_LEAVING]

    def _open_places(self, request: CandidateRequest, closed: Mask) -> Iterator[Candidate]:
        """Yield the first place of each tree that is not closed."""
        for candidate in self._places.first_of_each_tree(request):
            self._situation.budget.check()
            if not closed[list(candidate.trees)].any():
                yield candidate

    def _easiest(self, request: CandidateRequest, closed: Mask) -> list[Candidate]:
        """Return the places in which moves can make room, those that need the fewest moves first."""
        # A place that has room already gains nothing for a mix.
        fewest = 1 if isinstance(self._situation.call.goal, Keep) else 0
        ranked = [
            (moves, candidate)
            for candidate in self._open_places(request, closed)
            if (moves := self._fewest_moves(candidate)) is not None and moves >= fewest
        ]
        return [candidate for _, candidate in sorted(ranked, key=itemgetter(0))]

    def _with_room(
        self, request: CandidateRequest, closed: Mask, count: int
    ) -> Iterable[Candidate]:
        """Return the first places that have room now, up to a number."""
        places = self._open_places(request, closed)
        return islice((each for each in places if not self._missing(each)), count)

    def _fewest_moves(self, candidate: Candidate) -> int | None:
        """Return a lower bound of the moves that make room at a place; None if no moves are enough."""
        fewest = 0
        for cell, units in self._missing(candidate).items():
            missing, count = units, 0
            for relief in self._relief_by_cell.get(cell, ()):
                if missing <= 0:
                    break
                missing -= relief
                count += 1
            if missing > 0:
                return None
            fewest = max(fewest, count)
        return fewest

    def _missing(self, candidate: Candidate) -> Counter[Cell]:
        """Return the units that a place lacks, by cell."""
        needed_units = self._situation.with_consumed(cells_of(candidate.allocations))
        free = self._situation.free_of
        return +Counter({cell: n - free(cell) for cell, n in needed_units.items()})
