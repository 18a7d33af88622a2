# SPDX-License-Identifier: Apache-2.0
"""A client's connection: it reads requests, exchanges produce their answers, and it writes these.

A connection is in one phase (`Phase`), with a deadline. All methods run in the event loop, except `send_whole` and
`connection_headers`.
"""

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.operations.call import CLIENT_GONE_KEY
from treeclaim.api.protocol.texts import format_http_date, now
from treeclaim.server.bounds import LINGER_BYTES, LINGER_SECONDS, SMALL_BYTES, SWEEP_SECONDS
from treeclaim.server.http.errors import busy, render_refusal
from treeclaim.server.http.exchange import Exchange
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.reader import RequestReader
from treeclaim.server.http.table import Phase
from treeclaim.server.http.writer import CONTINUE, AnswerWriter
from treeclaim.watching import Watch

if TYPE_CHECKING:
    from treeclaim.server.http.listener import HttpListener

_LOG = logging.getLogger(__name__)

_LATE = ApiError(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")
_FULL = busy("Too many requests have come.")

_BEFORE_ANSWER = (Phase.OPENING, Phase.READING, Phase.RECEIVING, Phase.IDLE)

_CLOSE_HEADER = "Connection: close\r\n"
"""Announces that this answer is the last of its connection."""


class HttpConnection(asyncio.BufferedProtocol):
    """A client's connection.

    Attributes:
        listener: Its listener.
        phase, deadline, entered: Its phase, the end of it, and the number of its beginning.
        held: Bytes that its table counts: the reserved room for a long request, and the unread answer.
        is_gone: Whether the client has closed the connection.
        has_ended: Whether the client has half-closed the connection. It still receives its answer.
        opening: Makes the connection; it may still negotiate TLS.
    """

    def __init__(self, listener: "HttpListener", accepted: socket.socket) -> None:
        """Wait for the first request."""
        self.listener = listener
        self.phase = Phase.OPENING
        self.deadline = self._after(listener.limits.header_seconds)
        self.held = self.entered = 0
        self.is_gone = self.has_ended = False
        self.opening: asyncio.Task[Any] | None = None
        self._socket = accepted
        self._transport = cast("asyncio.Transport", None)
        self._writer = cast("AnswerWriter", None)
        self._reader = RequestReader(listener.limits.body_bytes)
        self._reserved = 0
        self._environment: dict[str, Any] = {}
        self._exchange: Exchange | None = None
        self._watch: Watch | None = None
        self._is_kept = True
        self._is_paused = False
        # What follows once the client has read everything; None while a thread works on the answer.
        self._next_step: Callable[[], None] | None = None

    def _after(self, seconds: float) -> float:
        return self.listener.loop.time() + seconds

    def _enter(self, phase: Phase, deadline: float = math.inf) -> None:
        self.listener.table.move(self, phase)
        self.deadline = deadline
        self.regulate()

    def _count(self) -> None:
        self.listener.table.count_bytes(self, self._reserved + self._writer.unread)

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare for requests."""
        self._transport = cast("asyncio.Transport", transport)
        self._writer = AnswerWriter(self._socket, self._transport)
        self._environment = self.listener.environment | {CLIENT_GONE_KEY: lambda: self.is_gone}
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._environment |= {"REMOTE_ADDR": peer[0], "REMOTE_PORT": str(peer[1])}

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's
        """Return the buffer for the next bytes, no longer than the connection may hold."""
        return self.listener.buffer[: max(self._room(), 1)]

    def buffer_updated(self, nbytes: int) -> None:
        """Read bytes of the client."""
        self._reader.feed(self.listener.buffer[:nbytes])
        self.listener.note_answered()
        self._read_request()
        if self.phase is Phase.LINGERING and (self._reader.dropped or 0) > LINGER_BYTES:
            self.drop()
        self.regulate()

    def eof_received(self) -> bool:
        """Note that the client has half-closed the connection; return whether it may still receive an answer."""
        self.has_ended = True
        # TLS has no half-closed connections.
        self.is_gone = self.is_gone or self.listener.is_tls
        self.attend()
        self.listener.note_answered()
        self._read_request()
        if self.phase in (*_BEFORE_ANSWER, Phase.LINGERING) or self.listener.is_tls:
            return False
        if self.phase is Phase.ANSWERING:
            # Check soon whether the client still reads.
            self.deadline = self.listener.loop.time()
            if self._exchange is not None and not self._exchange.head.is_http_1_0:
                self._writer.probe()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Release all resources."""
        self.is_gone = True
        self.listener.table.remove(self)
        self._end_watch()
        self._release()
        self.listener.table.wake()

    def pause_writing(self) -> None:
        """Note that the kernel's buffer is full; TLS may cause this before the connection is made."""
        if self._writer is not None:
            self._writer.pause()

    def resume_writing(self) -> None:
        """Continue an answer after the kernel has accepted all bytes."""
        if self._writer is None or self._writer.is_lost:
            return
        self._writer.resume()
        self._count()
        if self.phase is Phase.SENDING:
            self._enter(Phase.ANSWERING, self._after(0) if self.has_ended else math.inf)
            if self._next_step is not None:
                self._next_step()

    # Called by the table, the listener and the watchers.

    def expire(self) -> None:
        """Handle a deadline that has passed."""
        if self.phase in (Phase.ANSWERING, Phase.WATCHING):
            # The loop does not read from a half-closed connection, so a reset shows only at the socket.
            if self._writer.has_failed():
                self.drop()
                return
            self.deadline = self._after(SWEEP_SECONDS) if self.has_ended else math.inf
            self.attend()
        elif self.phase in (Phase.READING, Phase.RECEIVING):
            self.evict()
        elif self.phase is Phase.SENDING and self._writer.has_read_enough():
            self._give_time_to_read()
        else:
            _LOG.debug("Closed a connection that was %s for too long", self.phase.name.lower())
            self.drop()

    def evict(self) -> None:
        """Refuse an unfinished request, or close the connection of an unread answer, and release its bytes."""
        if self.phase is Phase.SENDING or self._transport.is_closing():
            self.drop()
            self._release()
        else:
            self._refuse(_FULL if self in self.listener.table.waiting else _LATE)

    def _refuse(self, error: ApiError) -> None:
        self._reader.drop()
        self._is_kept = False
        self._enter(Phase.ANSWERING)
        self.send_refusal(error)

    def drop(self) -> None:
        """Close at once, and discard unsent bytes."""
        self.listener.table.remove(self)
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def close_if_unused(self) -> None:
        """Close unless a request is under way."""
        if self._transport is None:
            self.drop()
        elif self.phase in (Phase.OPENING, Phase.IDLE):
            self._transport.close()

    def attend(self) -> None:
        """Send pending events, if this connection watches and its client has read the events before."""
        watch, exchange = self._watch, self._exchange
        if watch is None or exchange is None or self.phase is not Phase.WATCHING:
            return
        ends = self.has_ended or self.listener.is_stopping
        data = exchange.frame((watch.finish() if ends else watch.take()) or b"")
        self.deadline = watch.due
        if not watch.is_over:
            self._send(data, self._watch_on)
            return
        self._end_watch()
        self._is_kept = self._is_kept and not self.listener.is_stopping
        self.send_last(data + exchange.last_bytes)

    def regulate(self) -> None:
        """Pause or resume reading by the bounds of the table."""
        if self._transport.is_closing():
            return
        has_room = self._room() > 0
        if has_room or self.phase not in _BEFORE_ANSWER:
            self.listener.table.waiting.pop(self, None)
        else:
            self.listener.table.waiting.setdefault(self, self.listener.loop.time())
        if has_room == self._is_paused:
            self._is_paused = not has_room
            if has_room:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    # Reading.

    def _room(self) -> int:
        """Return how many bytes may be read now; reserve room for a request that turns out to be long."""
        reader = self._reader
        if reader.dropped is not None:
            return reader.piece if reader.dropped <= LINGER_BYTES else 0
        if self.phase not in _BEFORE_ANSWER:
            # Requests sent ahead remain in the kernel until the answer has been read.
            return SMALL_BYTES - reader.ahead
        free = SMALL_BYTES - reader.held_bytes
        if free > 0 and not self._reserved:
            return min(reader.piece, free)
        missing = reader.most_bytes - self._reserved
        if missing > 0:
            if not self.listener.table.reserve(self, missing):
                return 0
            self._reserved += missing
        return reader.piece

    def _read_request(self) -> None:
        """Start to answer a request if it is complete; later requests wait."""
        if self.phase not in _BEFORE_ANSWER or self._transport.is_closing():
            return
        try:
            head = self._reader.next_request()
        except ApiError as error:
            self._refuse(error)
            return
        if head is None:
            self._await_request()
        else:
            self._begin(head)

    def _await_request(self) -> None:
        """Set the deadline for the remainder of a request."""
        reader, limits = self._reader, self.listener.limits
        if self.has_ended:
            self._transport.close()
        elif reader.head is not None:
            if self.phase is not Phase.RECEIVING:
                self._enter(Phase.RECEIVING, self._after(limits.body_seconds))
                if reader.wants_continue:
                    self._transport.write(CONTINUE)
        elif self.phase is not Phase.READING and not reader.is_empty:
            # Empty lines between requests do not extend the deadline.
            is_first = self.phase is Phase.OPENING
            self._enter(
                Phase.READING, self.deadline if is_first else self._after(limits.header_seconds)
            )

    # Answering.

    def _begin(self, head: RequestHead) -> None:
        listener = self.listener
        self._next_step = None
        self._is_kept = head.keep_alive and self._reader.dropped is None
        head.environment.update(self._environment)
        self._exchange = exchange = Exchange(listener.application, self, head)
        if self._reserved:
            self._reserved = head.size
            self._count()
        self._enter(Phase.ANSWERING)
        self._writer.begin()
        if not listener.pool.offer(exchange.run):
            exchange.close()
            self.send_refusal(busy())

    def _release(self) -> None:
        """Release all bytes, except those of a request in a thread, which detects the loss at its end."""
        self._reader.drop()
        self._writer.lose()
        self._count()
        if self._exchange is None or self._next_step is not None:
            self._release_request()

    def _release_request(self) -> None:
        """Release the request, which no thread uses."""
        exchange, self._exchange = self._exchange, None
        self._reserved = 0
        self._count()
        if exchange is not None and self._next_step == self._continue_stream:
            self.listener.pool.proceed(exchange.close)

    def send_refusal(self, error: ApiError) -> None:
        """Answer without the application."""
        peer = self._environment.get("REMOTE_ADDR", "-")
        _LOG.info("Refused a request of %s: %s %s", peer, error.status.value, error.detail)
        self.send_last(render_refusal(error, format_http_date(now()), self.connection_headers()))

    def send_part(self, data: bytes) -> None:
        """Send a part of an answer, of which a thread produces more."""
        self._send(data, None)

    def end_turn(self) -> None:
        """Continue the exchange once the client has read all pieces."""
        self._send(b"", self._continue_stream)

    def send_last(self, data: bytes) -> None:
        """Send the end of an answer."""
        self._reserved = 0
        self._send(data, self._finish)

    def abort_answer(self) -> None:
        """Close at once, as the answer cannot be completed."""
        self._release_request()
        self.drop()

    def _send(self, data: bytes, next_step: Callable[[], None] | None) -> None:
        """Send bytes; run the next step once the client has read everything."""
        self._next_step = next_step
        self._writer.write(data)
        self._count()
        if self._transport.is_closing():
            if next_step is not None:
                self._release_request()
        elif self._writer.unread:
            if self.phase is not Phase.SENDING:
                self._enter(Phase.SENDING)
                self._give_time_to_read()
            self.listener.table.enforce(self)
        elif next_step is not None:
            next_step()

    def _give_time_to_read(self) -> None:
        self._writer.start_measuring()
        self.deadline = self._after(self.listener.limits.answer_seconds)

    def _continue_stream(self) -> None:
        self._next_step = None
        if self._exchange is not None:
            self.listener.pool.proceed(self._exchange.continue_stream)

    def begin_watch(self, data: bytes, watch: Watch) -> None:
        """Send the beginning of an answer that a watch continues."""
        self._watch, self._reserved = watch, 0
        if self._transport.is_closing():
            self._end_watch()
        else:
            watch.wake = partial(self.listener.watchers.wake, self)
        self._send(data, self._watch_on)

    def _watch_on(self) -> None:
        """Wait for events; send those that occurred while the client read the last ones."""
        if self.phase is not Phase.WATCHING:
            self._enter(Phase.WATCHING)
            self.attend()

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            self.listener.watchers.close(watch)

    def _finish(self) -> None:
        """Close the connection, or wait for the next request."""
        self._exchange = None
        self.listener.table.wake()
        reader = self._reader
        has_more = self._is_paused or not reader.is_empty or reader.dropped is not None
        if not has_more and (self.has_ended or not self._is_kept):
            self._transport.close()
        elif self._is_kept:
            self._enter(Phase.IDLE, self._after(self.listener.limits.keep_alive_seconds))
            if not reader.is_empty:
                self.listener.loop.call_soon(self._read_request)
        else:
            self._linger()

    def _linger(self) -> None:
        """Read for some seconds: closing with unread data resets the connection and discards the answer."""
        self._reader.drop()
        self._enter(Phase.LINGERING, self._after(LINGER_SECONDS))
        if self.has_ended:
            self._transport.close()
        elif self._transport.can_write_eof():
            # The event loop detects a connection that the client has reset.
            with suppress(OSError):
                self._transport.write_eof()

    # Called by threads.

    def connection_headers(self) -> str:
        """Return the headers that announce whether the connection stays open after this answer."""
        listener, exchange = self.listener, self._exchange
        if exchange is None or listener.is_stopping or not exchange.head.keep_alive:
            self._is_kept = False
        if exchange is None or not self._is_kept:
            return _CLOSE_HEADER
        version = "Connection: keep-alive\r\n" if exchange.head.is_http_1_0 else ""
        return version + listener.keep_alive_header

    def send_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Send an answer from this thread as far as the kernel accepts it, without waiting for the event loop."""
        listener = self.listener
        data = b"".join(pieces) if listener.is_tls else self._writer.send_now(pieces)
        if data:
            listener.post(self.send_last, data)
            return
        # The event loop checks this deque when it reads the next request; waking it would cost a fifth of the time of a
        # small request. The conditions follow the append, as the loop may be reading now.
        listener.answered.append(self)
        has_more = self.has_ended or not self._reader.is_empty or bool(listener.table.waiting)
        if has_more or not self._is_kept:
            listener.post(listener.note_answered)
