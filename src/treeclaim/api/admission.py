# SPDX-License-Identifier: Apache-2.0
"""Limits the concurrent requests of each kind, so that no kind occupies all threads of the server.

A write waits for the database, which other writers may lock; a read waits for the Forest. Each kind has a
share of the threads, and both together leave one free. A request without a free thread waits while requests of its
kind are being answered. If none of them has been answered for some seconds, new requests of the kind are refused at
once, so that threads remain for requests that need neither.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

from treeclaim.gate import Gate
from treeclaim.model.errors import OverloadedError, StoreUnavailableError

LONGEST_WAIT = 10.0
"""Seconds that a request waits for a thread: less than the 30 or 60 s after which clients time out, and more than a
request waits in a queue that advances."""

STALLED_AFTER = 3.0
"""Seconds without an answer, while a kind uses all of its threads, after which it counts as stalled. A commit on a
slow disk takes one or two seconds."""

LOOKUPS_STALLED_AFTER = 0.5
"""The corresponding seconds for look-ups of credentials. They are fewer, and only a quarter of the threads waits longer,
because requests with known credentials need the other threads."""


class WaitKind(Enum):
    """The resource that a request mainly waits for."""

    FREE = "request"
    """Nothing."""
    READ = "reading"
    """The Forest, or the database to read from."""
    WRITE = "writing"
    """Locks in the database."""
    LOOKUP = "look-up"
    """Verification of credentials, by Keystone, memcached or a slow hash."""


class Admission:
    """Admits requests by kind."""

    def __init__(self, threads: int) -> None:
        """Divide the threads.

        Args:
            threads: The number of request threads of the server.
        """
        both = max(threads - 1, 1)
        self._all = _Class(both)
        half = max(threads // 2, 1)
        self._kinds = {
            WaitKind.WRITE: _Class(half),
            WaitKind.READ: _Class(both),
            WaitKind.LOOKUP: _Class(half, threads // 4, LOOKUPS_STALLED_AFTER),
        }

    @contextmanager
    def admitted(
        self, kind: WaitKind, is_gone: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """Admit a request for the duration of a block.

        Raises:
            OverloadedError: if no thread becomes free in time.
        """
        if kind is WaitKind.FREE:
            yield
            return
        end = time.monotonic() + LONGEST_WAIT
        kind_gate = self._kinds[kind]
        kind_gate.enter(end, is_gone)
        try:
            self._all.enter(end, is_gone)
            try:
                yield
            except BaseException as error:
                self._all.leave(error)
                raise
            self._all.leave(None)
        except BaseException as error:
            kind_gate.leave(error)
            raise
        kind_gate.leave(None)


class _Class(Gate):
    """The threads of one kind of requests."""

    def __init__(self, most: int, patient: int = 0, stalled_after: float = STALLED_AFTER) -> None:
        """Make a class of requests.

        Args:
            most: Most threads in use.
            patient: Most requests that wait in their threads while the class is stalled.
            stalled_after: Seconds without an answer after which the class counts as stalled.
        """
        super().__init__(most)
        self._patient = patient
        self._stalled_after = stalled_after
        self._progress_at = time.monotonic()
        self._is_failing = False

    def leave(self, error: BaseException | None) -> None:
        """Release the thread, and record whether the request made progress."""
        if isinstance(error, OverloadedError | StoreUnavailableError):
            self._is_failing = True
        else:
            self._progress_at = time.monotonic()
            self._is_failing = False
        self.release()

    def enter(self, end: float, is_gone: Callable[[], bool] | None) -> None:
        """Acquire a thread, waiting for one if necessary.

        Raises:
            OverloadedError: if no thread becomes free in time.
        """
        if self.acquire(0):
            if self._inside == self.most and not self._is_failing:
                # All threads are in use: progress is measured from now on.
                self._progress_at = time.monotonic()
            return

        def should_stop() -> bool:
            is_refused = self._is_stalled and self.waiting > self._patient
            return is_refused or (is_gone is not None and is_gone())

        is_refused = self._is_stalled and self.waiting >= self._patient
        patience = 0.0 if is_refused else end - time.monotonic()
        if not self.acquire(patience, should_stop):
            raise OverloadedError("service")

    @property
    def _is_stalled(self) -> bool:
        return time.monotonic() - self._progress_at > self._stalled_after
