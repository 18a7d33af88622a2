# SPDX-License-Identifier: Apache-2.0
"""Long questions where no child can be forked: slices of time in the worker itself.

The question keeps its place in the search and lets those who wait have a turn in between. If one of
them takes in a change, the Forest is not the one that the question began with, and it is refused.
"""

import time

from treeclaim.gate import Gate
from treeclaim.model.errors import SearchTooLargeError
from treeclaim.replica.asking import LONGEST_WAIT, Asked, Drawn
from treeclaim.replica.following import Follower
from treeclaim.replica.kept import KeptAnswer

SLICE = 0.020
"""Seconds until those who wait have a turn: about what a question of theirs takes."""

MOST_BYTES = 64_000_000
"""Of an answer, all of which is in the worker's own memory here."""


class Slices:
    """Yields the turn now and then; the caller holds it before and after."""

    def __init__(self, turn: Gate, follower: Follower, asked: Asked) -> None:
        self._turn = turn
        self._follower = follower
        self._version = follower.version
        self._asked = asked
        self._begin = time.monotonic()

    def check(self) -> None:
        """Go on, possibly after others had a turn.

        Raises:
            SearchGivenUpError: if the time is over.
            OverloadedError: if the Forest has changed meanwhile.
            ClientGoneError: if the client has hung up.
        """
        now = time.monotonic()
        if now > self._asked.end:
            raise self._asked.given_up()
        if now - self._begin < SLICE or not self._turn.waiting:
            return
        self._turn.release()
        # Whatever happens, the caller must have the turn again.
        while not self._turn.acquire(LONGEST_WAIT):
            pass
        self._begin = time.monotonic()
        if self._follower.version != self._version or self._asked.is_gone():
            raise self._asked.refused("search for long questions")


def written(drawn: Drawn) -> KeptAnswer:
    """Write a whole answer.

    Raises:
        SearchTooLargeError: if it is too long to be kept in memory.
    """
    parts: list[bytes | memoryview] = []
    size = 0
    for piece in drawn.pieces():
        parts.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise SearchTooLargeError(MOST_BYTES // 1_000_000)
    return KeptAnswer.of(parts, drawn.candidates)
