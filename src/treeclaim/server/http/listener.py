# SPDX-License-Identifier: Apache-2.0
"""Accepts connections, checks their deadlines, and closes them when the process stops."""

import asyncio
import errno
import logging
import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from treeclaim.config.configuration import ConnectionLimits
from treeclaim.server.bounds import (
    ACCEPT_PAUSE,
    ACCEPTED_AT_ONCE,
    ARRIVAL_SECONDS,
    BACKLOG,
    GRACE_SECONDS,
    HELD_BYTES,
    LINGER_SECONDS,
    READ_BYTES,
    SWEEP_SECONDS,
)
from treeclaim.server.http.connection import HttpConnection
from treeclaim.server.http.loop import post
from treeclaim.server.http.pool import ThreadPool
from treeclaim.server.http.table import ConnectionTable
from treeclaim.server.http.watchers import Watchers

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)

_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_POLL_SECONDS = 0.02


class HttpListener:
    """Accepts the connections of a listening socket, and holds their shared state.

    Attributes:
        buffer: Receives the bytes of each turn of the loop.
        answered_connections: Connections whose answers were sent by threads; the event loop continues with them.
        is_stopping: Whether each answer is the last of its connection.
        environment: The part of the WSGI environment that all requests share.
        keep_alive_header: Announces the timeout of idle connections.
    """

    def __init__(
        self,
        application: "WSGIApplication",
        limits: ConnectionLimits,
        threads: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Start the threads; `listen` starts to accept connections."""
        self.application = application
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.table = ConnectionTable(limits.connections, max(HELD_BYTES, 2 * limits.body_bytes))
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.pool = ThreadPool(threads, limits.waiting)
        self.watchers = Watchers(self.loop, limits.most_watchers)
        self.answered_connections: deque[HttpConnection] = deque()
        self.is_stopping = False
        self.is_tls = tls is not None
        self.environment: dict[str, Any] = {}
        self.keep_alive_header = f"Keep-Alive: timeout={int(limits.keep_alive_seconds)}\r\n"
        self._tls = tls
        self._listener: socket.socket | None = None

    def continue_answered(self) -> None:
        """Continue with the connections in `answered_connections`."""
        while self.answered_connections:
            self.answered_connections.popleft().send_last(b"")

    def post(self, function: Callable[..., object], *arguments: Any) -> None:
        """Schedule a function in the event loop, from any thread."""
        post(self.loop, function, *arguments)

    def listen(self, listener: socket.socket) -> None:
        """Start to accept connections and to check deadlines."""
        self._listener = listener
        listener.setblocking(False)
        self.environment = _make_environment(listener, self._tls)
        self.loop.add_reader(listener.fileno(), self._accept)
        self.loop.call_later(SWEEP_SECONDS, self._sweep)

    async def stop(self) -> None:
        """Stop accepting, finish running requests, and close all connections."""
        if self._listener is not None:
            await self._accept_backlog()
            self.loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        self.is_stopping = True
        for member in self.table:
            self.watchers.wake(member)
        if await self._are_closed_within(ARRIVAL_SECONDS):
            return
        for member in self.table:
            member.close_if_unused()
        if await self._are_closed_within(GRACE_SECONDS - ARRIVAL_SECONDS):
            return
        _LOG.warning("%s connections are cut off", len(self.table))
        for member in self.table:
            member.drop()
        # The last transports close in the next turn.
        await asyncio.sleep(0)

    async def _are_closed_within(self, seconds: float) -> bool:
        end = self.loop.time() + seconds
        while len(self.table) and self.loop.time() < end:
            await asyncio.sleep(_POLL_SECONDS)
            self.continue_answered()
        return not len(self.table)

    async def _accept_backlog(self) -> None:
        """Accept the waiting connections, which the kernel would reset although their clients are connected.

        Another worker of the socket could accept some of them, but the kernel does not distinguish them.
        """
        for _ in range(BACKLOG // ACCEPTED_AT_ONCE):
            if not self._accept():
                return
            await asyncio.sleep(0)

    def _accept(self) -> bool:
        """Accept a few connections; return whether more may wait."""
        self.continue_answered()
        for _ in range(ACCEPTED_AT_ONCE):
            if self._listener is None:
                return False
            try:
                accepted_socket, _address = self._listener.accept()
            except ConnectionAbortedError:
                continue
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                self._pause_accepting(error)
                return False
            self._open(accepted_socket)
        return True

    def _open(self, accepted_socket: socket.socket) -> None:
        accepted_socket.setblocking(False)
        if not self.table.make_room():
            accepted_socket.close()
            return
        connection = HttpConnection(self, accepted_socket)
        self.table.move(connection, connection.phase)
        connection.opening = self.loop.create_task(
            self.loop.connect_accepted_socket(
                lambda: connection,
                accepted_socket,
                ssl=self._tls,
                ssl_handshake_timeout=self.limits.header_seconds if self._tls else None,
                ssl_shutdown_timeout=LINGER_SECONDS if self._tls else None,
            )
        )
        connection.opening.add_done_callback(
            partial(self._note_opened, connection, accepted_socket)
        )

    def _note_opened(
        self, connection: HttpConnection, accepted_socket: socket.socket, task: "asyncio.Task[Any]"
    ) -> None:
        connection.opening = None
        if task.cancelled() or (error := task.exception()) is not None:
            self.table.remove(connection)
            accepted_socket.close()
            if not task.cancelled():
                _LOG.debug("A connection was not opened: %s", error)

    def _pause_accepting(self, error: OSError) -> None:
        """Close a connection to free a file descriptor, and accept again after a pause."""
        if self._listener is None:
            return
        if error.errno not in _OUT_OF_FILES:
            _LOG.warning("A connection could not be accepted: %s", error)
        self.table.drop_cheapest()
        self.loop.remove_reader(self._listener.fileno())
        self.loop.call_later(ACCEPT_PAUSE, self._resume_accepting)

    def _resume_accepting(self) -> None:
        if self._listener is not None:
            self.loop.add_reader(self._listener.fileno(), self._accept)

    def _sweep(self) -> None:
        self.continue_answered()
        self.table.sweep(self.loop.time())
        self.loop.call_later(SWEEP_SECONDS, self._sweep)


def _make_environment(listener: socket.socket, tls: ssl.SSLContext | None) -> dict[str, Any]:
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
