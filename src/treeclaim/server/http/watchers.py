# SPDX-License-Identifier: Apache-2.0
"""Bounds the number and bytes of watches, and schedules their events."""

import asyncio
import logging
import threading
from collections import OrderedDict
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


class Watchers:
    """The reserved places of watches, and a queue of connections with events; thread-safe."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_watches: int) -> None:
        self._loop = loop
        self._most_watches = most_watches
        self._lock = threading.Lock()
        self._count = self._bytes = 0
        self._woken_connections: OrderedDict[HttpConnection, None] = OrderedDict()
        self._is_scheduled = False

    def reserve(self, watch: Watch) -> bool:
        """Reserve a place for a watch and its bytes; return whether one is free."""
        with self._lock:
            if self._count >= self._most_watches or self._bytes + watch.nbytes > WATCH_BYTES:
                return False
            self._count += 1
            self._bytes += watch.nbytes
        return True

    def close(self, watch: Watch) -> None:
        """Close a watch and free its place."""
        watch.close()
        with self._lock:
            self._count -= 1
            self._bytes -= watch.nbytes

    def wake(self, watcher: "HttpConnection") -> None:
        """Schedule a watcher to send its events, after the watchers that were woken earlier."""
        with self._lock:
            self._woken_connections[watcher] = None
            if self._is_scheduled:
                return
            self._is_scheduled = True
        post(self._loop, self._send_events)

    def _send_events(self) -> None:
        """Let woken watchers send events for `_TURN_SECONDS`; continue in the next turn of the loop."""
        end = thread_time() + _TURN_SECONDS
        while thread_time() < end:
            with self._lock:
                if not self._woken_connections:
                    self._is_scheduled = False
                    return
                watcher, _ = self._woken_connections.popitem(last=False)
            try:
                watcher.send_events()
            except Exception:  # noqa: BLE001 - only this watcher is dropped, and reconnects
                _LOG.exception("Dropped a watcher")
                watcher.drop()
        self._loop.call_soon(self._send_events)
