# SPDX-License-Identifier: Apache-2.0
"""Cursors of the change feed as clients have them: short, URL-safe, opaque (contract page 99).

What is written of a cursor are its epoch and how far the streams had come that were open. Streams
that were finished need not be named: whoever reads the text finds the epoch, and every stream that
was closed in it or before had been seen to its end. Of an identity, 40 bits are written: two of a
thousand streams share them once in two million, and whoever meets such a pair has to refuse the
text, never to guess.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from treeclaim.model.changes import Cursor

LONGEST = 4_096
"""Characters that a text may have (contract page 99, section 4): some 380 streams that are open."""

_FORM = 1
"""First byte of the bytes behind a text; another form gets another number."""

_EPOCH_BYTES = 8
_IDENTITY_BYTES = 5
_IDENTITY_MASK = (1 << 8 * _IDENTITY_BYTES) - 1
_SEVEN_BITS, _MORE = 0x7F, 0x80
_MOST_SHIFT = 63
"""Positions are of 64 bits."""


class UnreadableCursorError(ValueError):
    """A text that is no cursor of this program."""


@dataclass(frozen=True, slots=True)
class WrittenCursor:
    """What a text says.

    Attributes:
        epoch: Identity of the newest epoch that had been made; None if there was none.
        positions: How far the open streams had come, by `short_identity` of the stream.
    """

    epoch: int | None
    positions: Mapping[int, int]


def short_identity(stream: int) -> int:
    """Return what a text says of a stream's identity."""
    return stream & _IDENTITY_MASK


def written(cursor: Cursor) -> str:
    """Write a cursor."""
    content = bytearray([_FORM])
    content += (cursor.epoch or 0).to_bytes(_EPOCH_BYTES, "big")
    for stream in sorted(cursor.positions.keys() - cursor.finished):
        content += short_identity(stream).to_bytes(_IDENTITY_BYTES, "big")
        content += _number(cursor.positions[stream])
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def read(text: str) -> WrittenCursor:
    """Read what `written` wrote.

    Raises:
        UnreadableCursorError: for any other text.
    """
    if len(text) > LONGEST or not text.isascii():
        raise UnreadableCursorError
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise UnreadableCursorError from error
    if len(content) <= _EPOCH_BYTES or content[0] != _FORM:
        raise UnreadableCursorError
    epoch = int.from_bytes(content[1 : 1 + _EPOCH_BYTES], "big")
    return WrittenCursor(epoch or None, dict(_streams(content[1 + _EPOCH_BYTES :])))


def _streams(content: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(content):
        identity = int.from_bytes(content[at : at + _IDENTITY_BYTES], "big")
        position, at = _read_number(content, at + _IDENTITY_BYTES)
        yield identity, position


def _number(value: int) -> bytes:
    """Write a number with seven bits a byte, the lowest first."""
    found = bytearray()
    while value > _SEVEN_BITS:
        found.append(value & _SEVEN_BITS | _MORE)
        value >>= 7
    found.append(value)
    return bytes(found)


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
