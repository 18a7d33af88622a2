# SPDX-License-Identifier: Apache-2.0
"""The slow lane: long questions are answered by a bounded number of children.

It has two parts. A question is first given a second in the *brief* part, so that one of medium
length need not wait behind those that take all their time; only then does it go to the *long* part,
with its child if there is room, or else once more from the beginning.
"""

import time
from collections.abc import Callable, Iterator

from treeclaim import metrics
from treeclaim.gate import Gate
from treeclaim.model.deadlines import has_passed
from treeclaim.model.errors import OverloadedError, TreeclaimError
from treeclaim.replica.asking import Asked
from treeclaim.replica.children.parent import Child
from treeclaim.replica.kept import KeptAnswer

_CHILDREN = 2
"""Children at once in each part. They share what the machine's cores leave, at a lower priority;
two let one question that takes all its time not block the next one, and four of them in all stay
within the memory of one worker."""

_BRIEF_SECONDS = 1.0
"""What a question may take in the brief part: most of the real ones, were they a hundred times
slower than usual."""

_STREAM_SECONDS = 300.0
"""How long an answer may be sent altogether: 600 MB at a slow 2 MB/s. A client that does not read
would keep a child without end."""

_WHAT = "search for long questions"
_PLANS = "planning"


class SlowLane:
    """Runs children within bounds of number and time."""

    def __init__(self, places: int) -> None:
        """Set how many questions may be in each part, including waiting ones."""
        self._brief = Gate(_CHILDREN, places)
        self._long = Gate(_CHILDREN, places)

    def answer(
        self, asked: Asked, start: Callable[[], Child | KeptAnswer], *, is_very_long: bool
    ) -> "KeptAnswer | AnswerStream | None":
        """Answer a question by a child.

        Args:
            asked: When, and by whom.
            start: Starts a child, unless the answer is known by now.
            is_very_long: Leave out the brief part.

        Returns:
            The whole answer, or a stream; None if it takes longer than the brief part has time
            and there is no room in the long one: it is to be asked again as a very long one.

        Raises:
            TreeclaimError: as the question gives reason for, the bounds, or the client's going.
        """
        gate = self._long if is_very_long else self._brief
        if not gate.acquire(asked.wait, asked.is_gone):
            raise asked.refused(_WHAT)
        run = _Run(gate)
        try:
            outcome = self._run(run, asked, start, is_very_long=is_very_long)
        except BaseException:
            run.end()
            raise
        if not isinstance(outcome, AnswerStream):
            run.end()
        return outcome

    def _run(
        self,
        run: "_Run",
        asked: Asked,
        start: Callable[[], Child | KeptAnswer],
        *,
        is_very_long: bool,
    ) -> "KeptAnswer | AnswerStream | None":
        child = start()
        if isinstance(child, KeptAnswer):
            return child
        run.child = child
        if not is_very_long and not child.begun(min(_BRIEF_SECONDS, child.time_left)):
            if has_passed(asked.end):
                raise asked.given_up()
            if not self._long.acquire(0):
                return None
            run.move_to(self._long)
        first = child.first()
        return first if isinstance(first, KeptAnswer) else AnswerStream(run, first, asked)


class PlanLane:
    """Runs plans, one at a time; nobody waits for another's."""

    def __init__(self) -> None:
        self._gate = Gate(1, 0)

    def answer(self, asked: Asked, start: Callable[[], Child]) -> "KeptAnswer | AnswerStream":
        """Answer a question by a child.

        Args:
            asked: When, and by whom.
            start: Starts a child.

        Raises:
            OverloadedError: if another plan is made.
            TreeclaimError: as the question gives reason for, the bounds, or the client's going.
        """
        if not self._gate.acquire(0):
            raise OverloadedError(_PLANS)
        run = _Run(self._gate)
        try:
            run.child = start()
            first = run.child.first()
        except BaseException:
            run.end()
            raise
        if isinstance(first, KeptAnswer):
            run.end()
            return first
        return AnswerStream(run, first, asked)


class _Run:
    """A place in the lane, and the child that has it."""

    def __init__(self, gate: Gate) -> None:
        self.child: Child | None = None
        self._gate: Gate | None = gate

    def move_to(self, gate: Gate) -> None:
        """Exchange the place for another, already taken."""
        if self._gate is not None:
            self._gate.release()
        self._gate = gate

    def end(self) -> None:
        """End the child and give the place back, once."""
        gate, self._gate = self._gate, None
        if gate is None:
            return
        try:
            if self.child is not None:
                self.child.end()
        finally:
            gate.release()


class AnswerStream:
    """A long answer, sent while the child makes the rest; the child ends with it."""

    def __init__(self, run: _Run, first: bytes, asked: Asked) -> None:
        self._run = run
        self._pieces = self._drawn(run, first, asked)

    def _drawn(self, run: _Run, first: bytes, asked: Asked) -> Iterator[bytes]:
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
                raise OverloadedError(_WHAT)
            yield piece

    def __iter__(self) -> Iterator[bytes]:
        """Return the stream itself."""
        return self

    def __next__(self) -> bytes:
        """Return the next piece.

        Raises:
            TreeclaimError: if the answer cannot be completed; what was sent is then not JSON, and
                the server breaks the connection.
        """
        try:
            return next(self._pieces)
        except (StopIteration, TreeclaimError):
            self.close()
            raise

    def close(self) -> None:
        """Release the answer; servers call this after sending it, or when the client has gone."""
        self._run.end()

    def __del__(self) -> None:
        """Release the answer where the server forgot to."""
        self._run.end()
