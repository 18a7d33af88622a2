# SPDX-License-Identifier: Apache-2.0
"""The receiving side of a client's connection: bytes become requests, while there is room for them."""

import asyncio
import math
import socket
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, cast

from treeclaim.server.bounds import LINGER_BYTES, SMALL_BYTES
from treeclaim.server.http.errors import RefusedError
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.reader import RequestReader
from treeclaim.server.http.table import Phase
from treeclaim.server.http.writer import CONTINUE

if TYPE_CHECKING:
    from treeclaim.server.http.listener import HttpListener

BEFORE_ANSWER = (Phase.OPENING, Phase.READING, Phase.RECEIVING, Phase.IDLE)


class ReceivingConnection(asyncio.BufferedProtocol):
    """A connection as far as it is read from.

    Attributes:
        phase, deadline, entered: Its phase, the end of it, and the number of its beginning.
        held: Bytes that the connection holds.
        is_gone: Whether the client has closed the connection.
        has_ended: Whether the client sends no more. It may still read: it gets its answer.
        opening: Makes the connection; it may still negotiate TLS.
    """

    def __init__(self, listener: "HttpListener", accepted: socket.socket) -> None:
        """Wait for the first request."""
        self.phase = Phase.OPENING
        self.deadline = listener.loop.time() + listener.limits.header_seconds
        self.held = self.entered = 0
        self.is_gone = False
        self.has_ended = False
        self.opening: asyncio.Task[Any] | None = None
        self._listener = listener
        self._socket = accepted
        self._transport = cast("asyncio.Transport", None)
        self._is_dropped = False
        self._reader = RequestReader(listener.limits.body_bytes)
        self._counted = 0
        self._is_paused = False
        self._has_waited = False

    @abstractmethod
    def expire(self) -> None:
        """Act on a deadline that has passed."""

    @abstractmethod
    def evict(self) -> None:
        """Release an unfinished request, or the unread part of an answer."""

    @abstractmethod
    def refuse_for_room(self) -> None:
        """Refuse a request for which there was no room in time."""

    @abstractmethod
    def _begin(self, head: RequestHead) -> None:
        """Begin to answer a request."""

    @abstractmethod
    def _refuse(self, error: RefusedError) -> None:
        """Answer bytes that are not a request, or too late, and close."""

    def _enter(self, phase: Phase, deadline: float = math.inf) -> None:
        self._listener.table.move(self, phase)
        self.deadline = deadline
        self._regulate()

    def _after(self, seconds: float) -> float:
        return self._listener.loop.time() + seconds

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's
        """Return the buffer for the next bytes, no longer than the connection may hold."""
        return self._listener.buffer[: max(self._room(), 1)]

    def buffer_updated(self, nbytes: int) -> None:
        """Read bytes of the client."""
        self._reader.feed(self._listener.buffer[:nbytes])
        self._count_read()
        self._listener.note_answered()
        self._read_request()
        if self.phase is Phase.LINGERING and (self._reader.dropped or 0) > LINGER_BYTES:
            self.drop()
        self._regulate()

    def drop(self) -> None:
        """Close at once, and discard unsent bytes."""
        self._is_dropped = True
        self._listener.table.remove(self)
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

    def read_on(self) -> None:
        """Read again: there is room."""
        self._regulate()

    def _room(self) -> int:
        """Return how many bytes may be read now."""
        reader = self._reader
        if reader.dropped is not None:
            return reader.piece if reader.dropped <= LINGER_BYTES else 0
        if self.phase in BEFORE_ANSWER:
            return min(reader.piece, self._listener.table.room_of(self))
        # Requests sent ahead remain in the kernel until the answer has been read.
        return SMALL_BYTES - reader.ahead

    def _regulate(self) -> None:
        """Pause reading while there is no room."""
        if self._room() <= 0:
            self._pause()
        elif self._is_paused:
            self._is_paused = False
            self._listener.table.waiting.pop(self, None)
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _pause(self) -> None:
        if self._transport.is_closing():
            return
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        waiting = self._listener.table.waiting
        if self.phase in BEFORE_ANSWER:
            self._has_waited = True
            waiting.setdefault(self, self._listener.loop.time())
        else:
            waiting.pop(self, None)

    def _count_read(self) -> None:
        held = self._reader.held_bytes
        if held != self._counted:
            self._listener.table.add_bytes(self, held - self._counted)
            self._counted = held

    def _drop_received(self) -> None:
        self._reader.drop()
        self._count_read()

    def _read_request(self) -> None:
        """Begin to answer a request if it is complete; the requests behind it wait."""
        if self.phase not in BEFORE_ANSWER or self._transport.is_closing():
            return
        try:
            head = self._reader.next_request()
        except RefusedError as error:
            self._refuse(error)
            return
        finally:
            self._count_read()
        if head is None:
            self._await_request()
        else:
            self._begin(head)

    def _await_request(self) -> None:
        """Give the client its time for the remainder of a request."""
        reader, limits = self._reader, self._listener.limits
        if self.has_ended:
            self._transport.close()
        elif reader.head is not None:
            if self.phase is not Phase.RECEIVING:
                self._enter(Phase.RECEIVING, self._after(limits.body_seconds))
                if reader.wants_continue:
                    self._transport.write(CONTINUE)
        elif self.phase is not Phase.READING and not reader.is_empty:
            # Empty lines between requests give nobody more time.
            is_first = self.phase is Phase.OPENING
            self._enter(
                Phase.READING, self.deadline if is_first else self._after(limits.header_seconds)
            )
