# SPDX-License-Identifier: Apache-2.0
"""The services of the process to a connection; `treeclaim.server.front.Front` provides them."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from treeclaim.config.configuration import ConnectionLimits
from treeclaim.server.sharing.account import Account
from treeclaim.server.sharing.hangups import Hangups
from treeclaim.server.sharing.pool import ThreadPool
from treeclaim.server.sharing.table import ConnectionTable, Phase, TableEntry
from treeclaim.server.sharing.watchers import Watchers

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


class Shared(Protocol):
    """What the connections of a process share.

    Attributes:
        application: The WSGI application.
        limits: How long clients may take, and how much they may send.
        loop: The event loop of all connections.
        table: All connections, with their phases and deadlines.
        account: The bytes that connections hold.
        buffer: Where bytes that have come are for the turn of the loop in which they come.
        hangups: Those that are not read from.
        pool: The threads that run the application.
        watchers: The connections that watch.
        is_stopping: Whether each answer is the last of its connection.
        is_tls: Whether connections use TLS.
        keep_alive_header: Says how long a connection is kept without a request.
    """

    application: "WSGIApplication"
    limits: ConnectionLimits
    loop: asyncio.AbstractEventLoop
    table: ConnectionTable
    account: Account
    buffer: memoryview
    hangups: Hangups
    pool: ThreadPool
    watchers: Watchers
    is_stopping: bool
    is_tls: bool
    keep_alive_header: str

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run a function in the event loop; threads call this."""

    def date(self) -> str:
        """Return the value of an answer's Date header."""

    def environment_of(self, transport: asyncio.Transport) -> dict[str, Any]:
        """Return the part of the WSGI environment that all requests of a connection share."""

    def note_made(self, connection: TableEntry) -> None:
        """Enter a connection that is made into the table."""

    def note_closed(self) -> None:
        """Note that a connection is closed."""

    def note_dropped(self, phase: Phase) -> None:
        """Log that a client was too slow."""
