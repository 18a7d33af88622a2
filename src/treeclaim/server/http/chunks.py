# SPDX-License-Identifier: Apache-2.0
"""Decodes a body that comes in chunks (RFC 9112, section 7.1).

    SIZE ──a size──▶ DATA ──so many bytes──▶ SIZE …
      └────0────▶ TRAILER ──an empty line──▶ END

A line is bounded before it is looked at. What is unfinished of it stays with the caller, who never
has to keep more than that bound.
"""

import io
import re
from enum import Enum, auto
from http import HTTPStatus

from treeclaim.server.bounds import CHUNK_LINE_BYTES, MOST_HEADERS, TRAILER_BYTES
from treeclaim.server.http.parser import parsed
from treeclaim.server.http.refusals import RefusedError

_SIZE = rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n\0]*)?\r\n"
"""Extensions are dropped."""

_FIRST, _NEXT = re.compile(_SIZE), re.compile(b"\r\n" + _SIZE)
_LINE_END, _END = b"\r\n", b"\r\n\r\n"
_REQUEST_LINE = b"GET / HTTP/1.1\r\n"


class _At(Enum):
    SIZE = auto()
    DATA = auto()
    TRAILER = auto()
    END = auto()


class Chunks:
    """The chunks of one body, as far as they have come.

    Attributes:
        body: What they have brought, at most one byte more than allowed.
        size: Its length.
    """

    def __init__(self, most: int) -> None:
        """Expect the first one.

        Args:
            most: Bytes of the longest body that is read.
        """
        self.body = io.BytesIO()
        self.size = 0
        self._most = most
        self._at = _At.SIZE
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
        return self.size > self._most

    def feed(self, data: bytearray) -> None:
        """Decode bytes and remove them; what is left is unfinished, or belongs to the next request.

        Raises:
            RefusedError: if they are no chunks, or their trailer is too long.
        """
        place = 0
        with memoryview(data) as view:
            while self._at is _At.SIZE or (self._at is _At.DATA and place < len(data)):
                if self._at is _At.DATA:
                    place += self._take(view[place : place + self._left])
                    if self.is_too_long:
                        break
                elif (end := self._read_size(data, place)) > place:
                    place = end
                else:
                    break
        del data[:place]
        if self._at is _At.TRAILER:
            self._read_trailer(data)

    def _take(self, piece: memoryview) -> int:
        self.size += self.body.write(piece[: self._most + 1 - self.size])
        self._left -= len(piece)
        if not self._left:
            self._at = _At.SIZE
        return len(piece)

    def _read_size(self, data: bytearray, place: int) -> int:
        """Read the line before a chunk; return where it ends, the same place if it is unfinished."""
        found = self._line.match(data, place, place + CHUNK_LINE_BYTES)
        if found is None:
            line = bytes(data[place : place + CHUNK_LINE_BYTES])
            if self._line is _NEXT:
                if not _LINE_END.startswith(line[: len(_LINE_END)]):
                    raise _no_chunks()
                line = line[len(_LINE_END) :]
            if b"\n" in line or len(data) - place >= CHUNK_LINE_BYTES:
                raise _no_chunks()
            return place
        self._left = int(found[1], 16)
        self._line = _NEXT
        self._at = _At.DATA if self._left else _At.TRAILER
        return found.end()

    def _read_trailer(self, data: bytearray) -> None:
        """Read the headers behind the last chunk; they are of no use, but have to be such."""
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


def _no_chunks() -> RefusedError:
    return RefusedError(HTTPStatus.BAD_REQUEST, "This is no HTTP: the body has no such chunks.")
