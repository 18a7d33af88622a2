# SPDX-License-Identifier: Apache-2.0
"""Runs questions in forked children, with limits of number and time.

Four children run at once. After one second, a child needs one of two long places. Two very long questions
therefore leave two children for questions of medium length, which wait for at most a second.
"""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack

from treeclaim import metrics
from treeclaim.gate import Gate
from treeclaim.model.errors import OverloadedError
from treeclaim.model.timing import has_passed
from treeclaim.replica.answer_cache import WholeAnswer
from treeclaim.replica.child_process import Child
from treeclaim.replica.question import Arrival

MAX_CHILDREN = 4
"""Most concurrent children. They run at a lower priority, and together stay within the memory of one worker."""

MAX_LONG_CHILDREN = 2

BRIEF_SECONDS = 1.0
"""Seconds of a child without a long place: a hundred times the duration of most questions."""

_STREAM_SECONDS = 300.0
"""Seconds to send an answer: 600 MB at 2 MB/s. Without a limit, a client that does not read would keep a child
forever."""

_SEARCHES = "search for long questions"

AnswerStream = Generator[bytes, None, None]
"""The pieces of a long answer, sent while the child computes the next ones; its end terminates the child."""


class ChildPool:
    """Answers questions and plans in children; the gate `long` admits those that exceed `BRIEF_SECONDS`."""

    def __init__(self, places: int) -> None:
        """Limit the number of questions that have or await a child."""
        self.children = Gate(MAX_CHILDREN, places)
        self.long_gate = Gate(MAX_LONG_CHILDREN)
        self._plan = Gate(1, 0)

    def answer(
        self, arrival: Arrival, start: Callable[[], Child | WholeAnswer], *, is_plan: bool = False
    ) -> WholeAnswer | AnswerStream:
        """Answer a question in a child.

        `start` starts the child, or returns a cached answer.

        Raises:
            OverloadedError: if no place is free, no long place is free after a second, or another plan runs.
            TreeclaimError: if the question fails, exceeds a limit, or its client disconnects.
        """
        gate, wait = (self._plan, 0.0) if is_plan else (self.children, arrival.wait)
        if not gate.acquire(wait, arrival.is_gone):
            raise arrival.overload_error("planning" if is_plan else _SEARCHES)
        with ExitStack() as places:
            places.callback(gate.release)
            child = start()
            if isinstance(child, WholeAnswer):
                return child
            places.callback(child.end)
            if not is_plan and not child.wait_for_output(min(BRIEF_SECONDS, child.time_left)):
                if has_passed(arrival.end):
                    raise arrival.timeout_error()
                if not self.long_gate.acquire(0):
                    raise OverloadedError(_SEARCHES)
                places.callback(self.long_gate.release)
            output = child.receive_first()
            if isinstance(output, WholeAnswer):
                return output
            # The stream keeps the child and its places.
            stream = _stream(child, output, places.pop_all())
            next(stream)
            return stream


def _stream(child: Child, first_piece: bytes, places: ExitStack) -> AnswerStream:
    """Yield an empty piece, then the pieces of a long answer; finally terminate the child.

    The caller takes the empty piece at once, which enters the block. The child therefore also ends if the stream
    is closed or deleted unread. An error leaves the pieces so far as invalid JSON, and the server closes the
    connection.
    """
    with places:
        yield b""
        end = time.monotonic() + _STREAM_SECONDS
        yield first_piece
        for piece in child.pieces(_STREAM_SECONDS):
            if isinstance(piece, int):
                metrics.CANDIDATES.inc(piece)
                return
            if time.monotonic() > end:
                raise OverloadedError(_SEARCHES)
            yield piece
