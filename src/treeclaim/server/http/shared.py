# SPDX-License-Identifier: Apache-2.0
"""State that the connections of a process share."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Protocol

from treeclaim.config.configuration import ConnectionLimits
from treeclaim.server.bounds import HELD_BYTES, READ_BYTES
from treeclaim.server.http.budget import MemoryBudget
from treeclaim.server.http.loop import post
from treeclaim.server.http.pool import ThreadPool
from treeclaim.server.http.table import ConnectionTable
from treeclaim.server.http.watchers import Watchers

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


class AnsweredConnection(Protocol):
    """A connection whose answer a thread has sent."""

    def finish(self) -> None:
        """Note that the whole answer is sent."""


class SharedState:
    """State that the connections of a process share.

    Attributes:
        application: The WSGI application.
        limits: Durations and sizes that clients are allowed.
        loop: The event loop of all connections.
        table: The connections.
        budget: The bytes that they hold.
        buffer: Receives bytes in each turn of the loop.
        pool: The threads.
        watchers: The connections that watch.
        answered: Connections whose answers threads have sent, until the event loop looks there.
        is_stopping: Whether each answer is the last of its connection.
        is_tls: Whether TLS is spoken.
        environment: The part of the WSGI environment that all requests share.
        keep_alive_header: Announces for how long an idle connection is kept.
    """

    def __init__(
        self,
        application: "WSGIApplication",
        limits: ConnectionLimits,
        threads: int,
        *,
        is_tls: bool,
    ) -> None:
        self.application = application
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.table = ConnectionTable(limits.connections)
        self.budget = MemoryBudget(max(HELD_BYTES, 2 * limits.body_bytes))
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.pool = ThreadPool(threads, limits.waiting)
        self.watchers = Watchers(self.loop, limits.most_watchers)
        self.answered: deque[AnsweredConnection] = deque()
        self.is_stopping = False
        self.is_tls = is_tls
        self.environment: dict[str, Any] = {}
        self.keep_alive_header = f"Keep-Alive: timeout={int(limits.keep_alive_seconds)}\r\n"
        self._date = (0, "")

    def note_answered(self) -> None:
        """Let the connections whose answers were sent wait for their next requests."""
        while self.answered:
            self.answered.popleft().finish()

    def post(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run a function in the event loop; threads call this."""
        post(self.loop, function, *arguments)

    def date(self) -> str:
        """Return the value of the Date header."""
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True))
        return self._date[1]
