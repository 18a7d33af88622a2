# SPDX-License-Identifier: Apache-2.0
"""Limits the concurrent requests of each kind, so that no kind occupies all threads of the server.

A write waits for locks in the database; a read waits for the Forest. Each kind has a share of the threads, and both
together leave one thread free. A request without a free thread waits while requests of its kind make progress. Once
a kind has stalled, its new requests are rejected at once, so that threads remain for the other kinds.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

from treeclaim.gate import Gate
from treeclaim.model.errors import OverloadedError, StoreUnavailableError

LONGEST_WAIT = 10.0
"""Most seconds of waiting for a thread: less than the timeout of clients (30 or 60 s), and more than the wait in a
queue that advances."""

STALLED_AFTER = 3.0
"""Seconds without an answer, with all threads of a kind in use, after which the kind counts as stalled. A commit on a
slow disk takes one or two seconds."""

LOOKUPS_STALLED_AFTER = 0.5
"""Seconds without an answer after which look-ups of credentials count as stalled. Only a quarter of the threads may wait
longer, because requests with cached credentials need the remaining threads."""


class WaitKind(Enum):
    """The resource that a request mainly waits for."""

    NOTHING = "request"
    """No resource."""
    READ = "reading"
    """The Forest, or the database to read from."""
    WRITE = "writing"
    """Locks in the database."""
    LOOKUP = "look-up"
    """Verification of credentials, by Keystone, memcached or a slow hash."""


class Admission:
    """Admits requests by kind to the request threads of the server."""

    def __init__(self, threads: int) -> None:
        shared_threads = max(threads - 1, 1)
        self._all_kinds = _ThreadShare(shared_threads)
        half_threads = max(threads // 2, 1)
        self._kinds = {
            WaitKind.WRITE: _ThreadShare(half_threads),
            WaitKind.READ: _ThreadShare(shared_threads),
            WaitKind.LOOKUP: _ThreadShare(half_threads, threads // 4, LOOKUPS_STALLED_AFTER),
        }

    @contextmanager
    def admit(self, kind: WaitKind, is_gone: Callable[[], bool] | None = None) -> Iterator[None]:
        """Admit a request for the duration of a block.

        Raises:
            OverloadedError: if no thread becomes free in time.
        """
        if kind is WaitKind.NOTHING:
            yield
            return
        end = time.monotonic() + LONGEST_WAIT
        kind_gate = self._kinds[kind]
        kind_gate.enter(end, is_gone)
        try:
            self._all_kinds.enter(end, is_gone)
            try:
                yield
            except BaseException as error:
                self._all_kinds.leave(error)
                raise
            self._all_kinds.leave(None)
        except BaseException as error:
            kind_gate.leave(error)
            raise
        kind_gate.leave(None)


class _ThreadShare(Gate):
    """The threads of one kind of requests; up to `most_waiting` requests wait in their threads while it is stalled."""

    def __init__(
        self, most_threads: int, most_waiting: int = 0, stalled_after: float = STALLED_AFTER
    ) -> None:
        super().__init__(most_threads)
        self._most_waiting = most_waiting
        self._stalled_after = stalled_after
        self._progress_at = time.monotonic()
        self._is_failing = False

    def leave(self, error: BaseException | None) -> None:
        """Release the thread, and record whether its request made progress."""
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
            if self._inside_count == self.max_inside and not self._is_failing:
                # All threads are in use: progress is measured from now on.
                self._progress_at = time.monotonic()
            return

        def should_stop() -> bool:
            is_refused = self._is_stalled and self.waiting_count > self._most_waiting
            return is_refused or (is_gone is not None and is_gone())

        is_refused = self._is_stalled and self.waiting_count >= self._most_waiting
        patience = 0.0 if is_refused else end - time.monotonic()
        if not self.acquire(patience, should_stop):
            raise OverloadedError("service")

    @property
    def _is_stalled(self) -> bool:
        return time.monotonic() - self._progress_at > self._stalled_after
