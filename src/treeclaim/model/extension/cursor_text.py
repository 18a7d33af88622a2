# SPDX-License-Identifier: Apache-2.0
"""Cursors of the change feed as texts: short, URL-safe, opaque (contract page 99).

A text holds the cursor's epoch and the position in each open stream. Finished streams are left out:
every stream that was closed in that epoch or earlier had been read to its end. An identity is written
with 40 bits: two of a thousand streams share them once in two million, and a reader that meets such a
pair must refuse the text.

A text has room for 3,063 bytes of streams. Pruning leaves at most 300 open
(`treeclaim.store.feed.pruning`), which take nine bytes each as long as positions are below 2**28:
2,700. More are open only until the next pruning, which comes within a minute or two; then 32 or 24
bits of an identity are written, so that two new streams for each of 250 workers have
room as well. With 24 bits, one cursor in two hundred meets a pair within its day, and
expires early. Should more streams be open, the text holds only that fact, and
expires at once: the client then lists again.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from treeclaim.model.changes import Cursor

LONGEST = 4_096
"""Characters that a text may have (contract page 99, section 4)."""

_IDENTITY_BYTES_OF = {1: 5, 2: 4, 3: 3}
"""Bytes of an identity by the form of a text, the first of its bytes; another form gets another
number. The first one that is short enough is taken."""

_EXPIRED = bytes([1]) + bytes(8)
"""Stands for a cursor that is too long: an epoch that never existed, and no streams."""

_EPOCH_BYTES = 8
_SEVEN_BITS, _MORE = 0x7F, 0x80
_MOST_SHIFT = 63
"""Positions are of 64 bits."""


class UnreadableCursorError(ValueError):
    """The text is not a cursor of this program."""


@dataclass(frozen=True, slots=True)
class WrittenCursor:
    """The contents of a text.

    Attributes:
        epoch: Identity of the newest epoch that had been made; None if there was none.
        positions: How far the open streams had come, by `short` of the stream's identity.
        identity_bytes: How many bytes of an identity are written.
    """

    epoch: int | None
    positions: Mapping[int, int]
    identity_bytes: int

    def short(self, stream: int) -> int:
        """Return the part of a stream's identity that the text holds."""
        return _short(stream, self.identity_bytes)


def write_cursor(cursor: Cursor) -> str:
    """Write a cursor; one of too many streams expires at once."""
    for form in _IDENTITY_BYTES_OF:
        text = _encode(_content(cursor, form))
        if len(text) <= LONGEST:
            return text
    return _encode(_EXPIRED)


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _content(cursor: Cursor, form: int) -> bytes:
    size = _IDENTITY_BYTES_OF[form]
    content = bytearray([form])
    content += (cursor.epoch or 0).to_bytes(_EPOCH_BYTES, "big")
    for stream in sorted(cursor.positions.keys() - cursor.finished):
        content += _short(stream, size).to_bytes(size, "big")
        content += _number(cursor.positions[stream])
    return bytes(content)


def _short(stream: int, size: int) -> int:
    return stream & ((1 << 8 * size) - 1)


def read(text: str) -> WrittenCursor:
    """Read what `write_cursor` wrote.

    Raises:
        UnreadableCursorError: for any other text.
    """
    if len(text) > LONGEST or not text.isascii():
        raise UnreadableCursorError
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise UnreadableCursorError from error
    if len(content) <= _EPOCH_BYTES or content[0] not in _IDENTITY_BYTES_OF:
        raise UnreadableCursorError
    size = _IDENTITY_BYTES_OF[content[0]]
    epoch = int.from_bytes(content[1 : 1 + _EPOCH_BYTES], "big")
    return WrittenCursor(epoch or None, dict(_streams(content[1 + _EPOCH_BYTES :], size)), size)


def _streams(content: bytes, size: int) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(content):
        identity = int.from_bytes(content[at : at + size], "big")
        position, at = _read_number(content, at + size)
        yield identity, position


def _number(value: int) -> bytes:
    """Write a number with seven bits a byte, the lowest first."""
    encoded_number = bytearray()
    while value > _SEVEN_BITS:
        encoded_number.append(value & _SEVEN_BITS | _MORE)
        value >>= 7
    encoded_number.append(value)
    return bytes(encoded_number)


def _read_number(content: bytes, at: int) -> tuple[int, int]:
    """Return a number and where the next one begins."""
    value = shift = 0
    while at < len(content) and shift <= _MOST_SHIFT:
        byte = content[at]
        at += 1
        value |= (byte & _SEVEN_BITS) << shift
        if not byte & _MORE:
            return value, at
        shift += 7
    raise UnreadableCursorError
