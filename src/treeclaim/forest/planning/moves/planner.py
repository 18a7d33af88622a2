# SPDX-License-Identifier: Apache-2.0
"""Plans moves (contract page 101, section 5).

The first plan moves each consumer that must leave to its first candidate. If that plan is not proven to be the best,
the planner solves integer programs: first of the few most promising trees, then of the whole cloud, or of more
promising trees if the cloud is too large. If the moves of a solution have no legal order, the solution is excluded
and the program is solved again. Only a program of the whole cloud proves anything.
"""

import math
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import mul
from typing import Any

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.order.mixes.tree_counter import TreeCounter
from treeclaim.forest.placing.candidate import find_roots, no_trees
from treeclaim.forest.placing.capacity import count_now
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves.board import Board, Move, find_reasons, make_moves
from treeclaim.forest.planning.moves.integer_program import Solution, round_up
from treeclaim.forest.planning.moves.move_model import ModelTooLargeError, MoveModel
from treeclaim.forest.planning.moves.movers import MoveSituation, StuckReason
from treeclaim.forest.planning.moves.places import PlaceLister
from treeclaim.forest.table.columns import GREATEST, Mask, cap_count
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import (
    InvalidValueError,
    ResourceClassNotFoundError,
    SearchGivenUpError,
    TraitsNotFoundError,
)
from treeclaim.model.extension.planning import (
    CapacityGoal,
    EvacuationGoal,
    Goal,
    MixGoal,
    MovesCall,
)

PROMISING_TREES = (20, 200)
"""Trees in the first program of a large cloud, and in the last program if the whole cloud is too large for one."""

TREES_OF_A_PART = 6
"""Trees in each of the joined programs for the goal `keep`. With 20 trees, HiGHS takes 20 times as long."""

_MOST_CUTS = 20
"""Solutions of one program that may be excluded because no legal order of their moves was found."""

_PLANNING_SHARE = 0.8
"""Share of the available time for finding a plan. The remainder is for its description."""


@dataclass(frozen=True, slots=True)
class GoalState:
    """The state of a goal before or after a plan.

    Attributes:
        missing: Consumers by which the goal is missed; 0 for the goal `keep`, which is always reached.
        fits: The count of the goals `fit` and `keep`; 0 for the goal `empty`.
        gain: The values that the goal `keep` maximizes, the most important first; empty for other goals.
        document: The member `before` or `after` of the response.
        is_counted: Whether counting ended in time.
    """

    missing: int
    fits: int
    gain: tuple[int, ...]
    document: dict[str, Any]
    is_counted: bool


def find_move_plan(
    forest: Forest,
    consumers: Iterable[PlannedConsumer],
    call: MovesCall,
    budget: Budget,
    end: float = math.inf,
) -> dict[str, Any]:
    """Return a plan as the response of the call, at the latest at `end` by the monotonic clock.

    The Forest must have the assumptions applied, and `consumers` all consumers with allocations. All names in
    queries of the call must exist.

    Raises:
        InvalidValueError: if the goal names an unknown provider.
    """
    now = time.monotonic()
    call = replace(call, goal=_validate_goal(forest, call.goal))
    situation = MoveSituation(forest, consumers, call, budget)
    return _Planner(situation, now + _PLANNING_SHARE * max(end - now, 0.0), end).plan()


def _validate_goal(forest: Forest, goal: Goal) -> Goal:
    """Reject unknown providers; return the goal without requests of a mix that have unknown names."""
    if isinstance(goal, EvacuationGoal):
        for uuid in goal.providers:
            if forest.row_of(uuid) is None:
                raise InvalidValueError(
                    f"goal.empty: resource provider {uuid} that does not exist."
                )
    if not isinstance(goal, MixGoal):
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
        self._at_least = 0
        self._is_best = False
        """Whether a program of the whole cloud proves that no plan comes closer to the goal."""
        self._best: tuple[tuple[int, ...], Sequence[Move]] | None = None
        """The value and the moves of the best plan so far."""

    def plan(self) -> dict[str, Any]:
        before = self._record_moves()
        if before.is_counted:
            # One move may make room for any number of consumers.
            most = 1 if isinstance(self._goal, CapacityGoal) else before.missing
            self._at_least = min(before.missing, most)
        if before.missing or isinstance(self._goal, MixGoal):
            self._search()
        self._board = Board(self._situation, self._best[1] if self._best else ())
        return self._make_document(before, self._assess_goal())

    # -- finding a plan --------------------------------------------------------------------------

    def _search(self) -> None:
        try:
            with self._budget.ending(self._planning_end):
                places = PlaceLister(self._situation)
                if isinstance(self._goal, CapacityGoal):
                    most = count_now(places.forest, self._goal.request, self._budget).at_most
                    if most is not None and most < self._goal.amount:
                        self._at_least = self._most_moves + 1
                self._move_greedily()
                if not self._is_good_enough():
                    self._solve(places)
        except (SearchGivenUpError, MemoryError):
            # A solver without memory has freed its memory by now, and the best plan so far remains.
            self._is_complete = False

    def _reset(self, count: int = 0) -> None:
        """Undo all moves except the first `count` moves."""
        self._board = Board(self._situation, self._board.moves[:count])

    def _move_greedily(self) -> None:
        """Move the consumers that must leave to their first candidates."""
        try:
            for mover in self._situation.leaving:
                if len(self._board.moves) == self._most_moves:
                    break
                target = self._board.find(mover)
                if target is not None:
                    self._board.move(mover, *target)
        finally:
            self._record_moves()
            self._reset()

    def _solve(self, places: PlaceLister) -> None:
        """Solve a program of few trees, then of the whole cloud, or of more trees if the cloud is too large."""
        first_count, last_count = PROMISING_TREES
        sizes: list[int | None] = [None]
        if not isinstance(self._goal, MixGoal):
            amount = self._goal.amount if isinstance(self._goal, CapacityGoal) else 0
            is_large = first_count < len(self._forest.order.roots)
            sizes = [*([first_count] if is_large else []), None, max(last_count, amount)]
        for count in sizes:
            trees = None if count is None else places.find_promising_trees(count)
            with suppress(ModelTooLargeError):
                self._solve_model(places, trees)
                self._reset()
                if trees is None or self._is_good_enough():
                    return
        if isinstance(self._goal, MixGoal):
            self._solve_in_parts(places)

    def _solve_in_parts(self, places: PlaceLister) -> None:
        """Join the moves of programs of few, disjoint trees, until a program adds no move."""
        used_trees = no_trees(self._forest)
        count = -1
        while count < len(self._board.moves) < self._most_moves:
            count = len(self._board.moves)
            trees = places.find_promising_trees(TREES_OF_A_PART, used_trees)
            used_trees |= trees
            with suppress(ModelTooLargeError):
                self._solve_model(places, trees)

    def _solve_model(self, places: PlaceLister, trees: Mask | None) -> None:
        """Solve the program of further moves, and make the moves of its best solution with a legal order."""
        count = len(self._board.moves)
        model = MoveModel(self._situation, places, trees, self._most_moves - count)
        for number in range(_MOST_CUTS + 1):
            self._reset(count)
            solution = model.solve(self._planning_end)
            self._is_complete &= solution.is_optimal
            is_proof = model.is_complete and not number
            if is_proof:
                self._record_proof(model, solution)
            if solution.values is None:
                return
            if make_moves(self._board, model.read_assignment(solution)):
                state = self._record_moves()
                expected = min(model.compute_fits(solution), GREATEST)
                is_as_good = not state.is_counted or state.fits >= expected
                self._is_best &= is_as_good and is_proof
                if is_as_good:
                    return
            model.exclude(solution)
        self._reset(count)
        self._is_best = False

    def _record_proof(self, model: MoveModel, solution: Solution) -> None:
        self._is_best = solution.is_optimal
        if not isinstance(self._goal, MixGoal):
            bound = solution.bound + model.offset
            most = self._most_moves
            at_least = most + 1 if bound > most else round_up(max(bound, 0.0))
            self._at_least = max(self._at_least, at_least)

    def _record_moves(self) -> GoalState:
        """Record the moves on the board if they are the best so far; return the state of the goal."""
        state = self._assess_goal()
        if state.is_counted:
            moves = tuple(self._board.moves)
            value = (-state.missing, *state.gain, -len(moves))
            if self._best is None or value > self._best[0]:
                self._best = value, moves
        return state

    def _is_good_enough(self) -> bool:
        if self._best is None or isinstance(self._goal, MixGoal):
            return False
        value, moves = self._best
        return not value[0] and len(moves) <= self._at_least

    # -- describing the plan ---------------------------------------------------------------------

    def _assess_goal(self) -> GoalState:
        board, goal = self._board, self._goal
        empty_trees = board.count_empty_trees()
        misplaced: int | None = None
        fits: int | None = None
        missing, is_counted = 0, True
        gain: tuple[int, ...] = ()
        match goal:
            case EvacuationGoal():
                misplaced = missing = len(board.find_misplaced())
            case CapacityGoal():
                counted = count_now(board.forest, goal.request, self._budget, self._end)
                fits, is_counted = counted.fits, counted.is_complete
                missing = max(goal.amount - fits, 0)
                if not is_counted:
                    self._is_complete = self._is_best = False
            case MixGoal():
                sums = self._mix_counter.count_in_trees(board.forest).sum(axis=0)
                fits = sum(map(mul, (weight for _, weight in goal.requests), sums.tolist()))
                gain = (empty_trees * goal.empty_trees, fits)
        document = {
            "left": misplaced,
            "fits": None if fits is None else cap_count(fits),
            "empty_trees": empty_trees,
        }
        return GoalState(missing, fits or 0, gain, document, is_counted)

    @cached_property
    def _mix_counter(self) -> TreeCounter:
        requests = self._goal.requests if isinstance(self._goal, MixGoal) else ()
        counts = [RequestCounts(self._forest, each, self._budget) for each, _ in requests]
        return TreeCounter(self._forest, counts)

    def _make_document(self, before: GoalState, after: GoalState) -> dict[str, Any]:
        count = len(self._board.moves)
        misplaced = (
            sorted(self._board.find_misplaced()) if isinstance(self._goal, EvacuationGoal) else []
        )
        stuck, are_all_found = find_reasons(self._board, misplaced, self._end)
        self._is_complete &= are_all_found
        if time.monotonic() >= self._planning_end:
            self._is_complete = False
        reached, at_least, proven = True, None, False
        if isinstance(self._goal, MixGoal):
            optimal = self._is_best
        else:
            reached = not after.missing
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
            "moves": [_make_move_document(self._forest, move) for move in self._board.moves],
            "stuck": stuck,
            "before": before.document,
            "after": after.document,
        }


def _make_move_document(forest: Forest, move: Move) -> dict[str, Any]:
    consumer = move.mover.consumer
    body = move.candidate.body(forest)
    return {
        "consumer": consumer.uuid,
        "alternative": consumer.numbers[move.alternative],
        "from": {uuid: {"resources": dict(n)} for uuid, n in consumer.allocations.items()},
        "to": {uuid: {"resources": n} for uuid, n in body.allocations.items()},
        "mappings": body.mappings,
        "from_roots": _make_roots(forest, move.mover.trees),
        "to_roots": _make_roots(forest, move.candidate.trees),
        "consumer_generation": consumer.generation,
    }


def _make_roots(forest: Forest, trees: Sequence[int]) -> list[dict[str, str]]:
    return [{"uuid": uuid, "name": name} for uuid, name in find_roots(forest, trees)]
