# SPDX-License-Identifier: Apache-2.0
"""A client's connection: requests are read, exchanges make their answers, and these are written.

A connection is in one phase (`Phase`), with a deadline. All methods run in the event loop, except those that threads
call.
"""

import asyncio
import logging
import math
import socket
from collections.abc import Sequence
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from treeclaim.server.bounds import LINGER_SECONDS, SWEEP_SECONDS
from treeclaim.server.http.errors import BusyError, RefusedError, render_refusal
from treeclaim.server.http.exchange import Exchange
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.receiving import BEFORE_ANSWER, ReceivingConnection
from treeclaim.server.http.table import Phase
from treeclaim.server.http.watchers import ReservedWatch
from treeclaim.server.http.writer import AnswerWriter, has_failed
from treeclaim.watching import Watch

if TYPE_CHECKING:
    from treeclaim.server.http.listener import HttpListener

_LOG = logging.getLogger(__name__)


class _Next(Enum):
    """The action that follows when the client has read all that was sent."""

    MORE = auto()
    """A thread, or a watch, sends more."""

    TURN = auto()
    """A thread is to make more."""

    END = auto()
    """The answer has ended."""


class HttpConnection(ReceivingConnection):
    """A client's connection: the answers to its requests.

    Attributes:
        is_kept: Whether the connection stays open after this answer.
    """

    def __init__(self, listener: "HttpListener", accepted: socket.socket) -> None:
        """Wait for the first request."""
        super().__init__(listener, accepted)
        self.is_kept = True
        self._writer = cast("AnswerWriter", None)
        self._environment: dict[str, Any] = {}
        self._head: RequestHead | None = None
        self._exchange: Exchange | None = None
        self._watch: ReservedWatch | None = None
        self._next = _Next.MORE

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare for requests."""
        self._transport = cast("asyncio.Transport", transport)
        if self._is_dropped:
            self._transport.abort()
            return
        self._writer = AnswerWriter(self._socket, self._transport, self.add_bytes, self._go_on)
        self._environment = self._listener.environment | {
            "treeclaim.client_gone": self._get_is_gone
        }
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._environment |= {"REMOTE_ADDR": peer[0], "REMOTE_PORT": str(peer[1])}

    def _get_is_gone(self) -> bool:
        return self.is_gone

    def eof_received(self) -> bool:
        """Note that the client sends no more; return whether it may still get an answer."""
        self.has_ended = True
        # With TLS that is the end of the connection.
        self.is_gone = self.is_gone or self._listener.is_tls
        self.attend()
        self._listener.note_answered()
        self._read_request()
        if self.phase in (*BEFORE_ANSWER, Phase.LINGERING) or self._listener.is_tls:
            return False
        self._probe()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Release all resources."""
        self.is_gone = True
        listener = self._listener
        listener.table.remove(self)
        listener.table.waiting.pop(self, None)
        self._reader.drop()
        self._count_read()
        if self._writer is not None:
            self._writer.lose()
        self._end_watch()
        # A turn that is under way notices it at its end.
        if self._next is _Next.TURN:
            self._close_exchange()
        listener.table.wake()

    def pause_writing(self) -> None:
        """Note that the kernel takes no more for now; TLS may cause this before the connection is made."""
        if self._writer is not None:
            self._writer.pause()

    def resume_writing(self) -> None:
        """Note that the kernel has taken everything."""
        if self._writer is not None:
            self._writer.resume()

    # Called by the table and the watchers.

    def expire(self) -> None:
        """Act on a deadline that has passed."""
        if self.phase in (Phase.ANSWERING, Phase.WATCHING):
            self._check_client()
            self.attend()
        elif self.phase in (Phase.READING, Phase.RECEIVING):
            self._refuse_late()
        elif self.phase is Phase.SENDING and self._writer.has_read_enough():
            self._give_time_to_read()
        else:
            _LOG.debug("Closed a connection that was %s for too long", self.phase.name.lower())
            self.drop()

    def evict(self) -> None:
        """Release an unfinished request, or the unread part of an answer."""
        if self.phase is Phase.SENDING or self._transport.is_closing():
            self.drop()
            self._writer.lose()
            self._drop_received()
        else:
            self._refuse_late()

    def refuse_for_room(self) -> None:
        """Refuse a request for which there was no room in time."""
        self._refuse(BusyError("Too many requests have come."))

    def attend(self) -> None:
        """Send pending events, if this connection watches and its client has read the events before."""
        watch, exchange = self._watch, self._exchange
        if watch is None or exchange is None or self.phase is not Phase.WATCHING:
            return
        piece = watch.take(ends=self.has_ended or self._listener.is_stopping)
        data = exchange.frame(piece) if piece else b""
        self.deadline = watch.watch.due
        is_over = watch.watch.is_over
        if is_over:
            data += exchange.last_bytes
            self._end_watch()
            self._enter(Phase.ANSWERING)
            self.is_kept = self.is_kept and not self._listener.is_stopping
        self._send(data, is_last=is_over)

    # Answering.

    def _begin(self, head: RequestHead) -> None:
        listener = self._listener
        self._has_waited = False
        self._head = head
        self.is_kept = head.keep_alive and self._reader.dropped is None
        head.environment.update(self._environment)
        self._exchange = exchange = Exchange(listener.application, self, head, listener.date())
        self._enter(Phase.ANSWERING)
        self._writer.begin()
        if not listener.pool.offer(exchange.run):
            exchange.close()
            self._send_refusal(BusyError())

    def _refuse_late(self) -> None:
        if self._has_waited:
            self.refuse_for_room()
        else:
            detail = "The request took too long to arrive."
            self._refuse(RefusedError(HTTPStatus.REQUEST_TIMEOUT, detail))

    def _refuse(self, error: RefusedError) -> None:
        """Answer bytes that are not a request, or too late, and close."""
        if self._transport.is_closing():
            return
        self._drop_received()
        self.is_kept = False
        self._enter(Phase.ANSWERING)
        self._send_refusal(error)

    def _send_refusal(self, error: RefusedError) -> None:
        peer = self._environment.get("REMOTE_ADDR", "-")
        _LOG.info("Refused a request of %s: %s %s", peer, error.status.value, error.detail)
        headers = self.connection_headers()
        self._send(render_refusal(error, self._listener.date(), headers), is_last=True)

    def _finish(self) -> None:
        """Close the connection, or wait for the next request."""
        self._exchange = self._head = None
        self._next = _Next.MORE
        self._listener.table.wake()
        reader = self._reader
        has_more = self._is_paused or not reader.is_empty or reader.dropped is not None
        if not has_more and (self.has_ended or not self.is_kept):
            self._transport.close()
        elif self.is_kept:
            self._enter(Phase.IDLE, self._after(self._listener.limits.keep_alive_seconds))
            if not reader.is_empty:
                self._listener.loop.call_soon(self._read_request)
        else:
            self._linger()

    def _linger(self) -> None:
        """Read on for a while: to close with unread data resets the connection and the answer."""
        self._drop_received()
        self._enter(Phase.LINGERING, self._after(LINGER_SECONDS))
        if self.has_ended:
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()

    def _probe(self) -> None:
        """Find out whether a client that sends no more still reads."""
        if self.phase is Phase.ANSWERING:
            self.deadline = self._listener.loop.time()
            if self._head is not None and not self._head.is_http_1_0:
                self._writer.probe()

    def _check_client(self) -> None:
        """Find out whether a client is gone that sends no more: its connection is not read from."""
        if has_failed(self._socket):
            self.drop()
        else:
            self.deadline = self._after(SWEEP_SECONDS) if self.has_ended else math.inf

    def _close_exchange(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self._listener.pool.proceed(exchange.close)

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            self._listener.watchers.remove(self)
            watch.close()

    # Writing.

    def _send(self, data: bytes, *, is_last: bool) -> None:
        self._writer.write(data)
        if self._transport.is_closing():
            return
        if is_last:
            self._next = _Next.END
        if self._writer.unread:
            if self.phase is not Phase.SENDING:
                self._enter(Phase.SENDING)
                self._give_time_to_read()
            self._listener.table.enforce(self)
        elif is_last:
            self._finish()

    def _go_on(self) -> None:
        """Continue an answer after the client has read what was sent."""
        if self.phase is not Phase.SENDING:
            return
        if self._watch is not None:
            self._enter(Phase.WATCHING)
            self.attend()
            return
        self._enter(Phase.ANSWERING, self._after(0) if self.has_ended else math.inf)
        if self._next is _Next.END:
            self._finish()
        elif self._next is _Next.TURN and self._exchange is not None:
            self._next = _Next.MORE
            self._listener.pool.proceed(self._exchange.go_on)

    def _give_time_to_read(self) -> None:
        self._writer.start_measuring()
        self.deadline = self._after(self._listener.limits.answer_seconds)

    # Called by threads.

    def add_bytes(self, change: int) -> None:
        """Count more bytes, or fewer."""
        self._listener.table.add_bytes(self, change)

    def reserve_watch(self, watch: Watch) -> ReservedWatch | None:
        """Reserve a place for a watch; None if there is no room."""
        return self._listener.watchers.reserve(watch, self.add_bytes)

    def connection_headers(self) -> str:
        """Return the headers that say what becomes of the connection after this answer."""
        head = self._head
        if self._listener.is_stopping or (head is not None and not head.keep_alive):
            self.is_kept = False
        if not self.is_kept:
            return "Connection: close\r\n"
        if head is not None and head.is_http_1_0:
            return f"Connection: keep-alive\r\n{self._listener.keep_alive_header}"
        return self._listener.keep_alive_header

    def send_piece(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the answer."""
        self._listener.post(partial(self._send, data, is_last=is_last))

    def send_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Send an answer, from this thread as far as the kernel takes it: the client waits for no other thread."""
        listener = self._listener
        data = b"".join(pieces) if listener.is_tls else self._writer.send_now(pieces)
        if data:
            self.send_piece(data, is_last=True)
            return
        # The event loop looks there when it reads the next request: to wake it for that alone costs a fifth of the
        # time of a small request. After the append, since the loop may be reading now.
        listener.answered.append(self)
        has_more = self.has_ended or not self._reader.is_empty or bool(listener.table.waiting)
        if has_more or not self.is_kept:
            listener.post(listener.note_answered)

    def finish(self) -> None:
        """Note that a thread has sent the whole answer."""
        self._send(b"", is_last=True)

    def end_turn(self) -> None:
        """Continue the exchange once the client has read all pieces."""
        self._listener.post(self._end_turn)

    def _end_turn(self) -> None:
        if self._writer.is_lost:
            self._close_exchange()
        elif self._writer.unread:
            self._next = _Next.TURN
        elif self._exchange is not None:
            self._listener.pool.proceed(self._exchange.go_on)

    def start_watch(self, data: bytes, watch: ReservedWatch) -> None:
        """Send the beginning of an answer that a watch continues."""
        self._listener.post(self._begin_watch, data, watch)

    def _begin_watch(self, data: bytes, watch: ReservedWatch) -> None:
        if self._exchange is None or self._transport.is_closing():
            watch.close()
            return
        self._watch = watch
        watch.watch.wake = partial(self._listener.watchers.wake, self)
        self._listener.watchers.add(self)
        self._enter(Phase.WATCHING)
        self._writer.write(data)
        # Events that occurred before `wake` was set are sent now.
        self.attend()

    def refuse(self, error: RefusedError) -> None:
        """Answer without the application."""
        self._listener.post(self._refuse_exchange, error)

    def _refuse_exchange(self, error: RefusedError) -> None:
        if not self._transport.is_closing():
            self._send_refusal(error)

    def abort(self) -> None:
        """Close the connection: the answer cannot be finished."""
        self._listener.post(self.drop)
