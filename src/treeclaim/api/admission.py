# SPDX-License-Identifier: Apache-2.0
"""Limits how many requests of a kind run at once, so that no kind takes every thread of the server.

A write waits for the database, which others may lock; a read waits for the Forest. Each kind may
have a share of the threads, and both together leave one free. A request without a free thread waits
while others of its kind are being answered. When none of them has been answered for some seconds,
new ones are refused at once, so that threads are left for requests that need neither.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

from treeclaim.gate import Gate
from treeclaim.model.errors import OverloadedError, StoreUnavailableError

LONGEST_WAIT = 10.0
"""Seconds that a request waits for a thread. Clients give up after thirty or sixty seconds, and a
queue that moves takes less."""

STALLED_AFTER = 3.0
"""Seconds without an answer, while a kind uses all of its threads, after which it counts as stalled:
a slow disk takes one or two seconds for a commit."""

LOOKUPS_STALLED_AFTER = 0.5
"""The same for look-ups of credentials. While they wait in their threads, requests with known credentials
need others, so only a quarter of the threads waits longer."""


class WaitKind(Enum):
    """The resource that a request mainly waits for."""

    FREE = "request"
    """Nothing."""
    READ = "reading"
    """The Forest, or the database to read from."""
    WRITE = "writing"
    """Locks in the database."""
    LOOKUP = "look-up"
    """Verification of credentials: by Keystone, memcached or a slow hash."""


class Admission:
    """Admits requests by kind."""

    def __init__(self, threads: int) -> None:
        """Divide the threads.

        Args:
            threads: How many the server runs requests in.
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
            OverloadedError: if there is no room.
        """
        if kind is WaitKind.FREE:
            yield
            return
        end = time.monotonic() + LONGEST_WAIT
        mine = self._kinds[kind]
        mine.enter(end, is_gone)
        try:
            self._all.enter(end, is_gone)
            try:
                yield
            except BaseException as error:
                self._all.leave(error)
                raise
            self._all.leave(None)
        except BaseException as error:
            mine.leave(error)
            raise
        mine.leave(None)


class _Class(Gate):
    """The threads of one kind, and how many are in use."""

    def __init__(self, most: int, patient: int = 0, stalled_after: float = STALLED_AFTER) -> None:
        """Make a class of requests.

        Args:
            most: How many threads it may use.
            patient: How many more requests may wait in their threads although none gets on.
            stalled_after: Seconds without an answer after which no request gets on.
        """
        super().__init__(most)
        self._patient = patient
        self._stalled_after = stalled_after
        self._got_on_at = time.monotonic()
        self._is_failing = False

    def leave(self, error: BaseException | None) -> None:
        """Give the thread back, and note whether the request got on."""
        if isinstance(error, OverloadedError | StoreUnavailableError):
            self._is_failing = True
        else:
            self._got_on_at = time.monotonic()
            self._is_failing = False
        self.release()

    def enter(self, end: float, is_gone: Callable[[], bool] | None) -> None:
        """Take a thread, waiting for one if necessary.

        Raises:
            OverloadedError: if there is no room.
        """
        if self.acquire(0):
            if self._inside == self.most and not self._is_failing:
                # All threads are taken: progress is measured from now on.
                self._got_on_at = time.monotonic()
            return

        def gives_up() -> bool:
            is_refused = self._is_stalled and self.waiting > self._patient
            return is_refused or (is_gone is not None and is_gone())

        is_refused = self._is_stalled and self.waiting >= self._patient
        patience = 0.0 if is_refused else end - time.monotonic()
        if not self.acquire(patience, gives_up):
            raise OverloadedError("service")

    @property
    def _is_stalled(self) -> bool:
        return time.monotonic() - self._got_on_at > self._stalled_after
