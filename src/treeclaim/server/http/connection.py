# SPDX-License-Identifier: Apache-2.0
"""A client's connection, which reads requests, and writes the answers of their exchanges."""

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

_BEFORE_ANSWER = (Phase.OPENING, Phase.READING, Phase.RECEIVING, Phase.IDLE)


class HttpConnection(asyncio.BufferedProtocol):
    """A client's connection. All methods run in the event loop, except `send_whole` and `connection_headers`.

    Attributes:
        phase, deadline, entry_number: The phase, its deadline, and its number in the order of all phases of connections.
        held_bytes: Bytes that the table counts: the reserved room of a long request, and the unread answer.
        is_gone, has_ended: Whether the client has closed the connection, or half-closed it and awaits an answer.
        opening: The task that opens the connection and negotiates TLS; None afterwards.
    """

    def __init__(self, listener: "HttpListener", accepted_socket: socket.socket) -> None:
        self.listener = listener
        self.phase = Phase.OPENING
        self.deadline = self._time_in(listener.limits.header_seconds)
        self.held_bytes = self.entry_number = 0
        self.is_gone = self.has_ended = False
        self.opening: asyncio.Task[Any] | None = None
        self._socket = accepted_socket
        self._transport = cast("asyncio.Transport", None)
        self._writer = cast("AnswerWriter", None)
        self._reader = RequestReader(listener.limits.body_bytes)
        self._reserved_bytes = 0
        self._environment: dict[str, Any] = {}
        self._exchange: Exchange | None = None
        self._watch: Watch | None = None
        self._is_persistent = True
        self._is_paused = False
        # Runs once the client has read everything; None while a thread works on the answer.
        self._next_step: Callable[[], None] | None = None

    def _time_in(self, seconds: float) -> float:
        return self.listener.loop.time() + seconds

    def _enter(self, phase: Phase, deadline: float = math.inf) -> None:
        self.listener.table.move(self, phase)
        self.deadline = deadline
        self.regulate_reading()

    def _count_bytes(self) -> None:
        self.listener.table.set_held_bytes(self, self._reserved_bytes + self._writer.unread_bytes)

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare to read requests."""
        self._transport = cast("asyncio.Transport", transport)
        self._writer = AnswerWriter(self._socket, self._transport)
        self._environment = self.listener.environment | {CLIENT_GONE_KEY: lambda: self.is_gone}
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._environment |= {"REMOTE_ADDR": peer[0], "REMOTE_PORT": str(peer[1])}

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's
        """Return a buffer of at most as many bytes as the connection may hold."""
        return self.listener.buffer[: max(self._reserve_room(), 1)]

    def buffer_updated(self, nbytes: int) -> None:
        """Process received bytes."""
        self._reader.feed(self.listener.buffer[:nbytes])
        self.listener.continue_answered()
        self._read_request()
        if self.phase is Phase.LINGERING and (self._reader.dropped_bytes or 0) > LINGER_BYTES:
            self.drop()
        self.regulate_reading()

    def eof_received(self) -> bool:
        """Handle a half-closed connection; return whether its client may still receive an answer."""
        self.has_ended = True
        # TLS has no half-closed connections.
        self.is_gone = self.is_gone or self.listener.is_tls
        self.send_events()
        self.listener.continue_answered()
        self._read_request()
        if self.phase in (*_BEFORE_ANSWER, Phase.LINGERING) or self.listener.is_tls:
            return False
        if self.phase is Phase.ANSWERING:
            # Check soon whether the client still reads.
            self.deadline = self.listener.loop.time()
            self._writer.probe()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Release all resources."""
        self.is_gone = True
        self.listener.table.remove(self)
        self._end_watch()
        self._release()
        self.listener.table.resume_waiting()

    def pause_writing(self) -> None:
        """Note that the kernel's buffer is full; TLS may call this before `connection_made`."""
        if self._writer is not None:
            self._writer.pause()

    def resume_writing(self) -> None:
        """Continue an answer after the kernel has accepted all bytes."""
        if self._writer is None or self._writer.is_lost:
            return
        self._writer.resume()
        self._count_bytes()
        if self.phase is Phase.SENDING:
            self._enter(Phase.ANSWERING, self._time_in(0) if self.has_ended else math.inf)
            if self._next_step is not None:
                self._next_step()

    # Called by the table, the listener and the watchers.

    def expire(self) -> None:
        """Handle a passed deadline."""
        if self.phase in (Phase.ANSWERING, Phase.WATCHING):
            # The loop does not read from a half-closed connection, so only the socket reports a reset.
            if self._writer.has_failed():
                self.drop()
                return
            self.deadline = self._time_in(SWEEP_SECONDS) if self.has_ended else math.inf
            self.send_events()
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
        elif self in self.listener.table.waiting_connections:
            self._refuse(busy("Too many requests have come."))
        else:
            detail = "The request took too long to arrive."
            self._refuse(ApiError(HTTPStatus.REQUEST_TIMEOUT, detail))

    def _refuse(self, error: ApiError) -> None:
        self._reader.drop()
        self._enter(Phase.ANSWERING)
        self.send_refusal(error)

    def drop(self) -> None:
        """Close immediately, and discard unsent bytes."""
        self.listener.table.remove(self)
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def close_if_unused(self) -> None:
        """Close the connection unless a request has begun."""
        if self._transport is None:
            self.drop()
        elif self.phase in (Phase.OPENING, Phase.IDLE):
            self._transport.close()

    def send_events(self) -> None:
        """Send pending events if this connection watches and its client has read all earlier ones."""
        watch, exchange = self._watch, self._exchange
        if watch is None or exchange is None or self.phase is not Phase.WATCHING:
            return
        ends = self.has_ended or self.listener.is_stopping
        data = exchange.frame((watch.finish() if ends else watch.take()) or b"")
        self.deadline = watch.due
        if not watch.is_over:
            self._send(data, self._await_events)
            return
        self._end_watch()
        self._is_persistent = self._is_persistent and not self.listener.is_stopping
        self.send_last(data + exchange.last_bytes)

    def regulate_reading(self) -> None:
        """Pause or resume reading by the bounds of the table."""
        if self._transport.is_closing():
            return
        has_room = self._reserve_room() > 0
        if has_room or self.phase not in _BEFORE_ANSWER:
            self.listener.table.waiting_connections.pop(self, None)
        else:
            self.listener.table.waiting_connections.setdefault(self, self.listener.loop.time())
        if has_room == self._is_paused:
            self._is_paused = not has_room
            if has_room:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _reserve_room(self) -> int:
        """Return how many bytes may be read now; reserve room if the request exceeds `SMALL_BYTES`."""
        reader = self._reader
        if reader.dropped_bytes is not None:
            return reader.piece if reader.dropped_bytes <= LINGER_BYTES else 0
        if self.phase not in _BEFORE_ANSWER:
            # Pipelined requests remain in the kernel until the answer has been read.
            return SMALL_BYTES - reader.unparsed_bytes
        free_bytes = SMALL_BYTES - reader.held_bytes
        if free_bytes > 0 and not self._reserved_bytes:
            return min(reader.piece, free_bytes)
        missing_bytes = reader.most_bytes - self._reserved_bytes
        if missing_bytes > 0:
            if not self.listener.table.reserve(self, missing_bytes):
                return 0
            self._reserved_bytes += missing_bytes
        return reader.piece

    def _read_request(self) -> None:
        """Start to answer the next request, or set its deadline, unless an earlier one is being answered."""
        if self.phase not in _BEFORE_ANSWER or self._transport.is_closing():
            return
        reader, limits = self._reader, self.listener.limits
        try:
            head = reader.next_request()
        except ApiError as error:
            self._refuse(error)
            return
        if head is not None:
            self._start_exchange(head)
        elif self.has_ended:
            self._transport.close()
        elif reader.head is not None:
            if self.phase is not Phase.RECEIVING:
                self._enter(Phase.RECEIVING, self._time_in(limits.body_seconds))
                if reader.wants_continue:
                    self._transport.write(CONTINUE)
        elif self.phase is not Phase.READING and not reader.is_empty:
            # Empty lines between requests do not extend the deadline.
            deadline = self._time_in(limits.header_seconds)
            self._enter(Phase.READING, self.deadline if self.phase is Phase.OPENING else deadline)

    def _start_exchange(self, head: RequestHead) -> None:
        self._next_step = None
        self._is_persistent = head.keep_alive and self._reader.dropped_bytes is None
        head.environment.update(self._environment)
        self._exchange = exchange = Exchange(self.listener.application, self, head)
        if self._reserved_bytes:
            self._reserved_bytes = head.size
            self._count_bytes()
        self._enter(Phase.ANSWERING)
        self._writer.begin(can_probe=not head.is_http_1_0)
        if not self.listener.pool.offer(exchange.run):
            exchange.close()
            self.send_refusal(busy())

    def _release(self) -> None:
        """Release all bytes, except those of a request in a thread, which releases them at its end."""
        self._reader.drop()
        self._writer.lose()
        self._count_bytes()
        if self._exchange is None or self._next_step is not None:
            self._release_request()

    def _release_request(self) -> None:
        exchange, self._exchange = self._exchange, None
        self._reserved_bytes = 0
        self._count_bytes()
        if exchange is not None and self._next_step == self._continue_stream:
            self.listener.pool.proceed(exchange.close)

    def send_refusal(self, error: ApiError) -> None:
        """Send an error without the application."""
        peer = self._environment.get("REMOTE_ADDR", "-")
        _LOG.info("Refused a request of %s: %s %s", peer, error.status.value, error.detail)
        self.send_last(render_refusal(error, format_http_date(now()), self.connection_headers()))

    def send_part(self, data: bytes, *, ends_turn: bool) -> None:
        """Send a part of an answer; after the last part of a turn, continue once the client has read everything."""
        self._send(data, self._continue_stream if ends_turn else None)

    def send_last(self, data: bytes) -> None:
        """Send the end of an answer."""
        self._reserved_bytes = 0
        self._send(data, self._end_answer)

    def abort_answer(self) -> None:
        """Close immediately because the answer cannot be completed."""
        self._release_request()
        self.drop()

    def _send(self, data: bytes, next_step: Callable[[], None] | None) -> None:
        """Send bytes; run the next step once the client has read everything."""
        self._next_step = next_step
        self._writer.write(data)
        self._count_bytes()
        if self._transport.is_closing():
            if next_step is not None:
                self._release_request()
        elif self._writer.unread_bytes:
            if self.phase is not Phase.SENDING:
                self._enter(Phase.SENDING)
                self._give_time_to_read()
            self.listener.table.enforce_bound(self)
        elif next_step is not None:
            next_step()

    def _give_time_to_read(self) -> None:
        self._writer.start_measuring()
        self.deadline = self._time_in(self.listener.limits.answer_seconds)

    def _continue_stream(self) -> None:
        self._next_step = None
        if self._exchange is not None:
            self.listener.pool.proceed(self._exchange.continue_stream)

    def begin_watch(self, data: bytes, watch: Watch) -> None:
        """Send the beginning of an answer that consists of the events of a watch."""
        self._watch, self._reserved_bytes = watch, 0
        if self._transport.is_closing():
            self._end_watch()
        else:
            watch.wake = partial(self.listener.watchers.wake, self)
        self._send(data, self._await_events)

    def _await_events(self) -> None:
        if self.phase is not Phase.WATCHING:
            self._enter(Phase.WATCHING)
            self.send_events()

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            self.listener.watchers.close(watch)

    def _end_answer(self) -> None:
        """Close the connection, or wait for the next request."""
        self._exchange = None
        self.listener.table.resume_waiting()
        reader = self._reader
        has_more_bytes = self._is_paused or not reader.is_empty or reader.dropped_bytes is not None
        if self._is_persistent and (has_more_bytes or not self.has_ended):
            self._enter(Phase.IDLE, self._time_in(self.listener.limits.keep_alive_seconds))
            if not reader.is_empty:
                self.listener.loop.call_soon(self._read_request)
        elif self.has_ended or not has_more_bytes:
            self._transport.close()
        else:
            # Closing with unread data would reset the connection and discard the answer.
            reader.drop()
            self._enter(Phase.LINGERING, self._time_in(LINGER_SECONDS))
            if self._transport.can_write_eof():
                # The event loop detects a connection that the client has reset.
                with suppress(OSError):
                    self._transport.write_eof()

    def connection_headers(self) -> str:
        """Return the headers that announce whether the connection persists after this answer."""
        listener, exchange = self.listener, self._exchange
        if exchange is None or listener.is_stopping or not exchange.head.keep_alive:
            self._is_persistent = False
        if exchange is None or not self._is_persistent:
            return "Connection: close\r\n"
        version = "Connection: keep-alive\r\n" if exchange.head.is_http_1_0 else ""
        return version + listener.keep_alive_header

    def send_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Send an answer from this thread; leave bytes that the kernel does not accept to the event loop."""
        listener = self.listener
        data = b"".join(pieces) if listener.is_tls else self._writer.send_now(pieces)
        if data:
            listener.post(self.send_last, data)
            return
        # The event loop checks this deque when it reads the next request; waking it would cost a fifth of the time of a
        # small request. The conditions are read after the append because the loop may be reading now.
        listener.answered_connections.append(self)
        can_continue = self._is_persistent and not self.has_ended
        if listener.table.waiting_connections or not (can_continue and self._reader.is_empty):
            listener.post(listener.continue_answered)
