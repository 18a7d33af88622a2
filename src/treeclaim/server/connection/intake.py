# SPDX-License-Identifier: Apache-2.0
"""What a connection reads: requests, first the head, then the body, whole; how much at a time, if anything.

    HEAD ──its empty line──▶ LENGTH or CHUNKS ──the last byte──▶ HEAD …

Before anything is read, the account says how much more may be held. If that is nothing, reading stops, and
so does the client, as the kernel's buffers fill up: until there is room in the account, or until the client
has read the answer during which it has sent too much. `RequestReader` waits for nothing and knows no
deadlines: the connection decides how long the client may take. Each byte is looked at once, however the
bytes are cut.
"""

import asyncio
import socket
from enum import Enum, auto

from treeclaim.server.bounds import (
    AHEAD_BYTES,
    HEAD_BYTES,
    LINGER_BYTES,
    MOST_HEADERS,
    READ_BYTES,
    SCANNED_BYTES,
)
from treeclaim.server.connection.shared import Shared
from treeclaim.server.http.chunks import Chunks
from treeclaim.server.http.head import Body, RequestHead, read_head
from treeclaim.server.http.refusals import too_long
from treeclaim.server.sharing.account import HeldBytes
from treeclaim.server.sharing.hangups import Unread

_END_OF_HEAD = b"\r\n\r\n"


class _At(Enum):
    HEAD = auto()
    LENGTH = auto()
    CHUNKS = auto()


class RequestReader:
    """The bytes that a client has sent, as requests.

    Attributes:
        head: The head of an unfinished request, once it has arrived.
        dropped: Bytes that were dropped, None while none are: after an answer that is the last one
            nothing that comes is of use.
    """

    def __init__(self, hold: HeldBytes, body_bytes: int) -> None:
        """Expect a head.

        Args:
            hold: Where bytes are counted.
            body_bytes: Longest body that is read. The application refuses longer ones.
        """
        self.head: RequestHead | None = None
        self.dropped: int | None = None
        self._hold = hold
        self._body_bytes = body_bytes
        self._at = _At.HEAD
        self._data = bytearray()
        self._looked_at = self._lines = 0
        self._body = Body()
        self._left = 0
        self._chunks: Chunks | None = None
        self._counted = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the next request has come."""
        return self.head is None and not self._data

    @property
    def ahead(self) -> int:
        """Bytes that have come and are not read as a request yet."""
        return len(self._data)

    @property
    def wants_continue(self) -> bool:
        """Whether the client waits for 100 Continue before it sends the body."""
        return self.head is not None and self.head.expects_continue and not self._data

    @property
    def piece(self) -> int:
        """Bytes that may come in one turn: more where they need not be looked at."""
        return min(self._left, READ_BYTES) if self._at is _At.LENGTH else SCANNED_BYTES

    @property
    def held_bytes(self) -> int:
        """Bytes in memory."""
        held = len(self._data)
        if self.head is not None:
            held += self.head.size + self._body.size
        if self._chunks is not None:
            held += self._chunks.body.size
        return held

    def take(self, data: memoryview) -> None:
        """Keep bytes."""
        if self.dropped is not None:
            self.dropped += len(data)
            return
        taken = 0
        if self._at is _At.LENGTH:
            taken = self._body.write(data[: self._left])
            self._left -= taken
        self._data += data[taken:]
        self._count()

    def drop(self) -> None:
        """Drop what there is, and what will come."""
        self.dropped = self.dropped or 0
        self.head = self._chunks = None
        self._data = bytearray()
        self._body = Body()
        self._at, self._left = _At.HEAD, 0
        self._count()

    def request(self) -> RequestHead | None:
        """Return the next request with its body; None while it is incomplete.

        From now on its `size` is the caller's to count.

        Raises:
            RefusedError: if it is not HTTP, or its head is too long.
        """
        ahead = self.ahead
        try:
            head = self.head or self._read_head()
            if head is None or not self._is_whole(head):
                return None
            self.head = None
            return head
        finally:
            if self.ahead < ahead:
                # What was taken from the front stays allocated, and nobody counts it.
                self._data = self._data[:]
            self._count()

    def _count(self) -> None:
        held = self.held_bytes
        if held != self._counted:
            self._hold.add(held - self._counted)
            self._counted = held

    def _read_head(self) -> RequestHead | None:
        if not self._looked_at and self._data.startswith((b"\r", b"\n")):
            # Empty lines before a request are allowed (RFC 9112, 2.2).
            self._data = self._data.lstrip(b"\r\n")
        end = self._end_of_head()
        if end is None:
            return None
        text = bytes(self._data[:end])
        del self._data[:end]
        self._looked_at = self._lines = 0
        head = read_head(text)
        if head.is_chunked:
            self._at, self._chunks = _At.CHUNKS, Chunks(self._body_bytes)
        elif head.length <= self._body_bytes:
            self._at, self._left = _At.LENGTH, head.length
            taken = self._body.write(self._data[: self._left])
            del self._data[:taken]
            self._left -= taken
        else:
            # The application refuses it by its length; the client learns that while it sends.
            self.drop()
        self.head = head
        return head

    def _end_of_head(self) -> int | None:
        """Return where the head ends; None while that has not come.

        Raises:
            RefusedError: if it is too long, or has too many lines.
        """
        begin = max(self._looked_at - len(_END_OF_HEAD) + 1, 0)
        end = self._data.find(_END_OF_HEAD, begin, HEAD_BYTES)
        until = len(self._data) if end < 0 else end + len(_END_OF_HEAD) // 2
        # Each line ends once, and the first of them is not a header.
        self._lines += self._data.count(b"\n", self._looked_at, until)
        self._looked_at = until
        if self._lines > MOST_HEADERS + 1 or (end < 0 and until >= HEAD_BYTES):
            raise too_long()
        return None if end < 0 else end + len(_END_OF_HEAD)

    def _is_whole(self, head: RequestHead) -> bool:
        """Return whether a request is complete, or its rest will not be read; give it its body."""
        chunks = self._chunks
        if chunks is not None:
            chunks.feed(self._data)
            if not chunks.is_complete and not chunks.is_too_long:
                return False
            if chunks.is_too_long:
                self.drop()
            self._body = chunks.body
            head.environment["CONTENT_LENGTH"] = str(chunks.body.size)
        elif self._left:
            return False
        head.body, self._body = self._body, Body()
        head.size += head.body.size
        self._at, self._chunks = _At.HEAD, None
        return True


class Intake:
    """The bytes that come from a client.

    Attributes:
        reader: Where they go.
        is_ahead: Whether what comes now is sent ahead, while an answer is under way.
        has_waited: Whether the client had to wait for room in the account, with this request.
        has_ended: Whether all has been read that the client will ever send.
    """

    def __init__(
        self,
        front: Shared,
        owner: Unread,
        accepted: socket.socket,
        transport: asyncio.Transport,
        hold: HeldBytes,
    ) -> None:
        self.reader = RequestReader(hold, front.limits.body_bytes)
        self.is_ahead = False
        self.has_waited = False
        self.has_ended = False
        self._front = front
        self._owner = owner
        self._number = accepted.fileno()
        self._transport = transport
        self._hold = hold
        self._is_paused = False

    @property
    def is_reading(self) -> bool:
        """Whether what comes is read as soon as it has its turn."""
        return not self._is_paused

    @property
    def may_have_more(self) -> bool:
        """Whether there is, or may be, something that is not read as a request."""
        return self._is_paused or not self.reader.is_empty or self.reader.dropped is not None

    def buffer(self) -> memoryview:
        """Return where the next bytes come; never longer than what may be held."""
        return self._front.buffer[: max(self._room(), 1)]

    def take(self, size: int) -> None:
        """Take bytes out of the buffer."""
        self.reader.take(self._front.buffer[:size])

    def regulate(self) -> None:
        """Stop reading, or read on, depending on whether there is room."""
        if self._room() <= 0:
            self._pause()
        elif self._is_paused:
            self._resume()

    def await_reset(self) -> None:
        """Have the owner told when a client that sends no more is gone."""
        self._front.hangups.watch_ended(self._owner, self._number)

    def close(self) -> None:
        """Release all."""
        self._forget()
        self.reader.drop()

    def _room(self) -> int:
        reader = self.reader
        if reader.dropped is not None:
            return reader.piece if reader.dropped <= LINGER_BYTES else 0
        if self.is_ahead:
            return min(AHEAD_BYTES - reader.ahead, self._hold.room)
        return min(reader.piece, self._hold.ask_for_room())

    def _pause(self) -> None:
        if self._transport.is_closing():
            return
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        if self.is_ahead:
            self._front.hangups.watch(self._owner, self._number)
        else:
            self._forget()
            self.has_waited = True
            self._hold.wait_for_room()

    def _resume(self) -> None:
        self._forget()
        self._is_paused = False
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _forget(self) -> None:
        self._front.account.waiting.pop(self._hold, None)
        self._front.hangups.forget(self._owner, self._number)
