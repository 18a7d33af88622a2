# SPDX-License-Identifier: Apache-2.0
"""The watching connections: bounds of their number and bytes, and the order in which they send events."""

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from time import thread_time
from typing import TYPE_CHECKING

from treeclaim.server.bounds import WATCH_BYTES
from treeclaim.server.http.loop import post
from treeclaim.watching import Watch

if TYPE_CHECKING:
    from treeclaim.server.http.connection import HttpConnection

_LOG = logging.getLogger(__name__)

_TURN_SECONDS = 0.005
"""Seconds of CPU time for watchers in one turn of the event loop."""


class ReservedWatch:
    """A watch with a place among the watchers; its bytes are counted.

    Attributes:
        watch: The watch.
    """

    def __init__(
        self, watchers: "Watchers", watch: Watch, add_bytes: Callable[[int], None]
    ) -> None:
        self.watch = watch
        self._watchers = watchers
        self._add_bytes = add_bytes
        self._counted = 0
        self._count(watch.nbytes)

    def take(self, *, ends: bool) -> bytes:
        """Return the bytes to send now, the last ones if the watch is to end."""
        piece = self.watch.finish() if ends else self.watch.take()
        self._count(self.watch.nbytes)
        return piece or b""

    def close(self) -> None:
        """Close the watch and free its place."""
        self.watch.close()
        self._count(0)
        self._watchers.release()

    def _count(self, size: int) -> None:
        change, self._counted = size - self._counted, size
        self._watchers.add_bytes(change)
        self._add_bytes(change)


class Watchers:
    """The places of a worker for watchers, and those that were woken. Any thread may call the methods."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._loop = loop
        self._most = most
        self._lock = threading.Lock()
        self._reserved = 0
        self._bytes = 0
        self._woken: OrderedDict[HttpConnection, None] = OrderedDict()
        self._is_scheduled = False

    def reserve(self, watch: Watch, add_bytes: Callable[[int], None]) -> ReservedWatch | None:
        """Reserve a place for a watch, and count its bytes; return None if no place is free."""
        with self._lock:
            if self._reserved >= self._most or self._bytes + watch.nbytes > WATCH_BYTES:
                return None
            self._reserved += 1
        return ReservedWatch(self, watch, add_bytes)

    def release(self) -> None:
        """Free a place."""
        with self._lock:
            self._reserved -= 1

    def add_bytes(self, change: int) -> None:
        """Add to the bytes of all watches; a negative change subtracts."""
        with self._lock:
            self._bytes += change

    def wake(self, watcher: "HttpConnection") -> None:
        """Schedule a watcher to send its events, after those that were woken before."""
        with self._lock:
            self._woken[watcher] = None
            if self._is_scheduled:
                return
            self._is_scheduled = True
        post(self._loop, self._attend_to_some)

    def _attend_to_some(self) -> None:
        """Run woken watchers for `_TURN_SECONDS`, and the others in the next turn of the loop."""
        end = thread_time() + _TURN_SECONDS
        while thread_time() < end:
            with self._lock:
                if not self._woken:
                    self._is_scheduled = False
                    return
                watcher, _ = self._woken.popitem(last=False)
            try:
                watcher.attend()
            except Exception:  # noqa: BLE001 - it concerns one watcher, which reconnects
                _LOG.exception("Dropped a watcher")
                watcher.drop()
        self._loop.call_soon(self._attend_to_some)
