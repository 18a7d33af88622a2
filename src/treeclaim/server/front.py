# SPDX-License-Identifier: Apache-2.0
"""Takes connections from the listening socket, and holds what they share."""

import asyncio
import errno
import logging
import socket
import ssl
import sys
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from treeclaim.config.connections import ConnectionLimits
from treeclaim.server.bounds import (
    ACCEPT_PAUSE,
    ACCEPTED_AT_ONCE,
    ARRIVAL_SECONDS,
    GRACE_SECONDS,
    INCOMING_BYTES,
    LINGER_SECONDS,
    SWEEP_SECONDS,
    UNSENT_BYTES,
)
from treeclaim.server.connection.connection import Connection
from treeclaim.server.sharing.budget import Budget
from treeclaim.server.sharing.pool import ThreadPool
from treeclaim.server.sharing.table import ConnectionTable, Member, Phase
from treeclaim.server.sharing.watchers import Watchers

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)

_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Front:
    """Takes connections from a listening socket and has their requests answered.

    Attributes:
        application: What answers.
        limits: How long clients may take.
        loop: The event loop in which all of this runs.
        table, incoming, unsent: The connections, and the memory they share.
        pool: The threads.
        watchers: The connections that watch.
        is_stopping: Whether each answer is the last of its connection.
        is_tls: Whether TLS is spoken.
        keep_alive_header: Says how long a connection is kept without a request.
    """

    def __init__(
        self,
        application: "WSGIApplication",
        limits: ConnectionLimits,
        threads: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.application = application
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.table = ConnectionTable(limits.connections)
        self.incoming: Budget[Member] = Budget(INCOMING_BYTES, lambda member: member.expire())
        self.unsent: Budget[Member] = Budget(UNSENT_BYTES, lambda member: member.drop())
        self.pool = ThreadPool(threads, limits.waiting)
        self.watchers = Watchers(self.loop, limits.most_watchers)
        self.is_stopping = False
        self.is_tls = tls is not None
        self.keep_alive_header = f"Keep-Alive: timeout={int(limits.keep_alive_seconds)}\r\n"
        self._tls = tls
        self._listener: socket.socket | None = None
        self._opening: dict[Member, asyncio.Task[Any]] = {}
        """Connections that are not made yet; from then on they are in the table, never in both."""
        self._environment: dict[str, Any] = {}
        self._date = (0, "")
        self._all_closed = asyncio.Event()

    def listen(self, listener: socket.socket) -> None:
        """Start to accept connections and to check deadlines."""
        self._listener = listener
        listener.setblocking(False)
        self._environment = _common_environment(listener, self._tls)
        self.loop.add_reader(listener.fileno(), self._accept)
        self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run a function in the event loop; threads call this."""
        self.loop.call_soon_threadsafe(function, *arguments)

    def date(self) -> str:
        """Return the value of the Date header."""
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True))
        return self._date[1]

    def environment_of(self, transport: asyncio.Transport) -> dict[str, Any]:
        """Return the part of the WSGI environment that all requests of a connection share."""
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            return self._environment | {"REMOTE_ADDR": peer[0], "REMOTE_PORT": str(peer[1])}
        return dict(self._environment)

    def note_made(self, connection: Member) -> None:
        """Enter a connection that is made into the table."""
        self._opening.pop(connection, None)
        self.table.add(connection)

    def note_closed(self) -> None:
        """Note that a connection is closed."""
        if self.is_stopping and not len(self.table) and not self._opening:
            self._all_closed.set()

    def note_dropped(self, phase: Phase) -> None:
        """Log that a client was too slow."""
        _LOG.debug("Closed a connection that was %s for too long", phase.name.lower())

    async def stop(self) -> None:
        """Take no more connections, answer what has begun, and close all."""
        if self._listener is not None:
            self.loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        self.is_stopping = True
        self.watchers.attend_all()
        self.note_closed()
        if await self._closed_within(ARRIVAL_SECONDS):
            return
        for member in self.table:
            cast("Connection", member).stop_if_unused()
        if await self._closed_within(GRACE_SECONDS - ARRIVAL_SECONDS):
            return
        _LOG.warning("%s connections are cut off", len(self.table))
        for member in self.table:
            member.drop()
        # Their transports close in the next turn of the loop.
        await asyncio.sleep(0)

    async def _closed_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._all_closed.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            if self._listener is None:
                return
            try:
                accepted, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause_accepting(error)
                return
            self._open(accepted)

    def _open(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        if not self._make_room():
            accepted.close()
            return
        seconds = self.limits.header_seconds if self._tls else None
        connection = Connection(self, accepted)
        task = self.loop.create_task(
            self.loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=LINGER_SECONDS if self._tls else None,
            )
        )
        self._opening[connection] = task
        task.add_done_callback(partial(self._opened, connection))

    def _make_room(self) -> bool:
        """Close a connection if there are too many; return whether there is room."""
        opening = len(self._opening)
        if self.table.make_room(opening) or self._drop_opening():
            return True
        # Some of those that seem to be answered have been.
        self.table.sweep(self.loop.time())
        return self.table.make_room(opening)

    def _opened(self, connection: Connection, task: "asyncio.Task[Any]") -> None:
        self._opening.pop(connection, None)
        # A client that does not manage to speak TLS is nothing that anybody here could mend.
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.debug("A connection was not opened: %s", error)
        self.note_closed()

    def _drop_opening(self) -> bool:
        """Drop the oldest connection whose TLS handshake is unfinished."""
        for task in self._opening.values():
            task.cancel()
            return True
        return False

    def _pause_accepting(self, error: OSError) -> None:
        """Close a connection if file descriptors have run out, and accept again soon."""
        if self._listener is None:
            return
        if error.errno not in _OUT_OF_FILES:
            _LOG.warning("A connection could not be accepted: %s", error)
        self.table.drop_one()
        self.loop.remove_reader(self._listener.fileno())
        self.loop.call_later(ACCEPT_PAUSE, self._resume_accepting)

    def _resume_accepting(self) -> None:
        if self._listener is not None:
            self.loop.add_reader(self._listener.fileno(), self._accept)

    def _sweep(self) -> None:
        self.table.sweep(self.loop.time())
        self.loop.call_later(SWEEP_SECONDS, self._sweep)


def _common_environment(listener: socket.socket, tls: ssl.SSLContext | None) -> dict[str, Any]:
    name = listener.getsockname()
    is_inet = isinstance(name, tuple)
    return {
        "SERVER_NAME": name[0] if is_inet else "localhost",
        "SERVER_PORT": str(name[1]) if is_inet else "80",
        "SERVER_SOFTWARE": "treeclaim",
        "REMOTE_ADDR": "127.0.0.1" if is_inet else "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if tls else "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
