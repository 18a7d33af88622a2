# SPDX-License-Identifier: Apache-2.0
"""One connection: reads requests, has them answered one after the other, sends the answers."""

import asyncio
import io
import logging
import math
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, cast

from treeclaim.config.connections import ConnectionLimits
from treeclaim.server.bounds import (
    EARLY_BYTES,
    HEAD_BYTES,
    LINGER_BYTES,
    LINGER_SECONDS,
    SLOWEST_BYTES,
    SMALL_REQUEST,
)
from treeclaim.server.budget import Budget
from treeclaim.server.exchange import Exchange
from treeclaim.server.kernel import unacknowledged
from treeclaim.server.pool import ThreadPool
from treeclaim.server.refusals import refusal
from treeclaim.server.requests import HeadParser, RefusedError, RequestHead, read_head, too_long
from treeclaim.server.table import ConnectionTable, Phase

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)

_END_OF_HEAD = b"\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NEVER = math.inf

_BEFORE_ANSWER = (Phase.OPENING, Phase.READING, Phase.IDLE)


class Shared(Protocol):
    """What the connections of a process share; see `Front`."""

    application: "WSGIApplication"
    limits: ConnectionLimits
    loop: asyncio.AbstractEventLoop
    table: ConnectionTable
    incoming: "Budget[Connection]"
    unsent: "Budget[Connection]"
    pool: ThreadPool
    is_stopping: bool
    is_tls: bool
    keep_alive_header: str

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Let the event loop do something; threads call this."""

    def date(self) -> str:
        """Return the time for an answer's header."""

    def environment_of(self, transport: asyncio.Transport) -> dict[str, Any]:
        """Return what all requests of a connection have in their WSGI environments."""

    def note_closed(self) -> None:
        """Know that a connection is closed."""

    def note_dropped(self, phase: Phase) -> None:
        """Say that a client was too slow."""


class Connection(asyncio.Protocol):
    """A client's connection.

    Everything runs in the event loop but what is named `post...` and `closing_headers`, which
    threads call.

    Attributes:
        phase: What it is in the middle of; the table of connections keeps it.
        deadline: When that is over, in the loop's time.
        gone: Whether the client has hung up.
    """

    def __init__(self, front: Shared, accepted: socket.socket) -> None:
        self.phase = Phase.OPENING
        self.deadline = front.loop.time() + front.limits.header_seconds
        self.gone = False
        self._front = front
        self._socket = accepted
        self._socket_lock = threading.Lock()
        self._is_lost = False
        self._is_answered = False
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._environment: dict[str, Any] = {}
        self._data = bytearray()
        self._parser: HeadParser | None = None
        self._head: RequestHead | None = None
        self._exchange: Exchange | None = None
        self._keeps_open = True
        self._is_unread = False
        self._is_reading = True
        self._is_within_read = False
        self._is_full = False
        self._waits_for_client = False
        self._is_last_sent = False
        self._sent = 0
        self._taken_before = 0
        self._dropped = 0

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        # Whatever the kernel does not take is told, and counts.
        self._transport.set_write_buffer_limits(high=1, low=0)
        self._environment = self._front.environment_of(self._transport)
        self._environment["treeclaim.client_gone"] = self.is_gone
        self._front.table.add(self)

    def is_gone(self) -> bool:
        """Tell whether the client has hung up; threads ask."""
        return self.gone

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self.phase is Phase.LINGERING:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.drop()
            return
        self._data += data
        if self._is_answered:
            self._settle()
        elif self.phase in _BEFORE_ANSWER:
            self._read()
        elif len(self._data) > EARLY_BYTES:
            self._is_reading = False
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Know that the client sends no more; one that waits for its answer may get it."""
        self.gone = True
        self._settle()
        return self.phase not in (*_BEFORE_ANSWER, Phase.LINGERING) and not self._front.is_tls

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Give up what the connection has."""
        with self._socket_lock:
            # The transport closes the socket after this, and another one may get its number.
            self._is_lost = True
        self.gone = True
        self._front.table.remove(self)
        self._front.incoming.release(self)
        self._front.unsent.release(self)
        self._data.clear()
        # A turn that is under way is told at its end.
        if self._waits_for_client and self._exchange is not None:
            self._front.pool.proceed(self._exchange.close)
            self._exchange = None
        self._front.note_closed()

    def pause_writing(self) -> None:
        """Know that the client has not taken all that was sent, be it of TLS itself."""
        self._is_full = True
        if self.phase is Phase.ANSWERING:
            self._await_client()

    def resume_writing(self) -> None:
        """Know that it has."""
        self._is_full = False
        self._front.unsent.release(self)
        if self.phase is not Phase.SENDING:
            return
        self._front.table.move(self, Phase.ANSWERING)
        self.deadline = _NEVER
        if self._is_last_sent:
            self._finish()
        elif self._waits_for_client and self._exchange is not None:
            self._waits_for_client = False
            self._front.pool.proceed(self._exchange.go_on)

    def _await_client(self) -> None:
        """Let the client have its time to take what was sent."""
        if self.phase is not Phase.SENDING:
            self._front.table.move(self, Phase.SENDING)
            self._give_time_to_take()
        self._front.unsent.note(self, self._transport.get_write_buffer_size())

    # What the table calls.

    def expire(self) -> None:
        """Act on a deadline that has passed."""
        if self._is_answered:
            self._settle()
        elif self.phase is Phase.READING:
            self._refuse(
                RefusedError(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")
            )
        elif self.phase is Phase.SENDING and self._has_taken_enough():
            self._give_time_to_take()
        else:
            self._front.note_dropped(self.phase)
            self.drop()

    def drop(self) -> None:
        """Close at once, whatever is unsent."""
        self._front.table.remove(self)
        self._transport.abort()

    def stop_if_unused(self) -> None:
        """Close if no request is under way."""
        self._settle()
        if self.phase in (Phase.OPENING, Phase.IDLE):
            self._transport.close()

    # Reading.

    def _read(self) -> None:
        """Go as far as what has come allows."""
        self._is_within_read = True
        try:
            while self._data and self.phase in _BEFORE_ANSWER:
                if self._head is None and not self._read_head():
                    return
                if not self._read_body():
                    return
                self._begin_answer()
        except RefusedError as error:
            self._refuse(error)
        finally:
            self._is_within_read = False

    def _enter_reading(self) -> None:
        if self.phase is not Phase.READING:
            if self.phase is Phase.IDLE:
                self.deadline = self._front.loop.time() + self._front.limits.header_seconds
            self._front.table.move(self, Phase.READING)

    def _read_head(self) -> bool:
        """Read the head if it is whole."""
        if self._data[0] in b"\r\n":
            # Empty lines before a request are allowed (RFC 9112, 2.2), and give nobody more time.
            self._data = self._data.lstrip(b"\r\n")
            if not self._data:
                return False
        end = self._data.find(_END_OF_HEAD)
        if end < 0 or end > HEAD_BYTES:
            self._enter_reading()
            if len(self._data) > HEAD_BYTES:
                raise too_long()
            self._note_incoming()
            return False
        end += len(_END_OF_HEAD)
        text = bytes(self._data[:end])
        del self._data[:end]
        self._parser = HeadParser()
        self._keeps_open = True
        self._is_unread = False
        self._head = read_head(text, self._parser)
        self._prepare_body(self._head, self._parser)
        return True

    def _prepare_body(self, head: RequestHead, parser: HeadParser) -> None:
        limit = self._front.limits.body_bytes
        if head.is_chunked:
            if parser.is_complete:
                raise RefusedError(HTTPStatus.BAD_REQUEST, "An upgrade has no chunks.")
            parser.body = bytearray()
        elif not head.length:
            return
        elif head.length > limit:
            self._is_unread = True
            return
        self._enter_reading()
        self.deadline = self._front.loop.time() + self._front.limits.body_seconds
        if head.expects_continue and not self._data:
            self._transport.write(_CONTINUE)

    def _read_body(self) -> bool:
        """Tell whether the body is whole, or will not be read; take it out of the data."""
        head, parser = self._head, self._parser
        if head is None or parser is None:
            return False
        if head.is_chunked:
            return self._read_chunks(head, parser)
        if self._is_unread:
            head.environment["wsgi.input"] = io.BytesIO()
            return True
        if len(self._data) < head.length:
            self._note_incoming()
            return False
        body = bytes(self._data[: head.length])
        del self._data[: head.length]
        head.environment["wsgi.input"] = io.BytesIO(body)
        return True

    def _read_chunks(self, head: RequestHead, parser: HeadParser) -> bool:
        data = bytes(self._data)
        self._data.clear()
        parser.feed(data)
        body = parser.body or bytearray()
        if len(body) > self._front.limits.body_bytes:
            self._is_unread = True
            body = body[: self._front.limits.body_bytes + 1]
        elif not parser.is_complete:
            self._note_incoming(len(body))
            return False
        if parser.messages > 1:
            # Where the next request begins in what has come is not known.
            self._is_unread = True
        head.environment["CONTENT_LENGTH"] = str(len(body))
        head.environment["wsgi.input"] = io.BytesIO(bytes(body))
        return True

    def _note_incoming(self, more: int = 0) -> None:
        size = len(self._data) + more
        if size > SMALL_REQUEST:
            self._front.incoming.note(self, size)

    # Answering.

    def _begin_answer(self) -> None:
        head = self._head
        if head is None:
            return
        self._front.incoming.release(self)
        self._front.table.move(self, Phase.ANSWERING)
        self.deadline = _NEVER
        self._keeps_open = head.keep_alive and not self._is_unread
        head.environment.update(self._environment)
        self._exchange = Exchange(self._front.application, self, head, self._front.date())
        if not self._front.pool.offer(self._exchange.run):
            self._refuse(
                RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests wait."),
                may_keep=True,
            )

    def closing_headers(self) -> str:
        """Return the headers that say what becomes of the connection after this answer."""
        head = self._head
        if head is not None and not head.keep_alive:
            self._keeps_open = False
        if not self._keeps_open or self._front.is_stopping:
            self._keeps_open = False
            return "Connection: close\r\n"
        if head is not None and head.is_http_1_0:
            return f"Connection: keep-alive\r\n{self._front.keep_alive_header}"
        return self._front.keep_alive_header

    def post(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the answer."""
        self._front.call(self._send, data, is_last)

    def post_whole(self, data: bytes) -> None:
        """Send a whole answer, as far as the kernel takes it at once from here.

        To leave that to the event loop takes another change of threads, and so does telling it: of
        a small answer that was half of the time. Nobody else writes meanwhile.
        """
        sent = 0
        if not self._front.is_tls:
            with self._socket_lock:
                if not self._is_lost:
                    # Full, or broken: the loop finds out.
                    with suppress(OSError):
                        sent = self._socket.send(data)
        if sent == len(data) and self._keeps_open:
            # The loop sees it with the next data, or when it looks at deadlines. Either it sees
            # this, or this thread sees what has come: both write first and look then.
            self.deadline = 0.0
            self._is_answered = True
            if self._data or self.gone:
                self._front.call(self._settle)
        else:
            self._front.call(self._send, data[sent:] if sent else data, True)

    def _settle(self) -> None:
        """Take note of an answer that a thread has sent."""
        if self._is_answered:
            self._is_answered = False
            if not self._transport.is_closing():
                self._finish()

    def post_turn(self) -> None:
        """Say that the next pieces are made when the client has taken these."""
        self._front.call(self._end_turn)

    def post_refusal(self, error: RefusedError) -> None:
        """Answer without the application."""
        self._front.call(self._refuse, error, True)

    def post_abort(self) -> None:
        """Break the connection off."""
        self._front.call(self.drop)

    def _send(self, data: bytes, is_last: bool) -> None:  # noqa: FBT001 - call_soon has no names
        if self._transport.is_closing():
            return
        self._sent += len(data)
        self._is_last_sent = is_last
        if data:
            self._transport.write(data)
        if self._is_full:
            self._await_client()
        elif is_last:
            self._finish()

    def _end_turn(self) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if self._is_lost:
            self._exchange = None
            self._front.pool.proceed(exchange.close)
        elif self._is_full:
            self._waits_for_client = True
        else:
            self._front.pool.proceed(exchange.go_on)

    def _refuse(self, error: RefusedError, may_keep: bool = False) -> None:  # noqa: FBT001, FBT002 - see _send
        """Answer without the application; unless it may be kept, close the connection then."""
        if self._transport.is_closing():
            return
        self._keeps_open = self._keeps_open and may_keep
        _LOG.info("Refused a request of %s: %s %s", self._peer(), error.status.value, error.detail)
        self._is_unread = self._is_unread or not may_keep
        data = refusal(error, self._front.date(), self.closing_headers())
        if self.phase in _BEFORE_ANSWER:
            self._front.table.move(self, Phase.ANSWERING)
            self.deadline = _NEVER
        self._send(data, is_last=True)

    def _peer(self) -> str:
        return str(self._environment.get("REMOTE_ADDR", "-"))

    def _finish(self) -> None:
        """Close the connection, or get ready for the next request."""
        self._exchange = self._head = self._parser = None
        self._is_last_sent = False
        if self.gone and not self._data:
            self._transport.close()
        elif self._keeps_open:
            self._front.table.move(self, Phase.IDLE)
            self.deadline = self._front.loop.time() + self._front.limits.keep_alive_seconds
            self._resume_reading()
            if self._data and not self._is_within_read:
                self._read()
        elif self._is_unread or self._data:
            self._linger()
        else:
            self._transport.close()

    def _resume_reading(self) -> None:
        if not self._is_reading and not self._transport.is_closing():
            self._is_reading = True
            self._transport.resume_reading()

    def _linger(self) -> None:
        """Read on for a while: closing with data unread resets a connection, and the answer."""
        self._data.clear()
        self._front.incoming.release(self)
        self._front.table.move(self, Phase.LINGERING)
        self.deadline = self._front.loop.time() + LINGER_SECONDS
        self._resume_reading()
        if self.gone:
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()

    # Clients that do not read.

    def _taken(self) -> int:
        """Return the bytes that have arrived; the kernel keeps MiBs that have not."""
        here = self._transport.get_write_buffer_size()
        return self._sent - here - unacknowledged(self._socket)

    def _give_time_to_take(self) -> None:
        self._taken_before = self._taken()
        self.deadline = self._front.loop.time() + self._front.limits.answer_seconds

    def _has_taken_enough(self) -> bool:
        return self._taken() - self._taken_before >= SLOWEST_BYTES
