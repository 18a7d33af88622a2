# SPDX-License-Identifier: Apache-2.0
"""Reasons of the consumers that a plan leaves where they may not be (contract page 101, section 5.3)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.movers import Mover, StuckReason
from treeclaim.model.errors import SearchGivenUpError


def find_reasons(
    board: Board, uuids: Iterable[str], end: float
) -> tuple[list[dict[str, Any]], bool]:
    """Return the member `stuck` of the response, and whether there was time to find all reasons.

    Args:
        board: The moves of the plan.
        uuids: The consumers that are left.
        end: When the search ends, by the monotonic clock; the reason is `no_room` then.
    """
    stuck: list[dict[str, Any]] = []
    is_explained, is_complete = not board.situation.call.explain, True
    for uuid in uuids:
        mover = board.situation.mover(uuid)
        reason = StuckReason.NOT_MOVABLE if mover is None else mover.stuck or StuckReason.NO_ROOM
        stuck.append({"consumer": uuid, "reason": reason.value})
        if mover is None or mover.stuck is not None:
            continue
        try:
            with board.budget.ending(end):
                reason = _reason(board, mover)
                stuck[-1]["reason"] = reason.value
                if reason is StuckReason.NO_ROOM and not is_explained:
                    is_explained = True
                    stuck[-1]["explanation"] = _explanation(board, mover)
        except SearchGivenUpError:
            is_complete = False
    return stuck, is_complete


def _reason(board: Board, mover: Mover) -> StuckReason:
    if any(move.mover is mover for move in board.moves):
        return StuckReason.NO_ROOM
    if board.find(mover) is not None:
        return StuckReason.MAX_MOVES
    if board.find(mover, by_rules=False) is not None:
        return StuckReason.RULE
    return StuckReason.NO_ROOM


def _explanation(board: Board, mover: Mover) -> Mapping[str, Any]:
    """Explain why the first alternative of a consumer has no candidate beside the other moves."""
    request = mover.alternatives[0]
    roots = board.forest.order.roots[board.situation.emptied].tolist()
    emptied = tuple(map(board.forest.uuid_of, roots))
    root = replace(request.root, not_in_tree=(*request.root.not_in_tree, *emptied))
    with board.budget.scope():
        return explain_request(board.forest, replace(request, root=root), Focus(), board.budget)
