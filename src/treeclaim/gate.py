# SPDX-License-Identifier: Apache-2.0
"""A fair, bounded semaphore: the others wait in order of arrival, for a bounded time.

Python's own locks let a thread that comes at the right moment overtake those that wait, and a semaphore
cannot tell how many wait. Here they enter in the order in which they came.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treeclaim.model.errors import OverloadedError

_LOOK_SECONDS = 0.1
"""Interval at which a waiting request checks its deadline and client: a tenth of what people
notice, and at a hundred waiting threads no load."""

_SWITCH_SECONDS = 0.0005
"""Seconds for which a computing thread delays a thread that was woken: less than a search takes.
With Python's 5 ms for each hand-over, eight searches that wait for each other lose 40 ms while one
thread compiles a statement (decision 0013)."""


def hand_over_soon() -> None:
    """Let threads of this process that are woken go on soon, whoever computes meanwhile."""
    sys.setswitchinterval(_SWITCH_SECONDS)


class Gate:
    """Lets a number of threads in at once.

    Attributes:
        most: How many.
        places: How many may be inside or wait altogether; None for any number.
    """

    def __init__(self, most: int, places: int | None = None) -> None:
        self.most = most
        self.places = places
        self._guard = threading.Lock()
        self._inside = 0
        self._queue: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """Return how many wait."""
        return len(self._queue)

    @property
    def inside(self) -> int:
        """Return how many are inside."""
        return self._inside

    def acquire(self, seconds: float, gives_up: Callable[[], bool] | None = None) -> bool:
        """Enter, waiting if necessary.

        Args:
            seconds: How long to wait at most.
            gives_up: Asked about ten times a second; True ends the wait.

        Returns:
            Whether the caller is inside now; then it has to `release`.
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
                if gives_up is not None and gives_up():
                    break
        except BaseException:
            if self._withdrawn(turn):
                self.release()
            raise
        return self._withdrawn(turn)

    def _withdrawn(self, turn: threading.Lock) -> bool:
        """Leave the queue; return True if the turn came at the last moment."""
        with self._guard:
            if turn in self._queue:
                self._queue.remove(turn)
                return False
        return True

    def release(self) -> None:
        """Leave, and let the next one in."""
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._inside -= 1

    @contextmanager
    def held(self, seconds: float, what: str = "service") -> Iterator[None]:
        """Hold a place for the duration of a block.

        Raises:
            OverloadedError: if it was not the caller's turn in time.
        """
        if not self.acquire(seconds):
            raise OverloadedError(what)
        try:
            yield
        finally:
            self.release()
