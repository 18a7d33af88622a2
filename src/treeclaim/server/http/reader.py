# SPDX-License-Identifier: Apache-2.0
"""Reads requests from the bytes of a connection, and scans each byte once.

A generator reads one request (RFC 9112), and yields while bytes are missing.
"""

import re
from collections.abc import Generator, Iterator
from http import HTTPStatus

from treeclaim.api.protocol.errors import ApiError
from treeclaim.server.bounds import (
    CHUNK_LINE_BYTES,
    HEAD_BYTES,
    HEADER_COST,
    MOST_HEADERS,
    READ_BYTES,
    REQUEST_COST,
    SCANNED_BYTES,
    TRAILER_BYTES,
)
from treeclaim.server.http.head import RequestHead, read_head

_LINE_END, _END = b"\r\n", b"\r\n\r\n"
_REQUEST_LINE = b"GET / HTTP/1.0\r\n"

_SIZE = rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n\0]*)?\r\n"
"""The line before a chunk; extensions are ignored."""

_FIRST, _NEXT = re.compile(_SIZE), re.compile(b"\r\n" + _SIZE)


class RequestReader:
    """A parser of the bytes of a client.

    Bodies longer than `body_bytes` are not read; the application refuses them.

    Attributes:
        head: The head of an incomplete request, once the head has arrived.
        dropped_bytes: Number of dropped bytes; None until `drop`.
    """

    def __init__(self, body_bytes: int) -> None:
        self.head: RequestHead | None = None
        self.dropped_bytes: int | None = None
        self._body_bytes = body_bytes
        self._data = bytearray()
        self._body = bytearray()
        self._missing_bytes = 0
        """Missing bytes of the body, or of its current chunk."""
        self._steps: Iterator[None] = self._read_request()

    @property
    def is_empty(self) -> bool:
        """Whether no byte of the next request has arrived."""
        return self.head is None and not self._data

    @property
    def unparsed_bytes(self) -> int:
        """Number of bytes that have arrived and are not parsed yet."""
        return len(self._data)

    @property
    def wants_continue(self) -> bool:
        """Whether the client waits for 100 Continue before it sends the body."""
        return self.head is not None and self.head.expects_continue and not self._data

    @property
    def piece(self) -> int:
        """Most bytes to read in one turn of the event loop: fewer where they must be scanned."""
        return min(max(self._missing_bytes, SCANNED_BYTES), READ_BYTES)

    @property
    def held_bytes(self) -> int:
        """Number of bytes in memory."""
        byte_count = len(self._data)
        if self.head is not None:
            byte_count += self.head.size + len(self._body)
        return byte_count

    @property
    def most_bytes(self) -> int:
        """Most bytes in memory of the incomplete request, and of the bytes that arrive with its end."""
        if self.head is None:
            return HEAD_BYTES + MOST_HEADERS * HEADER_COST + REQUEST_COST + SCANNED_BYTES
        body = self._body_bytes if self.head.is_chunked else self.head.length
        return self.head.size + body + READ_BYTES

    def feed(self, data: memoryview) -> None:
        """Append received bytes."""
        if self.dropped_bytes is not None:
            self.dropped_bytes += len(data)
            return
        body_bytes = min(self._missing_bytes, len(data))
        self._body += data[:body_bytes]
        self._missing_bytes -= body_bytes
        self._data += data[body_bytes:]

    def drop(self) -> None:
        """Drop all received and all later bytes."""
        self.dropped_bytes = self.dropped_bytes or 0
        self.head = None
        self._data, self._body, self._missing_bytes = bytearray(), bytearray(), 0
        # The generator refers to this reader.
        self._steps = iter(())

    def next_request(self) -> RequestHead | None:
        """Return the next request with its body; None while it is incomplete.

        Raises:
            ApiError: if it is invalid HTTP, or its head or trailer is too long.
        """
        former_bytes = self.unparsed_bytes
        try:
            for _ in self._steps:
                return None
        finally:
            if self.unparsed_bytes < former_bytes:
                # A bytearray keeps the memory of bytes deleted at its front.
                self._data = self._data[:]
        if self.dropped_bytes is None:
            self._steps = self._read_request()
        head, self.head = self.head, None
        return head

    def _read_request(self) -> Iterator[None]:
        while not self._data or self._data.startswith((b"\r", b"\n")):
            # Empty lines may precede a request (RFC 9112, 2.2).
            self._data = self._data.lstrip(_LINE_END)
            if not self._data:
                yield
        detail = f"URL and headers are longer than {HEAD_BYTES} bytes, or more than {MOST_HEADERS} headers."
        # The first line is not a header.
        lines = self._take_lines(HEAD_BYTES, MOST_HEADERS + 1, detail)
        self.head = head = read_head((yield from lines))
        if head.is_chunked:
            yield from self._read_chunks(head)
        elif head.length <= self._body_bytes:
            self._take_body(head.length)
            while self._missing_bytes:
                yield
        else:
            # The application refuses the body by its length while the client still sends it.
            self.drop()
        head.body, self._body = self._body, bytearray()
        head.size += len(head.body)
        self.head = head

    def _take_lines(
        self, most_bytes: int, most_lines: int, detail: str
    ) -> Generator[None, None, bytes]:
        """Remove and return the bytes up to an empty line."""
        scanned_bytes = lines = 0
        while True:
            end = self._data.find(_END, max(scanned_bytes - len(_END) + 1, 0), most_bytes)
            scan_end = len(self._data) if end < 0 else end + len(_LINE_END)
            lines += self._data.count(b"\n", scanned_bytes, scan_end)
            scanned_bytes = scan_end
            if lines > most_lines or (end < 0 and scan_end >= most_bytes):
                raise ApiError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
            if end >= 0:
                text = bytes(self._data[: end + len(_END)])
                del self._data[: len(text)]
                return text
            yield

    def _take_body(self, size: int) -> None:
        """Move received bytes to the body; `feed` adds the missing ones."""
        received_bytes = self._data[:size]
        del self._data[:size]
        self._body += received_bytes
        self._missing_bytes = size - len(received_bytes)

    def _read_chunks(self, head: RequestHead) -> Iterator[None]:
        line = _FIRST
        while True:
            while (match := line.match(self._data, 0, CHUNK_LINE_BYTES)) is None:
                _check_unfinished_line(self._data[:CHUNK_LINE_BYTES], line is _NEXT)
                yield
            size = int(match[1], 16)
            del self._data[: match.end()]
            line = _NEXT
            if not size:
                break
            self._take_body(min(size, self._body_bytes + 1 - len(self._body)))
            while self._missing_bytes:
                yield
            if len(self._body) > self._body_bytes:
                # The application refuses the body by its length, so the remainder is not decoded.
                body = self._body
                self.drop()
                self._body = body
                break
        if self.dropped_bytes is None:
            yield from self._read_trailer()
        head.environment["CONTENT_LENGTH"] = str(len(self._body))

    def _read_trailer(self) -> Iterator[None]:
        """Validate and drop the headers after the last chunk."""
        while len(self._data) < len(_LINE_END):
            yield
        if self._data.startswith(_LINE_END):
            del self._data[: len(_LINE_END)]
            return
        detail = f"The trailer is longer than {TRAILER_BYTES} bytes or {MOST_HEADERS} headers."
        trailer = yield from self._take_lines(TRAILER_BYTES, MOST_HEADERS, detail)
        read_head(_REQUEST_LINE + trailer)


def _check_unfinished_line(line: bytearray, has_chunk_before: bool) -> None:  # noqa: FBT001 - a fact
    """Raise ApiError if the beginning of the line before a chunk is invalid."""
    is_invalid = False
    if has_chunk_before:
        ending, line = line[: len(_LINE_END)], line[len(_LINE_END) :]
        is_invalid = not _LINE_END.startswith(ending)
    if is_invalid or b"\n" in line or len(line) >= CHUNK_LINE_BYTES - len(_LINE_END):
        raise ApiError(
            HTTPStatus.BAD_REQUEST, "This is not HTTP: the body is not correctly chunked."
        )
