# SPDX-License-Identifier: Apache-2.0
"""The body of a request while it arrives, in chunks too (RFC 9112, section 7.1).

a size ──▶ so many bytes ──▶ a size … 0 ──▶ TRAILER ──an empty line──▶ END
"""

import re
from enum import Enum, auto
from http import HTTPStatus

from treeclaim.server.bounds import CHUNK_LINE_BYTES, MOST_HEADERS, TRAILER_BYTES
from treeclaim.server.http.errors import RefusedError
from treeclaim.server.http.head import parse_bytes

_SIZE = rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n\0]*)?\r\n"
"""Extensions are ignored."""

_FIRST, _NEXT = re.compile(_SIZE), re.compile(b"\r\n" + _SIZE)
_LINE_END, _END = b"\r\n", b"\r\n\r\n"
_REQUEST_LINE = b"GET / HTTP/1.1\r\n"


class _At(Enum):
    CHUNKS = auto()
    TRAILER = auto()
    END = auto()


class ChunkedBody:
    """Decodes chunks.

    Attributes:
        body: Decoded bytes, at most one more than allowed.
    """

    def __init__(self, most: int) -> None:
        """Expect the first chunk of a body of at most so many bytes."""
        self.body = bytearray()
        self._most = most
        self._at = _At.CHUNKS
        self._line = _FIRST
        self._left = 0
        self._scanned = 0

    @property
    def is_complete(self) -> bool:
        """True if the trailer has ended."""
        return self._at is _At.END

    @property
    def is_too_long(self) -> bool:
        """True if the body is longer than allowed; the rest is not decoded."""
        return len(self.body) > self._most

    def feed(self, data: bytearray) -> None:
        """Decode bytes and remove them from the buffer; what remains is unfinished or the next request.

        Raises:
            RefusedError: if the chunks are malformed, or the trailer is too long.
        """
        if self._at is _At.CHUNKS:
            self._decode(data)
        if self._at is _At.TRAILER:
            self._read_trailer(data)

    def _decode(self, data: bytearray) -> None:
        place, remaining_bytes, line, decoded = 0, self._left, self._line, bytearray()
        most = self._most + 1 - len(self.body)
        while True:
            if remaining_bytes:
                piece = data[place : place + remaining_bytes]
                decoded += piece
                place += len(piece)
                remaining_bytes -= len(piece)
                if remaining_bytes or len(decoded) >= most:
                    break
            match = line.match(data, place, place + CHUNK_LINE_BYTES)
            if match is None:
                _check_unfinished_line(data[place : place + CHUNK_LINE_BYTES], line is _NEXT)
                break
            place, remaining_bytes, line = match.end(), int(match[1], 16), _NEXT
            if not remaining_bytes:
                self._at = _At.TRAILER
                break
        self._left, self._line = remaining_bytes, line
        self.body += memoryview(decoded)[:most]
        del data[:place]

    def _read_trailer(self, data: bytearray) -> None:
        """Validate and drop the headers after the last chunk."""
        if data.startswith(_LINE_END):
            del data[: len(_LINE_END)]
            self._at = _At.END
            return
        begin = max(self._scanned - len(_END) + 1, 0)
        end = data.find(_END, begin, TRAILER_BYTES)
        self._scanned = len(data)
        if end < 0 and len(data) < TRAILER_BYTES:
            return
        if end < 0 or data.count(b"\n", 0, end) >= MOST_HEADERS:
            raise RefusedError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The trailer is longer than {TRAILER_BYTES} bytes or {MOST_HEADERS} headers.",
            )
        parse_bytes(_REQUEST_LINE + data[: end + len(_END)])
        del data[: end + len(_END)]
        self._at = _At.END


def _check_unfinished_line(line: bytearray, has_chunk_before: bool) -> None:  # noqa: FBT001 - a fact
    """Raise an error unless the line before a chunk may begin so."""
    is_wrong = False
    if has_chunk_before:
        ending, line = line[: len(_LINE_END)], line[len(_LINE_END) :]
        is_wrong = not _LINE_END.startswith(ending)
    if is_wrong or b"\n" in line or len(line) >= CHUNK_LINE_BYTES - len(_LINE_END):
        raise RefusedError(
            HTTPStatus.BAD_REQUEST, "This is not HTTP: the body is not correctly chunked."
        )
