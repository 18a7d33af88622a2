# SPDX-License-Identifier: Apache-2.0
"""A client's connection: it reads requests, exchanges produce their answers, and it writes these.

A connection is in one phase (`Phase`), with a deadline. All methods run in the event loop, except those that threads
call.
"""

import asyncio
import logging
import math
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.operations.call import CLIENT_GONE_KEY
from treeclaim.api.protocol.texts import http_date, now
from treeclaim.server.bounds import LINGER_BYTES, LINGER_SECONDS, SMALL_BYTES, SWEEP_SECONDS
from treeclaim.server.http.errors import busy, render_refusal
from treeclaim.server.http.exchange import CLOSE_HEADER, Exchange
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.reader import RequestReader
from treeclaim.server.http.table import Phase
from treeclaim.server.http.watchers import ReservedWatch
from treeclaim.server.http.writer import CONTINUE, AnswerWriter, has_failed

if TYPE_CHECKING:
    from treeclaim.server.http.listener import HttpListener

_LOG = logging.getLogger(__name__)

_BEFORE_ANSWER = (Phase.OPENING, Phase.READING, Phase.RECEIVING, Phase.IDLE)


class HttpConnection(asyncio.BufferedProtocol):
    """A client's connection.

    Attributes:
        listener: Its listener.
        phase, deadline, entered: Its phase, the end of it, and the number of its beginning.
        held: Bytes that the connection holds.
        is_gone: Whether the client has closed the connection.
        has_ended: Whether the client has half-closed the connection. It still receives its answer.
        is_kept: Whether the connection stays open after this answer.
        opening: Makes the connection; it may still negotiate TLS.
    """

    def __init__(self, listener: "HttpListener", accepted: socket.socket) -> None:
        """Wait for the first request."""
        self.listener = listener
        self.phase = Phase.OPENING
        self.deadline = self._after(listener.limits.header_seconds)
        self.held = self.entered = 0
        self.is_gone = self.has_ended = False
        self.is_kept = True
        self.opening: asyncio.Task[Any] | None = None
        self._socket = accepted
        self._transport = cast("asyncio.Transport", None)
        self._writer = cast("AnswerWriter", None)
        self._reader = RequestReader(listener.limits.body_bytes)
        self._environment: dict[str, Any] = {}
        self._exchange: Exchange | None = None
        self._watch: ReservedWatch | None = None
        self._counted = 0
        self._is_dropped = self._is_paused = self._has_waited = False
        # Whether a thread must continue the answer once the client has read the pieces; whether the answer is complete.
        self._awaits_turn = self._is_complete = False

    def _after(self, seconds: float) -> float:
        return self.listener.loop.time() + seconds

    def _enter(self, phase: Phase, deadline: float = math.inf) -> None:
        self.listener.table.move(self, phase)
        self.deadline = deadline
        self._regulate()

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare for requests."""
        self._transport = cast("asyncio.Transport", transport)
        if self._is_dropped:
            self._transport.abort()
            return
        self._writer = AnswerWriter(
            self._socket, self._transport, self.add_bytes, self._continue_answer
        )
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
        self._count_read()
        self.listener.note_answered()
        self._read_request()
        if self.phase is Phase.LINGERING and (self._reader.dropped or 0) > LINGER_BYTES:
            self.drop()
        self._regulate()

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
            if self._exchange is not None and not self._exchange.is_http_1_0:
                self._writer.probe()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Release all resources."""
        self.is_gone = True
        table = self.listener.table
        table.remove(self)
        table.waiting.pop(self, None)
        self._drop_received()
        if self._writer is not None:
            self._writer.lose()
        self._end_watch()
        # A running turn detects the loss at its end.
        if self._awaits_turn:
            self._close_exchange()
        table.wake()

    def pause_writing(self) -> None:
        """Note that the kernel's buffer is full; TLS may cause this before the connection is made."""
        if self._writer is not None:
            self._writer.pause()

    def resume_writing(self) -> None:
        """Note that the kernel has accepted all bytes."""
        if self._writer is not None:
            self._writer.resume()

    # Called by the table, the listener and the watchers.

    def expire(self) -> None:
        """Handle a deadline that has passed."""
        if self.phase in (Phase.ANSWERING, Phase.WATCHING):
            # The loop does not read from a half-closed connection, so a reset shows only at the socket.
            if has_failed(self._socket):
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
        """Release an unfinished request, or the unread part of an answer."""
        if self.phase is Phase.SENDING or self._transport.is_closing():
            self.drop()
            self._writer.lose()
            self._drop_received()
        elif self._has_waited:
            self._refuse(busy("Too many requests have come."))
        else:
            detail = "The request took too long to arrive."
            self._refuse(ApiError(HTTPStatus.REQUEST_TIMEOUT, detail))

    def drop(self) -> None:
        """Close at once, and discard unsent bytes."""
        self._is_dropped = True
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
        piece = watch.take(ends=self.has_ended or self.listener.is_stopping)
        data = exchange.frame(piece) if piece else b""
        self.deadline = watch.watch.due
        is_over = watch.watch.is_over
        if is_over:
            data += exchange.last_bytes
            self._end_watch()
            self._enter(Phase.ANSWERING)
            self.is_kept = self.is_kept and not self.listener.is_stopping
        self.send(data, is_last=is_over)

    # Reading, within the bounds of the table.

    def _room(self) -> int:
        """Return how many bytes may be read now."""
        reader = self._reader
        if reader.dropped is not None:
            return reader.piece if reader.dropped <= LINGER_BYTES else 0
        if self.phase in _BEFORE_ANSWER:
            return min(reader.piece, self.listener.table.room_of(self))
        # Requests sent ahead remain in the kernel until the answer has been read.
        return SMALL_BYTES - reader.ahead

    def _regulate(self) -> None:
        """Pause or resume reading by the bounds of the table."""
        if self._room() <= 0:
            self._pause()
        elif self._is_paused:
            self.read_on()

    def read_on(self) -> None:
        """Resume reading."""
        self._is_paused = False
        self.listener.table.waiting.pop(self, None)
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _pause(self) -> None:
        if self._transport.is_closing():
            return
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        waiting = self.listener.table.waiting
        if self.phase in _BEFORE_ANSWER:
            self._has_waited = True
            waiting.setdefault(self, self.listener.loop.time())
        else:
            waiting.pop(self, None)

    def _count_read(self) -> None:
        held = self._reader.held_bytes
        if held != self._counted:
            self.add_bytes(held - self._counted)
            self._counted = held

    def _drop_received(self) -> None:
        self._reader.drop()
        self._count_read()

    def _read_request(self) -> None:
        """Start to answer a request if it is complete; later requests wait."""
        if self.phase not in _BEFORE_ANSWER or self._transport.is_closing():
            return
        try:
            head = self._reader.next_request()
        except ApiError as error:
            self._refuse(error)
            return
        finally:
            self._count_read()
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
        self._has_waited = self._awaits_turn = self._is_complete = False
        self.is_kept = head.keep_alive and self._reader.dropped is None
        head.environment.update(self._environment)
        self._exchange = exchange = Exchange(listener.application, self, head)
        self._enter(Phase.ANSWERING)
        self._writer.begin()
        if not listener.pool.offer(exchange.run):
            exchange.close()
            self.send_refusal(busy())

    def _refuse(self, error: ApiError) -> None:
        """Refuse invalid or late bytes, and close the connection."""
        self._drop_received()
        self.is_kept = False
        self._enter(Phase.ANSWERING)
        self.send_refusal(error)

    def send_refusal(self, error: ApiError) -> None:
        """Answer without the application."""
        if self._transport.is_closing():
            return
        peer = self._environment.get("REMOTE_ADDR", "-")
        _LOG.info("Refused a request of %s: %s %s", peer, error.status.value, error.detail)
        exchange = self._exchange
        headers = CLOSE_HEADER if exchange is None else exchange.connection_headers()
        self.send(render_refusal(error, http_date(now()), headers), is_last=True)

    def send(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the answer."""
        self._writer.write(data)
        if self._transport.is_closing():
            return
        self._is_complete = is_last
        if self._writer.unread:
            if self.phase is not Phase.SENDING:
                self._enter(Phase.SENDING)
                self._give_time_to_read()
            self.listener.table.enforce(self)
        elif is_last:
            self._finish()

    def _give_time_to_read(self) -> None:
        self._writer.start_measuring()
        self.deadline = self._after(self.listener.limits.answer_seconds)

    def _continue_answer(self) -> None:
        """Continue an answer after the client has read all sent bytes."""
        if self.phase is not Phase.SENDING:
            return
        if self._watch is not None:
            self._enter(Phase.WATCHING)
            self.attend()
            return
        self._enter(Phase.ANSWERING, self._after(0) if self.has_ended else math.inf)
        if self._is_complete:
            self._finish()
        elif self._awaits_turn:
            self.end_turn()

    def end_turn(self) -> None:
        """Continue the exchange once the client has read all pieces."""
        self._awaits_turn = self._writer.unread > 0
        if self._writer.is_lost:
            self._close_exchange()
        elif not self._awaits_turn and self._exchange is not None:
            self.listener.pool.proceed(self._exchange.continue_stream)

    def _close_exchange(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self.listener.pool.proceed(exchange.close)

    def begin_watch(self, data: bytes, watch: ReservedWatch) -> None:
        """Send the beginning of an answer that a watch continues."""
        if self._exchange is None or self._transport.is_closing():
            watch.close()
            return
        self._watch = watch
        watch.watch.wake = partial(self.listener.watchers.wake, self)
        self._enter(Phase.WATCHING)
        self._writer.write(data)
        # Events that occurred before `wake` was set are sent now.
        self.attend()

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _finish(self) -> None:
        """Close the connection, or wait for the next request."""
        self._exchange = None
        self.listener.table.wake()
        reader = self._reader
        has_more = self._is_paused or not reader.is_empty or reader.dropped is not None
        if not has_more and (self.has_ended or not self.is_kept):
            self._transport.close()
        elif self.is_kept:
            self._enter(Phase.IDLE, self._after(self.listener.limits.keep_alive_seconds))
            if not reader.is_empty:
                self.listener.loop.call_soon(self._read_request)
        else:
            self._linger()

    def _linger(self) -> None:
        """Read for some seconds: closing with unread data resets the connection and discards the answer."""
        self._drop_received()
        self._enter(Phase.LINGERING, self._after(LINGER_SECONDS))
        if self.has_ended:
            self._transport.close()
        elif self._transport.can_write_eof():
            # The event loop detects a connection that the client has reset.
            with suppress(OSError):
                self._transport.write_eof()

    # Called by threads.

    def add_bytes(self, change: int) -> None:
        """Add to the bytes that the connection holds; a negative change subtracts."""
        self.listener.table.add_bytes(self, change)

    def send_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Send an answer from this thread as far as the kernel accepts it, without waiting for the event loop."""
        listener = self.listener
        data = b"".join(pieces) if listener.is_tls else self._writer.send_now(pieces)
        if data:
            listener.post(partial(self.send, data, is_last=True))
            return
        # The event loop checks this deque when it reads the next request; waking it would cost a fifth of the time of a
        # small request. The conditions follow the append, as the loop may be reading now.
        listener.answered.append(self)
        has_more = self.has_ended or not self._reader.is_empty or bool(listener.table.waiting)
        if has_more or not self.is_kept:
            listener.post(listener.note_answered)
