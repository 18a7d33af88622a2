# SPDX-License-Identifier: Apache-2.0
"""Plans of moves (contract page 101, section 5): a pure function of what is where and of the call."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.explain.explain import Focus, explained
from treeclaim.forest.placing.capacity import counted_now
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves.aims import aim_of
from treeclaim.forest.planning.moves.board import Board, Move
from treeclaim.forest.planning.moves.bounds import FitBound, keep_bounds, options_of
from treeclaim.forest.planning.moves.clearing import Clearing
from treeclaim.forest.planning.moves.exact import Exact
from treeclaim.forest.planning.moves.keeping import Keeping
from treeclaim.forest.planning.moves.making_room import Emptying, RoomMaking
from treeclaim.forest.planning.moves.picture import Mover, Picture, Stuck
from treeclaim.forest.planning.moves.plan import Plan, Standing
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST
from treeclaim.model.errors import (
    InvalidValueError,
    ResourceClassNotFoundError,
    SearchGivenUpError,
    TraitsNotFoundError,
)
from treeclaim.model.extension.moves import Empty, Fit, Goal, Keep, Moves
from treeclaim.model.request import CandidateRequest

MOST_TREES = 6
"""How many trees a world may have for the best plan to be searched for."""

MOST_MOVERS = 12
"""How many consumers may move in such a world."""

_EXACT_SHARE = 0.5
"""The share of the available time that this search may take."""

_SHARE = 0.8
"""The share of the available time in which plans are looked for: the rest is for describing the best."""

_ENDLESS = 86_400.0


def planned(
    forest: Forest,
    consumers: Iterable[PlannedConsumer],
    call: Moves,
    budget: Budget,
    end: float | None = None,
) -> dict[str, Any]:
    """Return a plan as the answer of the call.

    Args:
        forest: Where everybody is; `given` is applied.
        consumers: All consumers that hold something in it.
        call: The call; all names in its queries exist.
        budget: What all of it may cost, more than what is asked for by `end`.
        end: When the best so far is to be returned, by the monotonic clock; None for no end. After it
            nothing is searched or counted: what remains is in proportion to the consumers.

    Raises:
        InvalidValueError: if a provider whose tree is to be empty does not exist.
    """
    now = time.monotonic()
    most = _ENDLESS if end is None else max(end - now, 0.0)
    call = replace(call, goal=_known(forest, call.goal))
    picture = Picture(forest, consumers, call, budget)
    return _Planner(picture, budget, now + _SHARE * most, now + most).plan().document(picture)


def _known(forest: Forest, goal: Goal) -> Goal:
    """Return a goal without what fits nowhere: requests of a mix one of whose names is gone.

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
    """Makes one plan: looks for it until an end, and then judges it until a last one."""

    def __init__(self, picture: Picture, budget: Budget, end: float, last: float) -> None:
        self._picture = picture
        self._call = picture.call
        self._budget = budget
        self._end = end
        self._last = last
        self._is_complete = True
        self._is_exact = False
        self._fewest: int | None = None

    def plan(self) -> Plan:
        """Make it: exactly, if the world is small; else by what is known to be good."""
        board = Board(self._picture, self._budget)
        before = self._standing(board)
        moves = self._exact()
        if not self._is_exact:
            moves = self._better(board, moves, self._found())
        board.replay(moves)
        return self._judged(board, before, self._standing(board))

    @contextmanager
    def _while_time_is_left(self) -> Iterator[None]:
        """Let the block run until the last end; what it has found by then stands."""
        try:
            with self._budget.ending(self._last):
                yield
        except SearchGivenUpError:
            self._is_complete = False

    # -- in a small world ------------------------------------------------------------------------

    def _exact(self) -> Sequence[Move]:
        picture = self._picture
        if len(picture.forest.order.roots) > MOST_TREES or len(picture.movable) > MOST_MOVERS:
            return ()
        search: Exact | None = None
        begin = time.monotonic()
        try:
            with self._budget.ending(begin + (self._end - begin) * _EXACT_SHARE):
                options = options_of(picture, self._budget)
                if options is not None:
                    aim = aim_of(picture, self._call.goal, self._budget)
                    search = Exact(picture, options, aim, self._budget)
                    search.search(self._call.max_moves)
                    self._is_exact = True
        except SearchGivenUpError:
            self._is_complete = False
        if search is None:
            return ()
        self._fewest = search.fewest
        return search.plan

    # -- in a large one --------------------------------------------------------------------------

    def _found(self) -> Sequence[Move]:
        board = Board(self._picture, self._budget)
        clearing = Clearing(board, self._end)
        goal, most = self._call.goal, self._call.max_moves
        try:
            with self._budget.ending(self._end):
                if isinstance(goal, Empty):
                    emptying = Emptying(board, clearing, most)
                    try:
                        emptying.find()
                    finally:
                        board.undo(0)
                        board.replay(emptying.best)
                        board.keep()
                elif isinstance(goal, Fit):
                    counted = counted_now(board.forest, goal.request, self._budget)
                    room = RoomMaking(board, clearing, goal.request)
                    room.make(goal.amount - counted.fits, most)
                else:
                    Keeping(board, clearing, goal, most).make()
        except SearchGivenUpError:
            self._is_complete = False
            board.undo(board.kept)
        if time.monotonic() >= self._end:
            self._is_complete = False
        return tuple(board.moves)

    def _better(
        self, board: Board, first: Sequence[Move], second: Sequence[Move]
    ) -> Sequence[Move]:
        """Return the plan that is worth more; without the time to count that, the second, if any."""
        worth, more = self._worth(board, first), self._worth(board, second)
        if worth is None or more is None:
            return second or first
        return second if more > worth else first

    def _worth(self, board: Board, moves: Sequence[Move]) -> tuple[int, ...] | None:
        """Return what a plan is worth, the more the greater; None without the time to count it."""
        board.replay(moves)
        standing = self._standing(board)
        board.undo(0)
        if not standing.is_counted:
            return None
        goal = self._call.goal
        if isinstance(goal, Empty):
            return -(standing.left or 0), -len(moves)
        fits = standing.fits or 0
        if isinstance(goal, Fit):
            return min(fits, goal.amount), -len(moves)
        return standing.empty_trees * goal.empty_trees, fits, -len(moves)

    # -- what is known of it ---------------------------------------------------------------------

    def _standing(self, board: Board) -> Standing:
        goal, mix = self._call.goal, list[tuple[CandidateRequest, int]]()
        left = len(board.left()) if isinstance(goal, Empty) else None
        if isinstance(goal, Fit):
            mix = [(goal.request, 1)]
        elif isinstance(goal, Keep):
            mix = list(goal.requests)
        counted = [
            (counted_now(board.forest, request, self._budget, self._last), weight)
            for request, weight in mix
        ]
        fits = None if left is not None else sum(weight * some.fits for some, weight in counted)
        is_counted = all(some.is_complete for some, _ in counted)
        if not is_counted:
            self._is_complete = self._is_exact = False
        return Standing(left, fits, board.empty_trees, is_counted)

    def _judged(self, board: Board, before: Standing, after: Standing) -> Plan:
        moves = tuple(board.moves)
        goal, most = self._call.goal, self._call.max_moves
        stuck, explanation = self._stuck(board)
        at_most: Mapping[str, int] | None = None
        at_least: int | None = None
        proven = False
        if isinstance(goal, Keep):
            reached = True
            at_most = {"empty_trees": len(self._picture.forest.order.roots), "fits": GREATEST}
            if self._is_exact:
                at_most = {"empty_trees": after.empty_trees, "fits": after.fits or 0}
            else:
                with self._while_time_is_left():
                    at_most = keep_bounds(self._picture, goal, most, self._budget)
            optimal = after.fits == at_most["fits"] and (
                not goal.empty_trees or after.empty_trees == at_most["empty_trees"]
            )
        else:
            if isinstance(goal, Empty):
                reached = not after.left
                at_least = before.left or 0
                proven = at_least > most or any(
                    reason in (Stuck.NOT_MOVABLE, Stuck.NO_REQUEST) for reason in stuck.values()
                )
            else:
                reached = (after.fits or 0) >= goal.amount
                at_least = 0
                with self._while_time_is_left():
                    bound = FitBound(self._picture, goal, self._budget)
                    at_least = bound.at_least()
                    proven = bound.is_in_vain or at_least > most
            at_least = max(at_least, self._fewest or 0)
            proven = not reached and (proven or self._is_exact)
            optimal = reached and len(moves) <= at_least
        return Plan(
            moves=moves,
            reached=reached,
            complete=self._is_complete,
            at_least=at_least,
            at_most=at_most,
            optimal=optimal,
            proven=proven,
            stuck=stuck,
            explanation=explanation,
            before=before,
            after=after,
        )

    # -- who is left -----------------------------------------------------------------------------

    def _stuck(self, board: Board) -> tuple[dict[str, Stuck], Mapping[str, Any] | None]:
        reasons: dict[str, Stuck] = {}
        explanation: Mapping[str, Any] | None = None
        for uuid in sorted(board.left()) if isinstance(self._call.goal, Empty) else ():
            mover = self._picture.mover(uuid)
            reasons[uuid] = Stuck.NOT_MOVABLE if mover is None else self._why(board, mover)
            if mover is not None and reasons[uuid] is Stuck.NO_ROOM and explanation is None:
                with self._while_time_is_left():
                    explanation = self._explained(board, mover) if self._call.explain else None
        return reasons, explanation

    def _why(self, board: Board, mover: Mover) -> Stuck:
        """Return why a consumer is left: no room was found, if there is no time to look."""
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

    def _explained(self, board: Board, mover: Mover) -> Mapping[str, Any]:
        """Explain why the first alternative of a consumer has no candidate beside the other moves."""
        forest, order = self._picture.forest, self._picture.forest.order
        request = mover.alternatives[0]
        rows = [int(order.row[root]) for root in order.roots[self._picture.emptied]]
        uuids = tuple(map(forest.uuid_of, rows))
        root = replace(request.root, not_in_tree=(*request.root.not_in_tree, *uuids))
        with self._budget.scope():
            return explained(board.forest, replace(request, root=root), Focus(), self._budget)
