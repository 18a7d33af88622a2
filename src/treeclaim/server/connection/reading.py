# SPDX-License-Identifier: Apache-2.0
"""Reads requests from the bytes of a connection: first the head, then the body, whole.

    HEAD ──its empty line──▶ LENGTH or CHUNKS ──the last byte──▶ HEAD …

Nothing here waits or knows deadlines. `RequestReader` keeps what has arrived, counts it, and returns a
request as soon as it is complete; the connection decides how long the client may take for the rest.
Each byte is looked at once, however the bytes are cut.
"""

from enum import Enum, auto

from treeclaim.server.bounds import HEAD_BYTES, MOST_HEADERS, READ_BYTES, SCANNED_BYTES
from treeclaim.server.http.chunks import Body, Chunks
from treeclaim.server.http.head import RequestHead, read_head
from treeclaim.server.http.refusals import too_long
from treeclaim.server.sharing.account import HeldBytes

_END_OF_HEAD = b"\r\n\r\n"


class _At(Enum):
    HEAD = auto()
    LENGTH = auto()
    CHUNKS = auto()


class RequestReader:
    """The bytes that a client has sent, as requests.

    Attributes:
        head: Of an unfinished request, once it is there.
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
        """Whether nothing has come of the next request."""
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
        try:
            head = self.head or self._read_head()
            if head is None or not self._is_whole(head):
                return None
            self.head = None
            return head
        finally:
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
        # Each line ends once, and the first of them is no header.
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
