# SPDX-License-Identifier: Apache-2.0
"""A request's body while it comes, in chunks too (RFC 9112, section 7.1).

    a size ──▶ so many bytes ──▶ a size … 0 ──▶ TRAILER ──an empty line──▶ END

A line is bounded before it is looked at. What is unfinished of it stays with the caller, who never
has to keep more than that bound.
"""

import re
from enum import Enum, auto
from http import HTTPStatus

from treeclaim.server.bounds import CHUNK_LINE_BYTES, MOST_HEADERS, TRAILER_BYTES
from treeclaim.server.http.head import Body, parsed
from treeclaim.server.http.refusals import RefusedError

_SIZE = rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n\0]*)?\r\n"
"""Extensions are dropped."""

_FIRST, _NEXT = re.compile(_SIZE), re.compile(b"\r\n" + _SIZE)

_LINE_END, _END = b"\r\n", b"\r\n\r\n"

_REQUEST_LINE = b"GET / HTTP/1.1\r\n"


class _At(Enum):
    CHUNKS = auto()
    TRAILER = auto()
    END = auto()


class Chunks:
    """The chunks of one body, as far as they have come.

    Attributes:
        body: What they have brought, at most one byte more than allowed.
    """

    def __init__(self, most: int) -> None:
        """Expect the first one.

        Args:
            most: Bytes of the longest body that is read.
        """
        self.body = Body()
        self._most = most
        self._at = _At.CHUNKS
        self._line = _FIRST
        self._left = 0
        self._looked_at = 0

    @property
    def is_complete(self) -> bool:
        """Whether all has come."""
        return self._at is _At.END

    @property
    def is_too_long(self) -> bool:
        """Whether they bring more than allowed; then nothing more is decoded."""
        return self.body.size > self._most

    def feed(self, data: bytearray) -> None:
        """Decode bytes and remove them; what is left is unfinished, or belongs to the next request.

        Raises:
            RefusedError: if they are not chunks, or their trailer is too long.
        """
        if self._at is _At.CHUNKS:
            self._decode(data)
        if self._at is _At.TRAILER:
            self._read_trailer(data)

    def _decode(self, data: bytearray) -> None:
        place, left, line, kept = 0, self._left, self._line, bytearray()
        most = self._most + 1 - self.body.size
        while True:
            if left:
                piece = data[place : place + left]
                kept += piece
                place += len(piece)
                left -= len(piece)
                if left or len(kept) >= most:
                    break
            match = line.match(data, place, place + CHUNK_LINE_BYTES)
            if match is None:
                _check_unfinished(data[place : place + CHUNK_LINE_BYTES], line is _NEXT)
                break
            place, left, line = match.end(), int(match[1], 16), _NEXT
            if not left:
                self._at = _At.TRAILER
                break
        self._left, self._line = left, line
        self.body.write(memoryview(kept)[:most])
        del data[:place]

    def _read_trailer(self, data: bytearray) -> None:
        """Read the headers after the last chunk; they are not used, but have to be valid."""
        if data.startswith(_LINE_END):
            del data[: len(_LINE_END)]
            self._at = _At.END
            return
        begin = max(self._looked_at - len(_END) + 1, 0)
        end = data.find(_END, begin, TRAILER_BYTES)
        self._looked_at = len(data)
        if end < 0 and len(data) < TRAILER_BYTES:
            return
        if end < 0 or data.count(b"\n", 0, end) >= MOST_HEADERS:
            raise RefusedError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The trailer is longer than {TRAILER_BYTES} bytes or {MOST_HEADERS} headers.",
            )
        parsed(_REQUEST_LINE + data[: end + len(_END)])
        del data[: end + len(_END)]
        self._at = _At.END


def _check_unfinished(line: bytearray, has_chunk_before: bool) -> None:  # noqa: FBT001 - a fact
    """Raise an error if this cannot be the beginning of the line before a chunk."""
    if has_chunk_before:
        ending, line = line[: len(_LINE_END)], line[len(_LINE_END) :]
        is_wrong = not _LINE_END.startswith(ending)
    else:
        is_wrong = False
    if is_wrong or b"\n" in line or len(line) >= CHUNK_LINE_BYTES - len(_LINE_END):
        raise RefusedError(
            HTTPStatus.BAD_REQUEST, "This is not HTTP: the body is not correctly chunked."
        )
