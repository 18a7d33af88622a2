# SPDX-License-Identifier: Apache-2.0
"""One connection: reads requests, has them answered in order, and keeps the client's deadlines.

`RequestReader` knows what has arrived, `AnswerWriter` what has not left, `Exchange` runs the
application in a thread. The connection moves between the phases of `Phase`, and each phase has its
deadline; the table of connections calls `expire` when one has passed.
"""

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, cast

from treeclaim.server.bounds import EARLY_BYTES, LINGER_BYTES, LINGER_SECONDS, SMALL_REQUEST
from treeclaim.server.connection.reading import RequestReader
from treeclaim.server.connection.shared import Shared
from treeclaim.server.connection.watching import Watching
from treeclaim.server.connection.writing import AnswerWriter
from treeclaim.server.http.exchange import Exchange
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.refusals import RefusedError, refusal
from treeclaim.server.sharing.table import Phase
from treeclaim.server.sharing.watchers import Watch, Watchers

_LOG = logging.getLogger(__name__)

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NEVER = math.inf

_BEFORE_ANSWER = (Phase.OPENING, Phase.READING, Phase.IDLE)


class Connection(asyncio.Protocol):
    """A client's connection.

    Everything runs in the event loop except `is_gone`, `closing_headers`, `proceed` and the methods
    named `post...`, which threads call.

    Attributes:
        phase: What the connection waits for; the table of connections sets it.
        deadline: When the phase ends, in the loop's time.
        gone: Whether the client has hung up.
    """

    def __init__(self, front: Shared, accepted: socket.socket) -> None:
        """Wait for the first request.

        Args:
            front: What the process shares among its connections.
            accepted: The socket.
        """
        self.phase = Phase.OPENING
        self.deadline = front.loop.time() + front.limits.header_seconds
        self.gone = False
        self._front = front
        self._socket = accepted
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._writer: AnswerWriter = cast("AnswerWriter", None)
        self._reader = RequestReader(front.limits.body_bytes)
        self._environment: dict[str, Any] = {}
        self._head: RequestHead | None = None
        self._exchange: Exchange | None = None
        self._is_answered = False
        self._keeps_open = True
        self._is_unread = False
        self._is_body_awaited = False
        self._is_reading = True
        self._is_within_read = False
        self._waits_for_client = False
        self._is_last_sent = False
        self._watching: Watching | None = None
        self._discarded = 0

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Enter the table of connections."""
        self._transport = cast("asyncio.Transport", transport)
        self._writer = AnswerWriter(self._socket, self._transport)
        self._environment = self._front.environment_of(self._transport)
        self._environment["treeclaim.client_gone"] = self.is_gone
        self._front.note_made(self)

    def is_gone(self) -> bool:
        """Return whether the client has hung up; threads ask."""
        return self.gone

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self.phase is Phase.LINGERING:
            self._discarded += len(data)
            if self._discarded > LINGER_BYTES:
                self.drop()
            return
        self._reader.data += data
        if self._is_answered:
            self._settle()
        elif self.phase in _BEFORE_ANSWER:
            self._read()
        elif len(self._reader.data) > EARLY_BYTES:
            self._is_reading = False
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Note that the client sends no more; return whether it may still get its answer."""
        self.gone = True
        self._settle()
        self.attend()
        return self.phase not in (*_BEFORE_ANSWER, Phase.LINGERING) and not self._front.is_tls

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Release all that the connection holds."""
        self._writer.lose()
        self.gone = True
        self._front.table.remove(self)
        self._front.incoming.release(self)
        self._front.unsent.release(self)
        self._reader.data.clear()
        self._end_watch()
        # A turn that is under way learns of it at its end.
        if self._waits_for_client and self._exchange is not None:
            self._front.pool.proceed(self._exchange.close)
            self._exchange = None
        self._front.note_closed()

    def pause_writing(self) -> None:
        """Note that the client has not taken all that was sent; TLS may cause this as well."""
        self._writer.is_blocked = True
        if self.phase in (Phase.ANSWERING, Phase.WATCHING):
            self._await_client()

    def resume_writing(self) -> None:
        """Note that the client has taken all that was sent."""
        self._writer.is_blocked = False
        self._front.unsent.release(self)
        if self.phase is not Phase.SENDING:
            return
        self._front.table.move(self, Phase.ANSWERING)
        self.deadline = _NEVER
        if self._is_last_sent:
            self._finish()
        elif self._watching is not None:
            self._front.table.move(self, Phase.WATCHING)
            self.attend()
        elif self._waits_for_client and self._exchange is not None:
            self._waits_for_client = False
            self._front.pool.proceed(self._exchange.go_on)

    # What the table calls.

    def expire(self) -> None:
        """Act on a deadline that has passed."""
        if self._is_answered:
            self._settle()
        elif self.phase is Phase.WATCHING:
            self.attend()
        elif self.phase is Phase.READING:
            self._refuse(
                RefusedError(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")
            )
        elif self.phase is Phase.SENDING and self._writer.has_taken_enough():
            self._give_time_to_take()
        else:
            self._front.note_dropped(self.phase)
            self.drop()

    def drop(self) -> None:
        """Close at once and discard what is unsent."""
        self._front.table.remove(self)
        self._transport.abort()

    def stop_if_unused(self) -> None:
        """Close if no request is under way."""
        self._settle()
        if self.phase in (Phase.OPENING, Phase.IDLE):
            self._transport.close()

    # Reading.

    def _read(self) -> None:
        """Begin to answer each request that is complete, one after the other."""
        self._is_within_read = True
        try:
            while self._reader.data and self.phase in _BEFORE_ANSWER:
                head = self._reader.request()
                if head is None:
                    self._await_rest()
                    return
                self._begin_answer(head)
        except RefusedError as error:
            self._refuse(error)
        finally:
            self._is_within_read = False

    def _await_rest(self) -> None:
        """Give the client its time for the rest of a request, and count what is held of it."""
        if not self._reader.has_head and not self._reader.data:
            # Empty lines between requests give nobody more time.
            return
        now = self._front.loop.time()
        if self.phase is Phase.IDLE:
            self.deadline = now + self._front.limits.header_seconds
        if self.phase is not Phase.READING:
            self._front.table.move(self, Phase.READING)
        if self._reader.has_head and not self._is_body_awaited:
            self._is_body_awaited = True
            self.deadline = now + self._front.limits.body_seconds
            if self._reader.wants_continue:
                self._transport.write(_CONTINUE)
        if self._reader.held_bytes > SMALL_REQUEST:
            self._front.incoming.note(self, self._reader.held_bytes)

    # Answering.

    def _begin_answer(self, head: RequestHead) -> None:
        self._head = head
        self._is_body_awaited = False
        self._is_unread = self._reader.is_unread
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
        """Return the headers that tell the client whether the connection stays open."""
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

    def post_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Send a whole answer, from this thread as far as the kernel takes it at once.

        To leave that to the event loop would cost another switch of threads, which is half of the
        time of a small answer; so would telling the loop of it.
        """
        sent = 0 if self._front.is_tls else self._writer.send_now(pieces)
        if sent == sum(map(len, pieces)) and self._keeps_open:
            # The loop learns of it with the next data, or when it looks at deadlines. Either the
            # loop sees the flag, or this thread sees the data: both write first and look then.
            self.deadline = 0.0
            self._is_answered = True
            if self._reader.data or self.gone:
                self._front.call(self._settle)
        else:
            self._front.call(self._send, b"".join(pieces)[sent:], True)

    def _settle(self) -> None:
        """Finish an answer that a thread has sent."""
        if self._is_answered:
            self._is_answered = False
            if not self._transport.is_closing():
                self._finish()

    def post_turn(self) -> None:
        """Make the next pieces when the client has taken these."""
        self._front.call(self._end_turn)

    def proceed(self, job: Callable[[], None]) -> None:
        """Go on with a request that was begun, in a thread."""
        self._front.pool.proceed(job)

    def post_refusal(self, error: RefusedError) -> None:
        """Answer without the application."""
        self._front.call(self._refuse, error, True)

    def post_abort(self) -> None:
        """Break the connection off."""
        self._front.call(self.drop)

    def _send(self, data: bytes, is_last: bool) -> None:  # noqa: FBT001 - call_soon has no names
        if self._transport.is_closing():
            return
        self._is_last_sent = is_last
        self._writer.write(data)
        if self._writer.is_blocked:
            self._await_client()
        elif is_last:
            self._finish()

    def _end_turn(self) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if self._writer.is_lost:
            self._exchange = None
            self._front.pool.proceed(exchange.close)
        elif self._writer.is_blocked:
            self._waits_for_client = True
        else:
            self._front.pool.proceed(exchange.go_on)

    def _await_client(self) -> None:
        """Give the client its time to take what was sent."""
        if self.phase is not Phase.SENDING:
            self._front.table.move(self, Phase.SENDING)
            self._give_time_to_take()
        self._front.unsent.note(self, self._writer.unsent)

    def _give_time_to_take(self) -> None:
        self._writer.start_measuring()
        self.deadline = self._front.loop.time() + self._front.limits.answer_seconds

    def _refuse(self, error: RefusedError, may_keep: bool = False) -> None:  # noqa: FBT001, FBT002 - see _send
        """Answer without the application; close the connection then unless it may be kept."""
        if self._transport.is_closing():
            return
        self._keeps_open = self._keeps_open and may_keep
        peer = self._environment.get("REMOTE_ADDR", "-")
        _LOG.info("Refused a request of %s: %s %s", peer, error.status.value, error.detail)
        self._is_unread = self._is_unread or not may_keep
        data = refusal(error, self._front.date(), self.closing_headers())
        if self.phase in _BEFORE_ANSWER:
            self._front.table.move(self, Phase.ANSWERING)
            self.deadline = _NEVER
        self._send(data, is_last=True)

    # Watching.

    @property
    def watchers(self) -> Watchers:
        """All that watch in this process."""
        return self._front.watchers

    def post_watch(self, data: bytes, watch: Watch) -> None:
        """Send the beginning of an answer; the rest comes from a watch."""
        self._front.call(self._begin_watch, data, watch)

    def _begin_watch(self, data: bytes, watch: Watch) -> None:
        self._watching = Watching(self.watchers, self, watch, cast("Exchange", self._exchange))
        if self._transport.is_closing():
            self._end_watch()
            return
        self._front.table.move(self, Phase.WATCHING)
        self._writer.write(data)
        # What became news before the watch could wake anybody is sent now.
        self.attend()

    def attend(self) -> None:
        """Send pending data to a watcher that has taken the data before."""
        watching = self._watching
        if watching is None or self.phase is not Phase.WATCHING:
            return
        data = watching.next_bytes(ends=self.gone or self._front.is_stopping)
        self.deadline = watching.due
        if watching.is_over:
            self._end_watch()
            self._front.table.move(self, Phase.ANSWERING)
            self.deadline = _NEVER
            self._keeps_open = self._keeps_open and not self._front.is_stopping
        self._send(data, is_last=self._watching is None)

    def _end_watch(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()

    # After an answer.

    def _finish(self) -> None:
        """Close the connection, or get ready for the next request."""
        self._exchange = self._head = None
        self._is_last_sent = False
        if self.gone and not self._reader.data:
            self._transport.close()
        elif self._keeps_open:
            self._front.table.move(self, Phase.IDLE)
            self.deadline = self._front.loop.time() + self._front.limits.keep_alive_seconds
            self._resume_reading()
            if self._reader.data and not self._is_within_read:
                self._read()
        elif self._is_unread or self._reader.data:
            self._linger()
        else:
            self._transport.close()

    def _resume_reading(self) -> None:
        if not self._is_reading and not self._transport.is_closing():
            self._is_reading = True
            self._transport.resume_reading()

    def _linger(self) -> None:
        """Read on for a while: to close with data unread resets the connection and the answer."""
        self._reader.data.clear()
        self._front.incoming.release(self)
        self._front.table.move(self, Phase.LINGERING)
        self.deadline = self._front.loop.time() + LINGER_SECONDS
        self._resume_reading()
        if self.gone:
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()
