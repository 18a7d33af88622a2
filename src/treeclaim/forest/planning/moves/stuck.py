# SPDX-License-Identifier: Apache-2.0
"""Reasons of the consumers that a plan leaves where they may not be (contract page 101, section 5.3)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.movers import Mover, StuckReason
from treeclaim.model.errors import SearchGivenUpError


class StuckConsumers:
    """Finds the reasons beside the moves on a board.

    Attributes:
        is_complete: Whether there was time to find all reasons.
    """

    def __init__(self, board: Board, end: float) -> None:
        """Search until a moment of the monotonic clock."""
        self._board = board
        self._end = end
        self.is_complete = True

    def document(self, uuids: Iterable[str]) -> list[dict[str, Any]]:
        """Return the member `stuck` of the response."""
        stuck: list[dict[str, Any]] = []
        is_explained = not self._board.situation.call.explain
        for uuid in uuids:
            mover = self._board.situation.mover(uuid)
            reason = StuckReason.NOT_MOVABLE if mover is None else self._reason(mover)
            stuck.append({"consumer": uuid, "reason": reason.value})
            if mover is not None and reason is StuckReason.NO_ROOM and not is_explained:
                is_explained = True
                with self._while_time_is_left():
                    stuck[-1]["explanation"] = self._explanation(mover)
        return stuck

    def _reason(self, mover: Mover) -> StuckReason:
        """Return why a consumer is left; `no_room` if no time is left to find out more."""
        if mover.stuck is not None:
            return mover.stuck
        if any(move.mover is mover for move in self._board.moves):
            return StuckReason.NO_ROOM
        with self._while_time_is_left():
            if self._board.find(mover) is not None:
                return StuckReason.MAX_MOVES
            if self._board.find(mover, by_rules=False) is not None:
                return StuckReason.RULE
        return StuckReason.NO_ROOM

    def _explanation(self, mover: Mover) -> Mapping[str, Any]:
        """Explain why the first alternative of a consumer has no candidate beside the other moves."""
        board, request = self._board, mover.alternatives[0]
        roots = board.forest.order.roots[board.situation.emptied].tolist()
        emptied = tuple(map(board.forest.uuid_of, roots))
        root = replace(request.root, not_in_tree=(*request.root.not_in_tree, *emptied))
        with board.budget.scope():
            request = replace(request, root=root)
            return explain_request(board.forest, request, Focus(), board.budget)

    @contextmanager
    def _while_time_is_left(self) -> Iterator[None]:
        """Run the block until the deadline; its results so far stay."""
        try:
            with self._board.budget.ending(self._end):
                yield
        except SearchGivenUpError:
            self.is_complete = False
