# SPDX-License-Identifier: Apache-2.0
"""Room made for more consumers of a request in a large world: for one after the other."""

import time
from collections.abc import Sequence

from treeclaim.forest.placing.scratch import Gift
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.clearing import Clearing, Option
from treeclaim.model.request import CandidateRequest

_MORE = 4
"""Moves beyond the fewest that such plans may have as need no room made for those who go."""

_DIRECT_SECONDS = 1.0
_CHAIN_SECONDS = 0.6
"""For such plans of a certain length, and for those in which somebody makes room for one who goes."""


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
                found = query.first(self._board.everywhere, lambda _: True)
            if found is None:
                break
            self._take(found.gifts)
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
        options = self._clearing.options(self._request)
        with self._clearing.of_those_with_room():
            direct = self._clearing.ranked(options)
            fewest = direct[0][0] if direct else most
            for moves in range(max(fewest, 1), min(most, fewest + _MORE) + 1):
                just = [option for count, option in direct if count in (moves, moves - 1)]
                found = self._first(just, moves, time.monotonic() + _DIRECT_SECONDS)
                if found is not None:
                    return found
        ranked = self._clearing.ranked(options)
        moves = ranked[0][0] if ranked else most
        while moves < most and not self._clearing.is_over():
            moves = min(moves + 1 + moves // 4, most)
            some = [option for fewest, option in ranked if fewest <= moves]
            found = self._first(some, moves, time.monotonic() + _CHAIN_SECONDS)
            if found is not None:
                return found
        return None

    def _first(
        self, options: Sequence[Option], moves: int, end: float | None
    ) -> Sequence[Gift] | None:
        for option in options:
            if self._clearing.is_over() or (end is not None and time.monotonic() >= end):
                return None
            gifts = self._clearing.clear(option, moves)
            if gifts is not None:
                return gifts
        return None
