# SPDX-License-Identifier: Apache-2.0
"""Cursors of the change feed as texts: short, URL-safe, opaque (contract page 99)."""

import base64
import binascii
import struct

from treeclaim.model.changes import Cursor

LONGEST = 4_096
"""Characters that a text may have (contract page 99, section 4)."""

_FORM = 4
"""The first byte of a text; another form gets another number."""

_NUMBER = struct.Struct(">Q")


class UnreadableCursorError(ValueError):
    """The text is not a cursor of this program."""


def write_cursor(cursor: Cursor) -> str:
    """Write a cursor: a byte for the form, then all positions, then all tokens."""
    numbers = [_NUMBER.pack(number) for number in (*cursor.positions, *cursor.tokens)]
    content = bytes([_FORM]) + b"".join(numbers)
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def read(text: str) -> Cursor:
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
    if content[:1] != bytes([_FORM]) or len(content) % (2 * _NUMBER.size) != 1:
        raise UnreadableCursorError
    numbers = [number for (number,) in _NUMBER.iter_unpack(content[1:])]
    if max(numbers, default=0) >> 63:
        raise UnreadableCursorError
    half = len(numbers) // 2
    return Cursor(tuple(numbers[:half]), tuple(numbers[half:]))
