# SPDX-License-Identifier: Apache-2.0
"""A request's body while it comes."""

_PIECE = 256 * 1024
"""Bytes that are moved at most where one more comes."""


class Body:
    """Bytes that come one after the other.

    They are kept in pieces: a buffer that grows as a whole is moved as a whole now and then, which for
    the longest body takes longer than a turn of the event loop may. A thread joins them.

    Attributes:
        size: How many there are.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        """Begin with none."""
        self.size = 0
        self._pieces = [bytearray()]

    def write(self, data: bytearray | memoryview) -> int:
        """Add some, and return how many."""
        if len(self._pieces[-1]) >= _PIECE:
            self._pieces.append(bytearray())
        self._pieces[-1] += data
        self.size += len(data)
        return len(data)

    def joined(self) -> bytes:
        """Return all, once; nothing is kept here."""
        pieces, self._pieces = self._pieces, [bytearray()]
        return b"".join(pieces)
