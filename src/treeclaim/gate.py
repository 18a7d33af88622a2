# SPDX-License-Identifier: Apache-2.0
"""A fair, bounded semaphore: threads enter in the order of their arrival, and wait for a bounded time.

Python's locks may admit a new thread before a waiting one, and its semaphores do not count the waiting threads.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treeclaim.model.errors import OverloadedError

_CHECK_SECONDS = 0.1
"""Interval at which a waiting thread calls `should_stop`: too short for people to notice, and no load for a hundred
threads."""

_SWITCH_SECONDS = 0.0005
"""Seconds for which a computing thread delays a woken thread. With Python's default of 5 ms, eight searches in turn lose
40 ms while one thread compiles a statement (decision 0013)."""


def shorten_switch_interval() -> None:
    """Shorten the delay of a woken thread by a computing thread."""
    sys.setswitchinterval(_SWITCH_SECONDS)


class Gate:
    """Admits a bounded number of threads at once.

    Attributes:
        max_inside: Most threads inside.
        max_total: Most threads inside or waiting; None for no bound.
    """

    def __init__(self, max_inside: int, max_total: int | None = None) -> None:
        self.max_inside = max_inside
        self.max_total = max_total
        self._guard = threading.Lock()
        self._inside_count = 0
        self._queue: deque[threading.Lock] = deque()

    @property
    def waiting_count(self) -> int:
        """Number of waiting threads."""
        return len(self._queue)

    @property
    def inside_count(self) -> int:
        """Number of threads inside."""
        return self._inside_count

    def acquire(self, seconds: float, should_stop: Callable[[], bool] | None = None) -> bool:
        """Enter, and return whether the caller is inside; it must then `release`.

        Args:
            seconds: The longest wait.
            should_stop: Called about ten times a second; True ends the wait.
        """
        with self._guard:
            if self._inside_count < self.max_inside and not self._queue:
                self._inside_count += 1
                return True
            total = self._inside_count + len(self._queue)
            if seconds <= 0 or (self.max_total is not None and total >= self.max_total):
                return False
            turn = threading.Lock()
            turn.acquire()
            self._queue.append(turn)
        end = time.monotonic() + seconds
        try:
            while (remaining_seconds := end - time.monotonic()) > 0:
                if turn.acquire(timeout=min(remaining_seconds, _CHECK_SECONDS)):
                    return True
                if should_stop is not None and should_stop():
                    break
        except BaseException:
            if self._withdraw(turn):
                self.release()
            raise
        return self._withdraw(turn)

    def _withdraw(self, turn: threading.Lock) -> bool:
        """Leave the queue; return True if the thread was admitted meanwhile."""
        with self._guard:
            if turn in self._queue:
                self._queue.remove(turn)
                return False
        return True

    def release(self) -> None:
        """Leave, and admit the next waiting thread."""
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._inside_count -= 1

    @contextmanager
    def occupy(self, seconds: float, resource: str = "service") -> Iterator[None]:
        """Stay inside for the duration of a block.

        Raises:
            OverloadedError: if the wait timed out; it names the `resource`.
        """
        if not self.acquire(seconds):
            raise OverloadedError(resource)
        try:
            yield
        finally:
            self.release()
