# SPDX-License-Identifier: Apache-2.0
"""Plans of moves (contract page 101, section 5).

A greedy plan comes first. If it is not proven to be the best, an integer program is solved: of the whole cloud if
that is small enough, else of the trees that look most promising, more of them each time. Its solution is put into a
legal order; a solution without one is excluded, and the program is solved again. Only a program of the whole cloud
proves anything.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.explain.explain import Focus, explained
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.placing.candidate import roots_of
from treeclaim.forest.placing.capacity import counted_now
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves.board import Board, Move
from treeclaim.forest.planning.moves.greedy import MissingMoves, Sizes, make_room, move_away
from treeclaim.forest.planning.moves.integer_program import Solution, round_up
from treeclaim.forest.planning.moves.move_model import ModelTooLargeError, MoveModel
from treeclaim.forest.planning.moves.picture import Mover, Picture, Stuck
from treeclaim.forest.planning.moves.places import Places
from treeclaim.forest.planning.moves.sequence import order_moves
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
"""Solutions of one program that are excluded because their moves have no legal order."""

_PLANNING_SHARE = 0.8
"""Share of the available time for finding a plan; the rest is for describing it."""

_SOLVING_SHARE = 0.6
"""Share of the remaining time for one run of the solver; the rest is for ordering the moves, and other programs."""

_NO_DEADLINE = 86_400.0


@dataclass(frozen=True, slots=True)
class Situation:
    """The state before or after a plan.

    Attributes:
        left: Consumers where the goal forbids them; None for the goals `fit` and `keep`.
        fits: What the goals `fit` and `keep` count; None for other goals.
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


def planned(
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
        budget: What the plan may cost, beyond `end`.
        end: When the best plan so far is returned, by the monotonic clock; None for no deadline.

    Raises:
        InvalidValueError: if a provider whose tree is to be emptied does not exist.
    """
    now = time.monotonic()
    seconds = _NO_DEADLINE if end is None else max(end - now, 0.0)
    call = replace(call, goal=_known_goal(forest, call.goal))
    picture = Picture(forest, consumers, call, budget)
    return _Planner(picture, now + _PLANNING_SHARE * seconds, now + seconds).plan()


def _known_goal(forest: Forest, goal: Goal) -> Goal:
    """Return a goal without the requests of a mix that name what does not exist.

    Raises:
        InvalidValueError: for a provider that does not exist.
    """
    if isinstance(goal, Empty):
        for uuid in goal.providers:
            if forest.row_of(uuid) is None:
                raise InvalidValueError(
                    f"goal.empty: resource provider {uuid} that does not exist."
                )
    if not isinstance(goal, Keep):
        return goal
    known = []
    for request, weight in goal.requests:
        with suppress(ResourceClassNotFoundError, TraitsNotFoundError):
            require_known_names(forest, request)
            known.append((request, weight))
    return replace(goal, requests=tuple(known))


class _Planner:
    """Makes the plan of one call."""

    def __init__(self, picture: Picture, planning_end: float, end: float) -> None:
        self._picture = picture
        self._call = picture.call
        self._budget = picture.budget
        self._planning_end = planning_end
        self._end = end
        self._is_complete = True
        self._counts: list[tuple[RequestCounts, int]] = []
        self._at_least = 0
        self._is_best = False
        """Whether a program of the whole cloud proves that no plan comes nearer to the goal."""
        self._best: tuple[tuple[int, ...], Sequence[Move]] | None = None

    def plan(self) -> dict[str, Any]:
        """Make the plan, and describe it."""
        board = Board(self._picture, self._budget)
        goal = self._call.goal
        if isinstance(goal, Keep):
            self._counts = [
                (RequestCounts(self._picture.forest, request, self._budget), weight)
                for request, weight in goal.requests
            ]
        before = self._situation(board)
        self._note(board)
        if isinstance(goal, Empty):
            self._at_least = before.left or 0
        elif before.is_counted and isinstance(goal, Fit) and not self._is_reached(before):
            self._at_least = 1
        if not self._is_reached(before):
            self._search(board)
        board.replay(self._best[1] if self._best else ())
        return self._document(board, before, self._situation(board))

    # -- finding a plan --------------------------------------------------------------------------

    def _search(self, board: Board) -> None:
        try:
            with self._budget.ending(self._planning_end):
                places = Places(self._picture)
                self._check_reachable(places)
                self._find_greedily(board, places)
                if not self._is_good_enough():
                    self._solve(board, places)
        except (SearchGivenUpError, MemoryError):
            # A solver that has no more memory has freed it by now, and the greedy plan is kept.
            self._is_complete = False
            board.undo(0)

    def _check_reachable(self, places: Places) -> None:
        """Find out whether the goal `fit` is out of reach even if all movable consumers left."""
        goal = self._call.goal
        if isinstance(goal, Fit):
            most = counted_now(places.forest, goal.request, self._budget).at_most
            if most < goal.amount:
                self._at_least = self._call.max_moves + 1

    def _find_greedily(self, board: Board, places: Places) -> None:
        goal, most = self._call.goal, self._call.max_moves
        try:
            if isinstance(goal, Empty):
                movers = map(self._picture.mover, self._picture.left)
                going = [mover for mover in movers if mover is not None and mover.stays is None]
                move_away(board, going, most)
            elif isinstance(goal, Fit):
                make_room(board, places, goal, most)
        finally:
            self._note(board)
            board.undo(0)

    def _solve(self, board: Board, places: Places) -> None:
        try:
            model = MoveModel(self._picture, places, self._call.goal, self._call.max_moves, None)
        except ModelTooLargeError:
            for count in _PROMISING_TREES:
                trees = self._promising(board, places, count)
                with suppress(ModelTooLargeError):
                    self._solve_model(
                        board,
                        MoveModel(
                            self._picture, places, self._call.goal, self._call.max_moves, trees
                        ),
                    )
                if self._is_good_enough() or trees.all():
                    return
            return
        self._solve_model(board, model)

    def _solve_model(self, board: Board, model: MoveModel) -> None:
        """Solve a program, and note its best solution that has a legal order."""
        is_proof = model.is_complete
        for _ in range(_MOST_CUTS + 1):
            seconds = self._planning_end - time.monotonic()
            solution = model.solve(_SOLVING_SHARE * seconds)
            self._is_complete &= solution.is_optimal
            if is_proof:
                self._prove(model, solution)
            if solution.values is None:
                return
            order = order_moves(self._picture, model.assignment(solution))
            if order.moves is not None:
                board.replay(order.moves)
                is_as_good = self._note(board, model, solution)
                board.undo(0)
                self._is_best &= is_as_good and is_proof
                if is_as_good:
                    return
            is_proof &= order.moves is None and order.is_certain and model.are_exclusions_exact
            model.exclude(solution)
        self._is_best = False

    def _prove(self, model: MoveModel, solution: Solution) -> None:
        """Take what a program of the whole cloud proves."""
        self._is_best = solution.is_optimal
        if isinstance(self._call.goal, Keep):
            return
        bound = solution.bound + model.offset
        most = self._call.max_moves
        at_least = most + 1 if bound > most else max(round_up(bound), 0)
        self._at_least = max(self._at_least, at_least)

    def _note(
        self, board: Board, model: MoveModel | None = None, solution: Solution | None = None
    ) -> bool:
        """Keep the moves on the board if they are the best so far.

        Returns:
            Whether they are worth what the solution of a program promises.
        """
        situation = self._situation(board)
        if not situation.is_counted:
            return True
        value = self._value(situation, len(board.moves))
        if self._best is None or value > self._best[0]:
            self._best = value, tuple(board.moves)
        if model is None or solution is None:
            return True
        return (situation.fits or 0) >= min(model.promise(solution), GREATEST)

    def _value(self, situation: Situation, moves: int) -> tuple[int, ...]:
        """Return the value of a plan: the greater, the better."""
        goal = self._call.goal
        if isinstance(goal, Empty):
            return -(situation.left or 0), -moves
        fits = situation.fits or 0
        if isinstance(goal, Fit):
            return min(fits, goal.amount), -moves
        return situation.empty_trees * goal.empty_trees, fits, -moves

    def _is_good_enough(self) -> bool:
        if self._best is None or isinstance(self._call.goal, Keep):
            return False
        value, moves = self._best
        is_reached = value[0] == (
            0 if isinstance(self._call.goal, Empty) else self._call.goal.amount
        )
        return is_reached and len(moves) <= self._at_least

    def _promising(self, board: Board, places: Places, count: int) -> Mask:
        """Return the trees in which few moves gain most, and some trees with room for those who go."""
        goal, estimate = self._call.goal, MissingMoves(self._picture)
        trees = np.zeros(len(self._picture.forest.order.roots), dtype=np.bool_)
        if isinstance(goal, Keep):
            requests = [request for request, _ in goal.requests]
        elif isinstance(goal, Fit):
            requests = [goal.request]
        else:
            sizes = Sizes(self._picture.forest)
            movers = filter(None, map(self._picture.mover, self._picture.left))
            going = sorted((m for m in movers if m.alternatives), key=sizes.of, reverse=True)
            requests = list(dict.fromkeys(mover.alternatives[0] for mover in going))[:4]
        for request in requests:
            self._budget.check()
            ranked = [
                (fewest, candidate.trees)
                for candidate in places.first_of_each_tree(request)
                if (fewest := estimate.fewest(board, candidate)) is not None
                and (fewest or not isinstance(goal, Keep))
            ]
            ranked.sort(key=lambda pair: pair[0])
            for _, some in ranked[: max(count // len(requests), 1)]:
                trees[list(some)] = True
        if isinstance(goal, Keep) and goal.empty_trees:
            occupied = [board.occupants(tree) for tree in range(len(trees))]
            order = sorted((n, tree) for tree, n in enumerate(occupied) if n)
            trees[[tree for _, tree in order[:count]]] = True
        self._add_trees_with_room(board, places, trees, count)
        return trees & ~self._picture.emptied

    def _add_trees_with_room(self, board: Board, places: Places, trees: Mask, count: int) -> None:
        """Add some trees into which consumers of the others can go at once."""
        estimate = MissingMoves(self._picture)
        requests: dict[CandidateRequest, None] = {}
        for mover in self._picture.movable:
            if trees[list(mover.occupied)].any():
                requests.update(dict.fromkeys(mover.alternatives[:1]))
        for request in requests:
            self._budget.check()
            added = 0
            for candidate in places.first_of_each_tree(request):
                if added * max(len(requests), 1) >= count:
                    break
                if not estimate.missing(board, candidate):
                    trees[list(candidate.trees)] = True
                    added += 1

    # -- describing it ---------------------------------------------------------------------------

    @contextmanager
    def _while_time_is_left(self) -> Iterator[None]:
        """Run the block until the deadline; its results so far stay."""
        try:
            with self._budget.ending(self._end):
                yield
        except SearchGivenUpError:
            self._is_complete = False

    def _situation(self, board: Board) -> Situation:
        goal = self._call.goal
        if isinstance(goal, Empty):
            return Situation(len(board.left()), None, board.empty_trees)
        if isinstance(goal, Keep):
            fits = sum(
                weight * int(counts.in_trees(board.forest).sum())
                for counts, weight in self._counts
            )
            return Situation(None, shown(fits), board.empty_trees)
        counted = counted_now(board.forest, goal.request, self._budget, self._end)
        if not counted.is_complete:
            self._is_complete = self._is_best = False
        return Situation(None, counted.fits, board.empty_trees, counted.is_complete)

    def _is_reached(self, situation: Situation) -> bool:
        goal = self._call.goal
        if isinstance(goal, Empty):
            return not situation.left
        return isinstance(goal, Fit) and (situation.fits or 0) >= goal.amount

    def _document(self, board: Board, before: Situation, after: Situation) -> dict[str, Any]:
        goal, count = self._call.goal, len(board.moves)
        stuck = self._stuck(board)
        if time.monotonic() >= self._planning_end:
            self._is_complete = False
        reached, at_least, proven = True, None, False
        if isinstance(goal, Keep):
            optimal = self._is_best
        else:
            reached = self._is_reached(after)
            at_least = self._at_least
            optimal = reached and count <= at_least
            proven = not reached and (
                at_least > self._call.max_moves
                or any(item["reason"] in (Stuck.NOT_MOVABLE, Stuck.NO_REQUEST) for item in stuck)
            )
        return {
            "reached": reached,
            "complete": self._is_complete,
            "at_least": at_least,
            "optimal": optimal,
            "proven": proven,
            "moves": [_move_document(self._picture, move) for move in board.moves],
            "stuck": stuck,
            "before": before.document(),
            "after": after.document(),
        }

    def _stuck(self, board: Board) -> list[dict[str, Any]]:
        """Return the consumers that are left, with reasons."""
        stuck: list[dict[str, Any]] = []
        is_explained = not self._call.explain
        for uuid in sorted(board.left()) if isinstance(self._call.goal, Empty) else ():
            mover = self._picture.mover(uuid)
            reason = Stuck.NOT_MOVABLE if mover is None else self._reason(board, mover)
            stuck.append({"consumer": uuid, "reason": reason.value})
            if mover is not None and reason is Stuck.NO_ROOM and not is_explained:
                is_explained = True
                with self._while_time_is_left():
                    stuck[-1]["explanation"] = self._explanation(board, mover)
        return stuck

    def _reason(self, board: Board, mover: Mover) -> Stuck:
        """Return why a consumer is left; `no_room` if no time is left to find out more."""
        if mover.stays is not None:
            return mover.stays
        if mover in board.places:
            return Stuck.NO_ROOM
        with self._while_time_is_left():
            if board.find(mover, board.everywhere) is not None:
                return Stuck.MAX_MOVES
            if board.find(mover, board.everywhere, by_rules=False) is not None:
                return Stuck.RULE
        return Stuck.NO_ROOM

    def _explanation(self, board: Board, mover: Mover) -> Mapping[str, Any]:
        """Explain why the first alternative of a consumer has no candidate beside the other moves."""
        forest, order = self._picture.forest, self._picture.forest.order
        request = mover.alternatives[0]
        rows = [int(order.row[root]) for root in order.roots[self._picture.emptied]]
        uuids = tuple(map(forest.uuid_of, rows))
        root = replace(request.root, not_in_tree=(*request.root.not_in_tree, *uuids))
        with self._budget.scope():
            return explained(board.forest, replace(request, root=root), Focus(), self._budget)


def _move_document(picture: Picture, move: Move) -> dict[str, Any]:
    consumer = move.mover.consumer
    body = move.candidate.told(picture.forest)
    return {
        "consumer": consumer.uuid,
        "alternative": consumer.numbers[move.alternative],
        "from": {uuid: {"resources": dict(n)} for uuid, n in consumer.allocations.items()},
        "to": {uuid: {"resources": n} for uuid, n in body.allocations.items()},
        "mappings": body.mappings,
        "from_roots": _roots(picture, move.mover.trees),
        "to_roots": _roots(picture, move.candidate.trees),
        "consumer_generation": consumer.generation,
    }


def _roots(picture: Picture, trees: Sequence[int]) -> list[dict[str, str]]:
    return [{"uuid": uuid, "name": name} for uuid, name in roots_of(picture.forest, trees)]
