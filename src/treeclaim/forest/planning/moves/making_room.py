# SPDX-License-Identifier: Apache-2.0
"""Room made for more consumers of a request in a large world: for one after the other."""

import time
from collections.abc import Sequence

from treeclaim.forest.placing.scratch import Gift
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.chains import Chains
from treeclaim.forest.planning.moves.clearing import Clearing, Option
from treeclaim.model.request import CandidateRequest

_MORE = 4
"""Moves beyond the fewest that such plans may have as need no room made for those who go."""

_SECONDS = 1.0
"""For such plans of a certain length."""


class RoomMaking:
    """Makes room for consumers of a request, who are placed for the time being."""

    def __init__(self, board: Board, clearing: Clearing, request: CandidateRequest) -> None:
        """Begin where everybody is."""
        self._board = board
        self._clearing = clearing
        self._request = request
        self._placed: list[Gift] = []

    def make(self, more: int, most: int) -> None:
        """Make room for so many more than fit now, by so many moves at most."""
        query = self._board.query(self._request)
        while not self._clearing.is_over():
            with self._board.budget.scope():
                candidate = query.first(self._board.everywhere, lambda _: True)
            if candidate is None:
                break
            self._take(candidate.gifts)
        for _ in range(more):
            gifts = self._for_one(most - len(self._board.moves))
            if gifts is None:
                break
            self._placed += gifts
            self._board.keep()
        self._board.take([(position, name, -n) for position, name, n in self._placed])
        self._placed.clear()

    def _take(self, gifts: Sequence[Gift]) -> None:
        self._board.take(list(gifts))
        self._placed += gifts

    def _for_one(self, most: int) -> Sequence[Gift] | None:
        """Make room for one, by as few moves as possible."""
        board, before = self._board, len(self._board.moves)
        options = self._clearing.options(self._request)
        fewest, gifts = self._directly(options, most)
        moves = board.moves[before:]
        if gifts is not None:
            if len(moves) <= fewest:
                return gifts
            board.take([(position, name, -n) for position, name, n in gifts])
            most = len(moves) - 1
        board.undo(before)
        chained: Option | None = None
        try:
            chained = Chains(board, self._clearing).clear(options, most)
        finally:
            # What was found is kept, wherever the time is over.
            if chained is None and gifts is not None:
                board.undo(before)
                board.replay(moves)
                board.keep()
        taken = gifts if chained is None else chained.gifts
        if taken is not None:
            board.take(list(taken))
        return taken

    def _directly(self, options: Sequence[Option], most: int) -> tuple[int, Sequence[Gift] | None]:
        """Make room by moves of such as find room themselves; return how few could do that too."""
        with self._clearing.of_those_with_room():
            ranked = self._clearing.ranked(options)
            fewest = max(ranked[0][0], 1) if ranked else most
            for moves in range(fewest, min(most, fewest + _MORE) + 1):
                just = [option for count, option in ranked if count in (moves, moves - 1)]
                found = self._first(just, moves)
                if found is not None:
                    return fewest, found
        return fewest, None

    def _first(self, options: Sequence[Option], moves: int) -> Sequence[Gift] | None:
        end = time.monotonic() + _SECONDS
        for option in options:
            if self._clearing.is_over() or time.monotonic() >= end:
                return None
            gifts = self._clearing.clear(option, moves)
            if gifts is not None:
                return gifts
        return None
