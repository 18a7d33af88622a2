# SPDX-License-Identifier: Apache-2.0
"""The parent's side of a child: reads the answer, and kills the child after its deadline."""

import fcntl
import os
import select
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import FileIO

from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import ClientGoneError, OverloadedError
from treeclaim.replica.answer_cache import WholeAnswer
from treeclaim.replica.child import (
    COUNT,
    HEADER,
    ChildEnds,
    MessageKind,
    run_child,
    unpickled_error,
)
from treeclaim.replica.question import Arrival, Question

_CHECK_SECONDS = 0.1
"""Seconds between two checks of the client's connection."""

_LATENESS = 1.05
_LEAST_LATENESS = 0.25
"""A child reports its timeout itself. If it fails to check the clock, the parent kills it 5 % later, and at least this
many seconds later."""

_PIPE_BYTES = 1 << 20
"""Capacity of the pipe of answers, if the kernel allows it; a large one saves switches between processes."""

_LARGEST_READ = 1 << 20
"""Bytes of one read from the pipe."""


class Child:
    """A process that answers one question. Its owner must `end` it."""

    def __init__(self, question: Question, forest: Forest, arrival: Arrival) -> None:
        """Fork; the caller must have the turn at the Forest.

        If the question has `reads`, the child waits for `feed`.

        Raises:
            OSError: if no process or pipe can be created.
        """
        self._arrival = arrival
        self._answer, out = os.pipe()
        lifeline_end, self._lifeline = os.pipe()
        parts, inlet = os.pipe()
        self._inlet = FileIO(inlet, "wb")
        try:
            with warnings.catch_warnings():
                # Raised from Python 3.12 on; `child.py` explains why forking is safe here.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process = os.fork()
        except OSError:
            _close(self._answer, out, lifeline_end, self._lifeline, parts)
            self._inlet.close()
            raise
        if self._process == 0:
            run_child(question, forest, arrival, ChildEnds(out, lifeline_end, parts))
        _close(out, lifeline_end, parts)
        for pipe in (self._answer, inlet):
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._poll = select.poll()
        self._poll.register(self._answer, select.POLLIN)
        self._is_over = False

    def feed(self, parts: Iterable[bytes]) -> None:
        """Send all database parts to the child; raise as `Arrival.check` if it does not read them in time."""
        os.set_blocking(self._inlet.fileno(), False)
        writability = select.poll()
        writability.register(self._inlet, select.POLLOUT)
        try:
            for part in parts:
                remaining_bytes = memoryview(HEADER.pack(MessageKind.PIECE, len(part)) + part)
                while remaining_bytes:
                    self._arrival.check()
                    if writability.poll(1000 * _CHECK_SECONDS):
                        sent_bytes = self._inlet.write(remaining_bytes[:_LARGEST_READ])
                        remaining_bytes = remaining_bytes[sent_bytes or 0 :]
        except BrokenPipeError:
            # The child has failed; its answer contains the error.
            pass
        finally:
            self._inlet.close()

    def wait_for_output(self, seconds: float) -> bool:
        """Return whether output of the child arrives in time; raise ClientGoneError if the client disconnects."""
        end = time.monotonic() + seconds
        while (remaining_seconds := end - time.monotonic()) > 0:
            if self._poll.poll(1000 * min(remaining_seconds, _CHECK_SECONDS)):
                return True
            if self._arrival.is_gone():
                raise ClientGoneError
        return False

    def receive_first(self) -> WholeAnswer | bytes:
        """Return the whole answer, or the first piece of a streamed one.

        Raises:
            TreeclaimError: if the question fails, or exceeds its limit of time or memory.
        """
        kind, content = self._read_frame(self.time_left)
        if kind is MessageKind.PIECE:
            return content
        _, count = self._read_frame(self.time_left)
        return WholeAnswer((content,), COUNT.unpack(count)[0])

    @property
    def time_left(self) -> float:
        """Return the seconds until the child is killed."""
        end = self._arrival.end
        lateness = max(_LEAST_LATENESS, (_LATENESS - 1) * (self._arrival.seconds or 0))
        return end + lateness - time.monotonic()

    def pieces(self, longest: float) -> Iterator[bytes | int]:
        """Yield the pieces after the first, then the number of candidates.

        Waits for the child take at most `longest` seconds in total, or the question's own limit.
        """
        seconds = longest if self._arrival.seconds is None else self._arrival.seconds
        while True:
            begin = time.monotonic()
            kind, content = self._read_frame(seconds)
            seconds -= time.monotonic() - begin
            if kind is MessageKind.END:
                yield COUNT.unpack(content)[0]
                return
            yield content

    def _read_frame(self, seconds: float) -> tuple[MessageKind, bytes]:
        end = time.monotonic() + seconds
        number, length = HEADER.unpack(self._read(HEADER.size, end))
        kind, content = MessageKind(number), self._read(length, end)
        if kind is MessageKind.ERROR:
            raise unpickled_error(content)
        return kind, content

    def _read(self, length: int, end: float) -> bytes:
        parts: list[bytes] = []
        missing_bytes = length
        while missing_bytes:
            if not self.wait_for_output(end - time.monotonic()):
                raise self._arrival.timeout_error()
            part = os.read(self._answer, min(missing_bytes, _LARGEST_READ))
            if not part:
                # The child was killed, for example by the kernel because memory ran out.
                raise OverloadedError("search")
            parts.append(part)
            missing_bytes -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def end(self) -> None:
        """Kill the child if it still runs, and release its resources."""
        if self._is_over:
            return
        self._is_over = True
        os.close(self._lifeline)
        os.close(self._answer)
        self._inlet.close()
        # The server may have reaped the child already.
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
