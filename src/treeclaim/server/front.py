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

from treeclaim.config.configuration import ConnectionLimits
from treeclaim.server.bounds import (
    ACCEPT_PAUSE,
    ACCEPTED_AT_ONCE,
    ARRIVAL_SECONDS,
    BACKLOG,
    CLOSED_AT_ONCE,
    GRACE_SECONDS,
    HELD_BYTES,
    LINGER_SECONDS,
    READ_BYTES,
    SMALL_BYTES,
    SWEEP_SECONDS,
)
from treeclaim.server.connection.connection import Connection
from treeclaim.server.sharing.account import Account
from treeclaim.server.sharing.hangups import Hangups
from treeclaim.server.sharing.pool import ThreadPool
from treeclaim.server.sharing.table import ConnectionTable, Phase, TableEntry
from treeclaim.server.sharing.watchers import Watchers
from treeclaim.server.turns import post

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
        table, account, buffer, hangups: The connections, what they hold, where bytes come first,
            and those that are not read from.
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
        self.account = Account(max(HELD_BYTES, 2 * limits.body_bytes), SMALL_BYTES)
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.hangups = Hangups(self.loop)
        self.pool = ThreadPool(threads, limits.waiting)
        self.watchers = Watchers(self.loop, limits.most_watchers)
        self.is_stopping = False
        self.is_tls = tls is not None
        self.keep_alive_header = f"Keep-Alive: timeout={int(limits.keep_alive_seconds)}\r\n"
        self._tls = tls
        self._listener: socket.socket | None = None
        self._opening: dict[TableEntry, asyncio.Task[Any]] = {}
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
        post(self.loop, function, *arguments)

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

    def note_made(self, connection: TableEntry) -> None:
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
        try:
            await self._end()
        finally:
            self.hangups.close()

    async def _end(self) -> None:
        if self._listener is not None:
            await self._accept_the_rest()
            self.loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        self.is_stopping = True
        self.watchers.attend_all()
        self.note_closed()
        if await self._closed_within(ARRIVAL_SECONDS):
            return
        await self._some_at_a_time(lambda member: cast("Connection", member).stop_if_unused())
        if await self._closed_within(GRACE_SECONDS - ARRIVAL_SECONDS):
            return
        _LOG.warning("%s connections are cut off", len(self.table))
        await self._some_at_a_time(lambda member: member.drop())

    async def _some_at_a_time(self, act: Callable[[TableEntry], None]) -> None:
        """Do something with all connections, some in each turn of the loop."""
        for number, member in enumerate(self.table, 1):
            act(member)
            if number % CLOSED_AT_ONCE == 0:
                await asyncio.sleep(0)
        # The transports of the last ones close in the next turn.
        await asyncio.sleep(0)

    async def _closed_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._all_closed.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _accept_the_rest(self) -> None:
        """Accept the connections that wait: their clients see them as connected, and they would be reset.

        While others serve the socket too, some of them are theirs; they cannot be told apart.
        """
        for _ in range(BACKLOG // ACCEPTED_AT_ONCE):
            if not self._accept():
                return
            await asyncio.sleep(0)

    def _accept(self) -> bool:
        """Accept some connections; return whether there may be more."""
        for _ in range(ACCEPTED_AT_ONCE):
            if self._listener is None:
                return False
            try:
                accepted, _address = self._listener.accept()
            except ConnectionAbortedError:
                continue
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                self._pause_accepting(error)
                return False
            self._open(accepted)
        return True

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
        self.table.sweep(self.loop.time(), CLOSED_AT_ONCE)
        return self.table.make_room(opening)

    def _opened(self, connection: Connection, task: "asyncio.Task[Any]") -> None:
        self._opening.pop(connection, None)
        # Nobody here could help a client that fails to speak TLS.
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
        now = self.loop.time()
        if not self.table.sweep(now, CLOSED_AT_ONCE):
            self.loop.call_soon(self._sweep)
            return
        self.hangups.sweep(now)
        self.account.wake()
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
