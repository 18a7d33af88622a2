# SPDX-License-Identifier: Apache-2.0
"""The connections that watch: how many there may be, and who looks after them when there is news."""

import asyncio
import logging
import threading
from collections import OrderedDict
from time import thread_time
from typing import Protocol

from treeclaim.rounds import Rounds
from treeclaim.server.bounds import WATCH_BYTES
from treeclaim.server.sharing.account import HeldBytes
from treeclaim.server.turns import post

_LOG = logging.getLogger(__name__)

_TURN_SECONDS = 0.005
"""Seconds of CPU time that watchers take of one turn of the event loop, before other clients have
theirs: half of what a turn may take, as the last of them may need some more."""


class Watch(Protocol):
    """What an application leaves for a server to await (`treeclaim.watching.Watch` is such).

    The event loop calls all of it, except that `wake` is called from any thread.

    Attributes:
        wake: Set by the server; called when there may be something to send.
        nbytes: Bytes that it holds while it waits.
        is_over: Whether nothing more will come.
        due: When `take` is to be called in any case, of the monotonic clock.
    """

    wake: object
    nbytes: int
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

    def drop(self) -> None:
        """Close at once."""
        ...


class WatcherPlace:
    """A place among the watchers, taken by a watch, whose bytes are counted."""

    def __init__(self, watchers: "Watchers", hold: HeldBytes, watch: Watch) -> None:
        self._watchers = watchers
        self._hold = hold
        self._watch = watch
        self._counted = 0

    def count(self) -> None:
        """Count what the watch holds by now."""
        self._count(self._watch.nbytes)

    def give_back(self) -> None:
        """Give the place back."""
        self._count(0)
        self._watchers.release()

    def _count(self, size: int) -> None:
        change, self._counted = size - self._counted, size
        self._watchers.count(change)
        self._hold.add(change)


class Watchers:
    """The watchers of one worker. Threads call `reserve`, `release`, `count` and `wake`, the loop the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._lock = threading.Lock()
        self._reserved = 0
        self._bytes = 0
        self._members: dict[Watcher, None] = {}
        self._woken: OrderedDict[Watcher, None] = OrderedDict()
        self._rounds = Rounds(self._attend_some, self._begin, "attending to watchers")

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._members)

    def reserve(self, hold: HeldBytes, watch: Watch) -> WatcherPlace | None:
        """Take a place for a watch, None if there is none, or no room for what it holds."""
        with self._lock:
            if self._reserved >= self._most or self._bytes + watch.nbytes > WATCH_BYTES:
                return None
            self._reserved += 1
        place = WatcherPlace(self, hold, watch)
        place.count()
        return place

    def release(self) -> None:
        """Have one more place."""
        with self._lock:
            self._reserved -= 1

    def count(self, change: int) -> None:
        """Count what watches hold more, or less."""
        with self._lock:
            self._bytes += change

    def add(self, watcher: Watcher) -> None:
        """Look after a watcher from now on."""
        self._members[watcher] = None

    def remove(self, watcher: Watcher) -> None:
        """Look after it no more."""
        self._members.pop(watcher, None)

    def wake(self, watcher: Watcher) -> None:
        """Attend to a watcher soon, after those who were woken before."""
        with self._lock:
            self._woken[watcher] = None
        self._rounds.wake()

    def attend_all(self) -> None:
        """Attend to all watchers soon."""
        for watcher in self._members:
            self.wake(watcher)

    def _begin(self) -> None:
        post(self._loop, self._turn)

    def _turn(self) -> None:
        self._rounds.turn(lambda: self._loop.call_soon(self._turn))

    def _attend_some(self) -> bool:
        """Look after some, and leave the rest to the next turn of the loop, after other clients."""
        end = thread_time() + _TURN_SECONDS
        while thread_time() < end:
            with self._lock:
                if not self._woken:
                    return False
                watcher, _ = self._woken.popitem(last=False)
            try:
                watcher.attend()
            except Exception:  # noqa: BLE001 - it is the trouble of this one alone
                # It connects again with its cursor; the others should get their news.
                _LOG.exception("Dropped a watcher")
                watcher.drop()
        return True
