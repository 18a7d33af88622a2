# SPDX-License-Identifier: Apache-2.0
"""Runs questions in forked children, within bounds of number and time.

Four children run at once. After one second, a child needs one of two long places. So two questions that take all
their time leave two children for questions of medium length, none of which waits for longer than a second.
"""

import time
from collections.abc import Callable, Iterator

from treeclaim import metrics
from treeclaim.gate import Gate
from treeclaim.model.deadlines import has_passed
from treeclaim.model.errors import OverloadedError, TreeclaimError
from treeclaim.replica.asking import Asked
from treeclaim.replica.child_process import Child
from treeclaim.replica.kept import KeptAnswer

MAX_CHILDREN = 4
"""Children at once. They share what the machine's cores leave, at a lower priority, and stay within the memory of
one worker."""

MAX_LONG_CHILDREN = 2

BRIEF_SECONDS = 1.0
"""Seconds without a long place: enough for most real questions, were they a hundred times slower than usual."""

_STREAM_SECONDS = 300.0
"""Seconds for sending an answer: 600 MB at a slow 2 MB/s. A client that does not read would keep a child forever."""

_SEARCHES = "search for long questions"
_PLANS = "planning"


class ChildPool:
    """Answers questions and plans in children.

    Attributes:
        children: The places of all children but that of a plan.
        long: The places of children that take longer than a second.
    """

    def __init__(self, places: int) -> None:
        """Set how many questions may have or await a child."""
        self.children = Gate(MAX_CHILDREN, places)
        self.long = Gate(MAX_LONG_CHILDREN)
        self._plan = Gate(1, 0)

    def answer(
        self, asked: Asked, start: Callable[[], Child | KeptAnswer]
    ) -> "KeptAnswer | AnswerStream":
        """Answer a question in a child.

        Args:
            asked: The arrival of the question, and its client.
            start: Starts a child, or returns the answer if it is known by now.

        Raises:
            OverloadedError: if there is no place, or no long place after a second.
            TreeclaimError: if the question, a bound or the client's end gives reason.
        """
        if not self.children.acquire(asked.wait, asked.is_gone):
            raise asked.refused(_SEARCHES)
        run = _Run(self.children)
        with run:
            child = start()
            if isinstance(child, KeptAnswer):
                return child
            run.child = child
            if not child.begun(min(BRIEF_SECONDS, child.time_left)):
                if has_passed(asked.end):
                    raise asked.given_up()
                if not self.long.acquire(0):
                    raise OverloadedError(_SEARCHES)
                run.gates.append(self.long)
            return run.first_piece(asked)

    def answer_plan(self, asked: Asked, start: Callable[[], Child]) -> "KeptAnswer | AnswerStream":
        """Answer a plan in a child. Only one runs at a time, and none waits.

        Raises:
            OverloadedError: if another plan runs.
            TreeclaimError: if the question, a bound or the client's end gives reason.
        """
        if not self._plan.acquire(0):
            raise OverloadedError(_PLANS)
        run = _Run(self._plan)
        with run:
            run.child = start()
            return run.first_piece(asked)


class _Run:
    """A child with its places; as a context, it ends unless its answer is streamed."""

    def __init__(self, gate: Gate) -> None:
        self.child: Child | None = None
        self.gates = [gate]
        self._is_streamed = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if not self._is_streamed:
            self.end()

    def first_piece(self, asked: Asked) -> "KeptAnswer | AnswerStream":
        """Return the whole answer, or a stream that keeps the child."""
        if self.child is None:
            raise RuntimeError("the child has not been started")
        first = self.child.first()
        if isinstance(first, KeptAnswer):
            return first
        self._is_streamed = True
        return AnswerStream(self, first, asked)

    def end(self) -> None:
        """End the child and give the places back, once."""
        gates, self.gates = self.gates, []
        try:
            if gates and self.child is not None:
                self.child.end()
        finally:
            for gate in gates:
                gate.release()


class AnswerStream:
    """A long answer, sent while the child makes the rest; the child ends with it."""

    def __init__(self, run: _Run, first: bytes, asked: Asked) -> None:
        self._run = run
        self._pieces = self._read_pieces(run, first, asked)

    def _read_pieces(self, run: _Run, first: bytes, asked: Asked) -> Iterator[bytes]:
        child = run.child
        if child is None:
            return
        end = time.monotonic() + _STREAM_SECONDS
        yield first
        for piece in child.pieces(_STREAM_SECONDS if asked.seconds is None else asked.seconds):
            if isinstance(piece, int):
                metrics.CANDIDATES.inc(piece)
                return
            if time.monotonic() > end:
                raise OverloadedError(_SEARCHES)
            yield piece

    def __iter__(self) -> Iterator[bytes]:
        """Return the stream itself."""
        return self

    def __next__(self) -> bytes:
        """Return the next piece.

        Raises:
            TreeclaimError: if the answer cannot be completed. The pieces so far are then not JSON, and the server
                breaks the connection.
        """
        try:
            return next(self._pieces)
        except (StopIteration, TreeclaimError):
            self.close()
            raise

    def close(self) -> None:
        """End the child; servers call this after sending the answer, or when the client has gone."""
        self._run.end()

    def __del__(self) -> None:
        """End the child where the server forgot to."""
        self._run.end()
