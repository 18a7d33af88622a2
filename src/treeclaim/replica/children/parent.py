# SPDX-License-Identifier: Apache-2.0
"""A child, seen from its parent: reads the answer, and kills the child at its deadline."""

import os
import pickle
import select
import time
from collections.abc import Iterator
from contextlib import suppress

from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import Held
from treeclaim.model.errors import (
    ClientGoneError,
    OverloadedError,
    SearchTooLargeError,
)
from treeclaim.replica.asking import Asked, Question
from treeclaim.replica.children import wire
from treeclaim.replica.children.child import fork
from treeclaim.replica.children.wire import COUNT, HEADER, Kind, unpacked
from treeclaim.replica.kept import KeptAnswer

_LOOK_SECONDS = 0.1
"""Seconds between two looks whether the client is still there, while a child works."""

_LATENESS = 1.05
_LEAST_LATENESS = 0.25
"""A child gives up by itself when its time is over, and says so. It is killed where it did not
come to look at the clock: 5 % later, or so many seconds on a busy machine."""

_LARGEST_READ = 1 << 20
"""Bytes taken from the pipe at once: all that is in it."""


class Child:
    """A process that answers one question. Its owner must `end` it."""

    def __init__(
        self, question: Question, forest: Forest, asked: Asked, *, is_told: bool = False
    ) -> None:
        """Start it.

        Args:
            question: What it answers.
            forest: From what.
            asked: When, and by whom.
            is_told: Whether it first waits for `tell`.

        Raises:
            OSError: if the system has no room for it.
        """
        self._asked = asked
        self._forked = fork(question, forest, asked, is_told=is_told)
        self._poll = select.poll()
        self._poll.register(self._forked.answer, select.POLLIN)
        self._is_over = False

    def tell(self, held: Held) -> None:
        """Tell what holds have at the moment of the child's Forest.

        Raises:
            ClientGoneError: if the client has hung up meanwhile.
            TreeclaimError: if the child did not listen in time.
        """
        told = self._forked.told
        if told is None:
            return
        os.set_blocking(told, False)
        rest = memoryview(wire.told(pickle.dumps(held)))
        poll = select.poll()
        poll.register(told, select.POLLOUT)
        # A child that has ended listens no more: whoever reads its answer notices.
        with suppress(BrokenPipeError):
            while rest:
                if poll.poll(1000 * min(max(self.time_left, 0), _LOOK_SECONDS)):
                    rest = rest[os.write(told, rest) :]
                elif self._asked.is_gone():
                    raise ClientGoneError
                elif self.time_left <= 0:
                    raise self._asked.given_up()

    def begun(self, seconds: float) -> bool:
        """Wait until the child has output.

        Args:
            seconds: How long at most.

        Raises:
            ClientGoneError: if the client has hung up meanwhile.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._poll.poll(1000 * min(left, _LOOK_SECONDS)):
                return True
            if self._asked.is_gone():
                raise ClientGoneError
        return False

    def first(self) -> KeptAnswer | bytes:
        """Return the whole answer, or the first piece of one that is streamed.

        Raises:
            TreeclaimError: as the question gives reason for, or the bounds of time and memory.
        """
        kind, content = self._frame(self.time_left)
        if kind is Kind.PIECE:
            return content
        _, count = self._frame(self.time_left)
        return KeptAnswer((content,), COUNT.unpack(count)[0])

    @property
    def time_left(self) -> float:
        """Return the seconds until the child is killed."""
        end = self._asked.end
        lateness = max(_LEAST_LATENESS, (_LATENESS - 1) * (self._asked.seconds or 0))
        return end + lateness - time.monotonic()

    def pieces(self, seconds: float) -> Iterator[bytes | int]:
        """Yield the pieces after the first, then the number of candidates.

        Args:
            seconds: For how long to wait for the child altogether.
        """
        while True:
            begin = time.monotonic()
            kind, content = self._frame(seconds)
            seconds -= time.monotonic() - begin
            if kind is Kind.END:
                yield COUNT.unpack(content)[0]
                return
            yield content

    def _frame(self, seconds: float) -> tuple[Kind, bytes]:
        end = time.monotonic() + seconds
        number, length = HEADER.unpack(self._read(HEADER.size, end))
        kind, content = Kind(number), self._read(length, end)
        if kind is Kind.REFUSAL:
            raise unpacked(content)
        if kind is Kind.TOO_LARGE:
            raise SearchTooLargeError(self._asked.memory // 1_000_000)
        return kind, content

    def _read(self, length: int, end: float) -> bytes:
        parts: list[bytes] = []
        missing = length
        while missing:
            if not self.begun(end - time.monotonic()):
                raise self._asked.given_up()
            part = os.read(self._forked.answer, min(missing, _LARGEST_READ))
            if not part:
                # Killed from outside, or by the kernel for want of memory.
                raise OverloadedError("search")
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def end(self) -> None:
        """Kill the child if it still runs, and release its resources."""
        if self._is_over:
            return
        self._is_over = True
        os.close(self._forked.lifeline)
        os.close(self._forked.answer)
        if self._forked.told is not None:
            os.close(self._forked.told)
        # A server may have waited for all children, or ignore them.
        with suppress(ChildProcessError):
            os.waitpid(self._forked.process, 0)
