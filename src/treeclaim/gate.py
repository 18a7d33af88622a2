# SPDX-License-Identifier: Apache-2.0
"""A fair, bounded semaphore: threads wait in order of arrival, for a bounded time.

A thread that arrives at the right moment acquires one of Python's locks before those that wait, and a semaphore
does not report the number of waiting threads. Threads enter a gate in the order of their arrival.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treeclaim.model.errors import OverloadedError

_LOOK_SECONDS = 0.1
"""Interval at which a waiting request checks its deadline and client: too short for people to notice, and no load
even for a hundred waiting threads."""

_SWITCH_SECONDS = 0.0005
"""Seconds for which a computing thread delays a woken thread: less than the duration of a search. With Python's
default of 5 ms, eight searches that wait for each other lose 40 ms while one thread compiles a statement
(decision 0013)."""


def shorten_switch_interval() -> None:
    """Reduce the delay of woken threads while another thread computes."""
    sys.setswitchinterval(_SWITCH_SECONDS)


class Gate:
    """Admits a bounded number of threads at once.

    Attributes:
        most: Most threads inside.
        places: Most threads inside or waiting; None for no bound.
    """

    def __init__(self, most: int, places: int | None = None) -> None:
        self.most = most
        self.places = places
        self._guard = threading.Lock()
        self._inside = 0
        self._queue: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """Return the number of waiting threads."""
        return len(self._queue)

    @property
    def inside(self) -> int:
        """Return the number of threads inside."""
        return self._inside

    def acquire(self, seconds: float, should_stop: Callable[[], bool] | None = None) -> bool:
        """Enter, waiting if necessary.

        Args:
            seconds: The longest wait.
            should_stop: Called about ten times a second; True ends the wait.

        Returns:
            Whether the caller is inside; it must then `release`.
        """
        with self._guard:
            if self._inside < self.most and not self._queue:
                self._inside += 1
                return True
            used_places = self._inside + len(self._queue)
            if seconds <= 0 or (self.places is not None and used_places >= self.places):
                return False
            turn = threading.Lock()
            turn.acquire()
            self._queue.append(turn)
        end = time.monotonic() + seconds
        try:
            while (remaining_seconds := end - time.monotonic()) > 0:
                if turn.acquire(timeout=min(remaining_seconds, _LOOK_SECONDS)):
                    return True
                if should_stop is not None and should_stop():
                    break
        except BaseException:
            if self._withdraw(turn):
                self.release()
            raise
        return self._withdraw(turn)

    def _withdraw(self, turn: threading.Lock) -> bool:
        """Leave the queue; return True if the turn had come meanwhile."""
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
                self._inside -= 1

    @contextmanager
    def held(self, seconds: float, what: str = "service") -> Iterator[None]:
        """Hold a place for the duration of a block.

        Raises:
            OverloadedError: if no place became free in time.
        """
        if not self.acquire(seconds):
            raise OverloadedError(what)
        try:
            yield
        finally:
            self.release()
