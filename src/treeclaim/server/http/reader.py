# SPDX-License-Identifier: Apache-2.0
"""Reads requests from the bytes of a connection, however they are cut; each byte is scanned once.

HEAD ──its empty line──▶ LENGTH or CHUNKS ──the last byte──▶ HEAD …
"""

from enum import Enum, auto
from http import HTTPStatus

from treeclaim.server.bounds import HEAD_BYTES, MOST_HEADERS, READ_BYTES, SCANNED_BYTES
from treeclaim.server.http.body import ChunkedBody
from treeclaim.server.http.errors import RefusedError
from treeclaim.server.http.head import RequestHead, read_head

_END_OF_HEAD = b"\r\n\r\n"


class _At(Enum):
    HEAD = auto()
    LENGTH = auto()
    CHUNKS = auto()


class RequestReader:
    """The bytes that a client has sent, as requests.

    Attributes:
        head: The head of an unfinished request, once it has arrived.
        dropped: Number of bytes that were dropped, None until `drop`.
    """

    def __init__(self, body_bytes: int) -> None:
        """Expect a head; longer bodies than `body_bytes` are not read, the application refuses them."""
        self.head: RequestHead | None = None
        self.dropped: int | None = None
        self._body_bytes = body_bytes
        self._at = _At.HEAD
        self._data = bytearray()
        self._scanned = self._lines = 0
        self._body = bytearray()
        self._left = 0
        self._chunks: ChunkedBody | None = None

    @property
    def is_empty(self) -> bool:
        """True if nothing of the next request has arrived."""
        return self.head is None and not self._data

    @property
    def ahead(self) -> int:
        """Bytes that have arrived and are not read as a request yet."""
        return len(self._data)

    @property
    def wants_continue(self) -> bool:
        """True if the client waits for 100 Continue before it sends the body."""
        return self.head is not None and self.head.expects_continue and not self._data

    @property
    def piece(self) -> int:
        """Bytes to read in one turn of the event loop: fewer where they must be scanned."""
        return min(self._left, READ_BYTES) if self._at is _At.LENGTH else SCANNED_BYTES

    @property
    def held_bytes(self) -> int:
        """Bytes in memory."""
        held = len(self._data)
        if self.head is not None:
            held += self.head.size + len(self._body)
        if self._chunks is not None:
            held += len(self._chunks.body)
        return held

    def feed(self, data: memoryview) -> None:
        """Append bytes."""
        if self.dropped is not None:
            self.dropped += len(data)
            return
        taken_bytes = 0
        if self._at is _At.LENGTH:
            taken_bytes = min(self._left, len(data))
            self._body += data[:taken_bytes]
            self._left -= taken_bytes
        self._data += data[taken_bytes:]

    def drop(self) -> None:
        """Drop all bytes that are here, and all that will arrive."""
        self.dropped = self.dropped or 0
        self.head = self._chunks = None
        self._data = bytearray()
        self._body = bytearray()
        self._at, self._left = _At.HEAD, 0

    def next_request(self) -> RequestHead | None:
        """Return the next request with its body; None while it is incomplete.

        Raises:
            RefusedError: if it is not HTTP, or its head is too long.
        """
        ahead = self.ahead
        try:
            head = self.head or self._read_head()
            if head is None or not self._take_body(head):
                return None
            self.head = None
            return head
        finally:
            if self.ahead < ahead:
                # A bytearray keeps the memory of what was deleted at its front.
                self._data = self._data[:]

    def _read_head(self) -> RequestHead | None:
        if not self._scanned and self._data.startswith((b"\r", b"\n")):
            # Empty lines before a request are allowed (RFC 9112, 2.2).
            self._data = self._data.lstrip(b"\r\n")
        end = self._find_end_of_head()
        if end is None:
            return None
        text = bytes(self._data[:end])
        del self._data[:end]
        self._scanned = self._lines = 0
        head = read_head(text)
        if head.is_chunked:
            self._at, self._chunks = _At.CHUNKS, ChunkedBody(self._body_bytes)
        elif head.length <= self._body_bytes:
            self._at = _At.LENGTH
            self._body = self._data[: head.length]
            del self._data[: head.length]
            self._left = head.length - len(self._body)
        else:
            # The application refuses it by its length, while the client still sends.
            self.drop()
        self.head = head
        return head

    def _find_end_of_head(self) -> int | None:
        begin = max(self._scanned - len(_END_OF_HEAD) + 1, 0)
        end = self._data.find(_END_OF_HEAD, begin, HEAD_BYTES)
        until = len(self._data) if end < 0 else end + len(_END_OF_HEAD) // 2
        # Each line ends once, and the first of them is not a header.
        self._lines += self._data.count(b"\n", self._scanned, until)
        self._scanned = until
        if self._lines > MOST_HEADERS + 1 or (end < 0 and until >= HEAD_BYTES):
            raise RefusedError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"URL and headers are longer than {HEAD_BYTES} bytes, or more than {MOST_HEADERS} headers.",
            )
        return None if end < 0 else end + len(_END_OF_HEAD)

    def _take_body(self, head: RequestHead) -> bool:
        """Give a request its body once that is complete or too long; return whether it is."""
        chunks = self._chunks
        if chunks is not None:
            chunks.feed(self._data)
            if not chunks.is_complete and not chunks.is_too_long:
                return False
            if chunks.is_too_long:
                self.drop()
            self._body = chunks.body
            head.environment["CONTENT_LENGTH"] = str(len(chunks.body))
        elif self._left:
            return False
        head.body, self._body = self._body, bytearray()
        head.size += len(head.body)
        self._at, self._chunks = _At.HEAD, None
        return True
