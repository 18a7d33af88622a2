# SPDX-License-Identifier: Apache-2.0
"""Plans of moves (contract page 101, section 5).

A greedy plan comes first. If it is not proven to be the best, an integer program is solved: of the whole cloud if
that is small enough, else of the trees that look most promising, more of them each time. Its solution is put into a
legal order; a solution for which none is found is excluded, and the program is solved again. Only a program of the
whole cloud proves anything.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import mul
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.order.mixes.tree_counter import TreeCounter
from treeclaim.forest.placing.candidate import roots_of
from treeclaim.forest.placing.capacity import count_now
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves.board import Board, Move
from treeclaim.forest.planning.moves.greedy import (
    RoomEstimate,
    RoomGainer,
    largest_first,
    make_room,
    move_away,
)
from treeclaim.forest.planning.moves.integer_program import Solution, round_up
from treeclaim.forest.planning.moves.move_model import ModelTooLargeError, MoveModel
from treeclaim.forest.planning.moves.movers import Mover, MoveSituation, StuckReason
from treeclaim.forest.planning.moves.places import Places
from treeclaim.forest.planning.moves.sequence import order_moves
from treeclaim.forest.planning.moves.stuck import StuckConsumers
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST, shown
from treeclaim.model.errors import (
    InvalidValueError,
    ResourceClassNotFoundError,
    SearchGivenUpError,
    TraitsNotFoundError,
)
from treeclaim.model.extension.moves import Empty, Fit, Goal, Keep, Moves
from treeclaim.model.request import CandidateRequest

_PROMISING_TREES = (20, 60, 200)
"""Numbers of trees in the programs of a large cloud."""

_MOST_CUTS = 20
"""Solutions of one program that are excluded because no legal order of their moves was found."""

_PLANNING_SHARE = 0.8
"""Share of the available time for finding a plan; the rest is for describing it."""

_SOLVING_SHARE = 0.6
"""Share of the remaining time for one run of the solver; the rest is for ordering the moves, and other programs."""

_NO_DEADLINE = 86_400.0


@dataclass(frozen=True, slots=True)
class GoalState:
    """The state of a goal before or after a plan.

    Attributes:
        left: Consumers where the goal forbids them; None for the goals `fit` and `keep`.
        fits: The count of the goals `fit` and `keep`; None for other goals.
        empty_trees: Trees without a consumer.
        is_counted: Whether the time was enough to count everything.
    """

    left: int | None
    fits: int | None
    empty_trees: int
    is_counted: bool = True

    def document(self) -> dict[str, Any]:
        """Return the member `before` or `after` of the response."""
        return {"left": self.left, "fits": self.fits, "empty_trees": self.empty_trees}


def make_plan(
    forest: Forest,
    consumers: Iterable[PlannedConsumer],
    call: Moves,
    budget: Budget,
    end: float | None = None,
) -> dict[str, Any]:
    """Return a plan as the response of the call.

    Args:
        forest: The Forest with `given` applied.
        consumers: All consumers with allocations.
        call: The call; all names in its queries exist.
        budget: The time and memory of the plan, beyond `end`.
        end: When the best plan so far is returned, by the monotonic clock; None for no deadline.

    Raises:
        InvalidValueError: if a provider whose tree is to be emptied does not exist.
    """
    now = time.monotonic()
    seconds = _NO_DEADLINE if end is None else max(end - now, 0.0)
    call = replace(call, goal=_known_goal(forest, call.goal))
    situation = MoveSituation(forest, consumers, call, budget)
    return _Planner(situation, now + _PLANNING_SHARE * seconds, now + seconds).plan()


def _known_goal(forest: Forest, goal: Goal) -> Goal:
    """Return a goal without the requests of a mix that name something unknown."""
    if isinstance(goal, Empty):
        for uuid in goal.providers:
            if forest.row_of(uuid) is None:
                raise InvalidValueError(
                    f"goal.empty: resource provider {uuid} that does not exist."
                )
    if not isinstance(goal, Keep):
        return goal
    known_requests = []
    for request, weight in goal.requests:
        with suppress(ResourceClassNotFoundError, TraitsNotFoundError):
            require_known_names(forest, request)
            known_requests.append((request, weight))
    return replace(goal, requests=tuple(known_requests))


class _Planner:
    def __init__(self, situation: MoveSituation, planning_end: float, end: float) -> None:
        self._situation = situation
        self._forest = situation.forest
        self._goal = situation.call.goal
        self._most_moves = situation.call.max_moves
        self._budget = situation.budget
        self._planning_end = planning_end
        self._end = end
        self._board = Board(situation)
        self._is_complete = True
        self._counter: TreeCounter | None = None
        self._at_least = 0
        self._is_best = False
        """Return whether a program of the whole cloud proves that no plan comes nearer to the goal."""
        self._best: tuple[tuple[int, ...], Sequence[Move]] | None = None

    def plan(self) -> dict[str, Any]:
        """Find a plan, and return it as a document."""
        if isinstance(self._goal, Keep):
            counts = [
                RequestCounts(self._forest, request, self._budget)
                for request, _ in self._goal.requests
            ]
            self._counter = TreeCounter(self._forest, counts)
        before = self._state()
        self._note()
        if isinstance(self._goal, Empty):
            self._at_least = before.left or 0
        elif before.is_counted and isinstance(self._goal, Fit) and not self._is_reached(before):
            self._at_least = 1
        if not self._is_reached(before):
            self._search()
        self._board.replay(self._best[1] if self._best else ())
        return self._document(before, self._state())

    # -- finding a plan --------------------------------------------------------------------------

    def _search(self) -> None:
        try:
            with self._budget.ending(self._planning_end):
                places = Places(self._situation)
                if isinstance(self._goal, Fit):
                    most = count_now(places.forest, self._goal.request, self._budget).at_most
                    if most < self._goal.amount:
                        self._at_least = self._most_moves + 1
                self._find_greedily(places)
                if not self._is_good_enough():
                    self._solve(places)
        except (SearchGivenUpError, MemoryError):
            # A solver that has no more memory has freed it by now, and the greedy plan is kept.
            self._is_complete = False
            self._board.undo(0)

    def _find_greedily(self, places: Places) -> None:
        try:
            if isinstance(self._goal, Empty):
                leaving = [mover for mover in self._left() if mover.stuck is None]
                move_away(self._board, leaving, self._most_moves)
            elif isinstance(self._goal, Fit):
                make_room(self._board, places, self._goal, self._most_moves)
            elif self._counter is not None:
                weights = [weight for _, weight in self._goal.requests]
                gainer = RoomGainer(self._board, places, self._counter, weights)
                gainer.move_all(self._most_moves)
        finally:
            self._note()
            self._board.undo(0)

    def _left(self) -> list[Mover]:
        movers = map(self._situation.mover, sorted(self._situation.left))
        return [mover for mover in movers if mover is not None]

    def _solve(self, places: Places) -> None:
        with suppress(ModelTooLargeError):
            self._solve_model(MoveModel(self._situation, places, self._goal, None))
            return
        for count in _PROMISING_TREES:
            trees = self._promising_trees(places, count)
            with suppress(ModelTooLargeError):
                self._solve_model(MoveModel(self._situation, places, self._goal, trees))
            if self._is_good_enough() or trees.all():
                return

    def _solve_model(self, model: MoveModel) -> None:
        """Solve a program, and note its best solution for which a legal order is found."""
        for number in range(_MOST_CUTS + 1):
            seconds = self._planning_end - time.monotonic()
            solution = model.solve(_SOLVING_SHARE * seconds)
            self._is_complete &= solution.is_optimal
            is_proof = model.is_complete and not number
            if is_proof:
                self._prove(model, solution)
            if solution.values is None:
                return
            moves = order_moves(self._situation, model.assignment(solution))
            if moves is not None:
                self._board.replay(moves)
                state = self._note()
                self._board.undo(0)
                expected = min(model.expected_fits(solution), GREATEST)
                is_as_good = not state.is_counted or (state.fits or 0) >= expected
                self._is_best &= is_as_good and is_proof
                if is_as_good:
                    return
            model.exclude(solution)
        self._is_best = False

    def _prove(self, model: MoveModel, solution: Solution) -> None:
        """Keep what a program of the whole cloud proves."""
        self._is_best = solution.is_optimal
        if not isinstance(self._goal, Keep):
            bound = solution.bound + model.offset
            most = self._most_moves
            at_least = most + 1 if bound > most else round_up(max(bound, 0.0))
            self._at_least = max(self._at_least, at_least)

    def _note(self) -> GoalState:
        """Keep the moves on the board if they are the best so far."""
        state = self._state()
        if state.is_counted:
            value = self._value(state)
            if self._best is None or value > self._best[0]:
                self._best = value, tuple(self._board.moves)
        return state

    def _value(self, state: GoalState) -> tuple[int, ...]:
        """Return the value of the moves on the board: the greater, the better."""
        moves, fits = len(self._board.moves), state.fits or 0
        if isinstance(self._goal, Empty):
            return -(state.left or 0), -moves
        if isinstance(self._goal, Fit):
            return min(fits, self._goal.amount), -moves
        return state.empty_trees * self._goal.empty_trees, fits, -moves

    def _is_good_enough(self) -> bool:
        if self._best is None or isinstance(self._goal, Keep):
            return False
        value, moves = self._best
        is_reached = value[0] == (0 if isinstance(self._goal, Empty) else self._goal.amount)
        return is_reached and len(moves) <= self._at_least

    def _promising_trees(self, places: Places, count: int) -> Mask:
        """Return the trees in which few moves gain most, and some trees with room for those who leave."""
        goal, board, estimate = self._goal, self._board, RoomEstimate(self._situation)
        trees = np.zeros(len(self._forest.order.roots), dtype=np.bool_)
        if isinstance(goal, Keep):
            requests = [request for request, _ in goal.requests]
        elif isinstance(goal, Fit):
            requests = [goal.request]
        else:
            leaving = [mover for mover in self._left() if mover.alternatives]
            leaving = largest_first(self._forest, leaving)
            requests = list(dict.fromkeys(mover.alternatives[0] for mover in leaving))[:4]
        for request in requests:
            self._budget.check()
            ranked = [
                (fewest, candidate.trees)
                for candidate in places.first_of_each_tree(request)
                if (fewest := estimate.fewest_moves(board, candidate)) is not None
                and (fewest or not isinstance(goal, Keep))
            ]
            ranked.sort(key=lambda pair: pair[0])
            for _, tree in ranked[: max(count // len(requests), 1)]:
                trees[list(tree)] = True
        if isinstance(goal, Keep) and goal.empty_trees:
            fewest_first = sorted((n, tree) for tree, n in board.occupants().items())
            trees[[tree for _, tree in fewest_first[:count]]] = True
        # Trees into which consumers of the others can move at once.
        movers = [m for m in self._situation.movable if trees[list(m.occupied)].any()]
        distinct_requests: dict[CandidateRequest, None] = dict.fromkeys(
            m.alternatives[0] for m in movers
        )
        for request in distinct_requests:
            self._budget.check()
            added = 0
            for candidate in places.first_of_each_tree(request):
                if added * len(distinct_requests) >= count:
                    break
                if not estimate.missing(board, candidate):
                    trees[list(candidate.trees)] = True
                    added += 1
        return trees & ~self._situation.emptied

    # -- describing it ---------------------------------------------------------------------------

    def _state(self) -> GoalState:
        board = self._board
        occupants = board.occupants()
        empty_trees = len(self._forest.order.roots) - len(occupants)
        if isinstance(self._goal, Empty):
            return GoalState(len(board.left()), None, empty_trees)
        if isinstance(self._goal, Keep):
            fits = 0
            if self._counter is not None:
                counts = self._counter.in_trees(board.forest)
                weights = (weight for _, weight in self._goal.requests)
                fits = sum(map(mul, weights, counts.sum(axis=0).tolist()))
            return GoalState(None, shown(fits), empty_trees)
        counted = count_now(board.forest, self._goal.request, self._budget, self._end)
        if not counted.is_complete:
            self._is_complete = self._is_best = False
        return GoalState(None, counted.fits, empty_trees, counted.is_complete)

    def _is_reached(self, state: GoalState) -> bool:
        if isinstance(self._goal, Empty):
            return not state.left
        return isinstance(self._goal, Fit) and (state.fits or 0) >= self._goal.amount

    def _document(self, before: GoalState, after: GoalState) -> dict[str, Any]:
        count = len(self._board.moves)
        left = sorted(self._board.left()) if isinstance(self._goal, Empty) else []
        stuck_consumers = StuckConsumers(self._board, self._end)
        stuck = stuck_consumers.document(left)
        self._is_complete &= stuck_consumers.is_complete
        if time.monotonic() >= self._planning_end:
            self._is_complete = False
        reached, at_least, proven = True, None, False
        if isinstance(self._goal, Keep):
            optimal = self._is_best
        else:
            reached = self._is_reached(after)
            at_least = self._at_least
            optimal = reached and count <= at_least
            fixed = (StuckReason.NOT_MOVABLE, StuckReason.NO_REQUEST)
            proven = not reached and (
                at_least > self._most_moves or any(item["reason"] in fixed for item in stuck)
            )
        return {
            "reached": reached,
            "complete": self._is_complete,
            "at_least": at_least,
            "optimal": optimal,
            "proven": proven,
            "moves": [_move_document(self._forest, move) for move in self._board.moves],
            "stuck": stuck,
            "before": before.document(),
            "after": after.document(),
        }


def _move_document(forest: Forest, move: Move) -> dict[str, Any]:
    consumer = move.mover.consumer
    body = move.candidate.body(forest)
    return {
        "consumer": consumer.uuid,
        "alternative": consumer.numbers[move.alternative],
        "from": {uuid: {"resources": dict(n)} for uuid, n in consumer.allocations.items()},
        "to": {uuid: {"resources": n} for uuid, n in body.allocations.items()},
        "mappings": body.mappings,
        "from_roots": _roots(forest, move.mover.trees),
        "to_roots": _roots(forest, move.candidate.trees),
        "consumer_generation": consumer.generation,
    }


def _roots(forest: Forest, trees: Sequence[int]) -> list[dict[str, str]]:
    return [{"uuid": uuid, "name": name} for uuid, name in roots_of(forest, trees)]
