# SPDX-License-Identifier: Apache-2.0
"""The connections that watch: how many there may be, and who looks after them when there is news."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Protocol

_AT_ONCE = 50
"""Watchers that are looked after in one turn of the event loop: a millisecond, for each of which the
loop has to write to a socket."""


class Watch(Protocol):
    """What an application leaves for a server to await (`treeclaim.watching.Watch` is such).

    The event loop calls all of it, except that `wake` is called from any thread.

    Attributes:
        wake: Set by the server; called when there may be something to send.
        is_over: Whether nothing more will come.
        due: When `take` is to be called in any case, of the monotonic clock.
    """

    wake: object
    is_over: bool
    due: float

    def take(self) -> bytes | None:
        """Return what is to be sent now; None for nothing."""
        ...

    def finish(self) -> bytes | None:
        """Return what is to be sent at the end because the server stops."""
        ...

    def close(self) -> None:
        """Release what is held for this watcher."""
        ...


class Watcher(Protocol):
    """A connection that watches."""

    def attend(self) -> None:
        """Send pending data."""
        ...


class Watchers:
    """Those of one worker. Threads call `reserve`, `release` and `wake`, the event loop the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._lock = threading.Lock()
        self._reserved = 0
        self._members: dict[Watcher, None] = {}
        self._is_awake = False

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._members)

    def reserve(self) -> bool:
        """Take a place, and return whether there was one left; `release` gives it back."""
        with self._lock:
            if self._reserved >= self._most:
                return False
            self._reserved += 1
            return True

    def release(self) -> None:
        """Give a place back."""
        with self._lock:
            self._reserved -= 1

    def add(self, watcher: Watcher) -> None:
        """Look after a watcher from now on."""
        self._members[watcher] = None

    def remove(self, watcher: Watcher) -> None:
        """Look after it no more."""
        self._members.pop(watcher, None)

    def wake(self) -> None:
        """Attend to all watches soon."""
        # A loop that has been closed has no watchers.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin)

    def attend_all(self) -> None:
        """Attend to all watches now."""
        for watcher in list(self._members):
            watcher.attend()

    def _begin(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._attend(list(self._members), 0)

    def _attend(self, watchers: Sequence[Watcher], first: int) -> None:
        """Look after some, and leave the rest to the next turn of the loop, after other clients."""
        for watcher in watchers[first : first + _AT_ONCE]:
            watcher.attend()
        if first + _AT_ONCE < len(watchers):
            self._loop.call_soon(self._attend, watchers, first + _AT_ONCE)
        else:
            self._is_awake = False
