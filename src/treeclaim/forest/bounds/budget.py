# SPDX-License-Identifier: Apache-2.0
"""The budget of one request: time and memory.

Some requests take longer than clients wait, or more memory than a worker has. Each request
therefore has a budget, which every loop checks.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treeclaim.model.errors import SearchGivenUpError, SearchTooLargeError
from treeclaim.model.timing import Stages, has_passed

_INTERRUPT_SECONDS = 0.001
"""Least time between two calls of `interrupted`. Short requests take some milliseconds, so yielding to
them more often gains nothing.
"""

_MEGABYTE = 1_000_000


class Budget:
    """Time, from construction on, and memory that one request may take.

    Attributes:
        stages: The duration of each stage.
    """

    def __init__(
        self,
        seconds: float | None = None,
        most_bytes: int | None = None,
        *,
        interrupted: Callable[[], None] | None = None,
    ) -> None:
        """Start the clock.

        Args:
            seconds: Seconds until the deadline; None for no deadline.
            most_bytes: The most memory that the search may hold at a time; None for any.
            interrupted: Called about once in a millisecond; may wait, or raise to end the search.
        """
        now = time.monotonic()
        self.stages = Stages()
        self._seconds = seconds
        self._at = None if seconds is None else now + seconds
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._interrupted = interrupted
        self._next_interrupt = now

    def check(self) -> None:
        """Raise once the deadline has passed; cheap enough for every turn of every loop.

        Raises:
            SearchGivenUpError: after the deadline.
        """
        if self._at is not None and has_passed(self._at):
            raise SearchGivenUpError(self._seconds or 0)
        if self._interrupted is not None and time.monotonic() >= self._next_interrupt:
            self._interrupted()
            self._next_interrupt = time.monotonic() + _INTERRUPT_SECONDS

    def hold(self, nbytes: int) -> None:
        """Count memory that the search allocates; a negative number releases memory.

        Raises:
            SearchTooLargeError: if the search exceeds its memory.
        """
        self._held_bytes += nbytes
        if nbytes > 0 and self._most_bytes is not None and self._held_bytes > self._most_bytes:
            raise SearchTooLargeError(self._most_bytes // _MEGABYTE)

    @contextmanager
    def held(self, nbytes: int) -> Iterator[None]:
        """Count memory while the block runs."""
        self.hold(nbytes)
        try:
            yield
        finally:
            self.hold(-nbytes)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """At the end of the block, release the memory that was counted in it."""
        before = self._held_bytes
        try:
            yield
        finally:
            self._held_bytes = before

    @contextmanager
    def ending(self, at: float | None) -> Iterator[None]:
        """Use an earlier deadline (monotonic clock) within the block; None keeps the deadline."""
        before = self._at
        if at is not None:
            self._at = at if before is None else min(before, at)
        try:
            yield
        finally:
            self._at = before


UNBOUNDED = Budget()
"""No limits, for calls that no client waits for."""
