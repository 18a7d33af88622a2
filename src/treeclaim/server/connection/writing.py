# SPDX-License-Identifier: Apache-2.0
"""Writes answers to a client, and measures how much of them it has taken."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from treeclaim.server.bounds import SLOWEST_BYTES
from treeclaim.server.connection.kernel import unacknowledged

_MOST_PIECES = 1_024
"""That the kernel takes at once (IOV_MAX)."""


class AnswerWriter:
    """Bytes on their way to a client.

    Attributes:
        is_blocked: Whether the kernel has not taken all bytes; the transport tells.
        is_lost: Whether the connection is closed.
    """

    def __init__(self, accepted: socket.socket, transport: asyncio.Transport) -> None:
        self.is_blocked = False
        self.is_lost = False
        self._socket = accepted
        self._lock = threading.Lock()
        self._transport = transport
        self._sent = 0
        self._taken_before = 0
        # The transport reports every byte that the kernel does not take at once.
        transport.set_write_buffer_limits(high=1, low=0)

    @property
    def unsent(self) -> int:
        """Bytes in this process that the kernel has not taken."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Send bytes through the event loop; only the loop calls this."""
        self._sent += len(data)
        if data:
            self._transport.write(data)

    def send_now(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Send from the calling thread what the kernel takes at once; return how many bytes.

        The kernel gathers the pieces, so that large ones need not be copied to be joined.
        Nobody else may write meanwhile. Not for TLS, whose state belongs to the loop.
        """
        with self._lock:
            if not self.is_lost:
                # If the socket is full or broken, the loop finds out.
                with suppress(OSError):
                    return self._socket.sendmsg(pieces[:_MOST_PIECES])
        return 0

    def lose(self) -> None:
        """Note that the connection is closed: the socket's number may be given to another one."""
        with self._lock:
            self.is_lost = True

    def start_measuring(self) -> None:
        """Note how much the client has taken by now."""
        self._taken_before = self._taken()

    def has_taken_enough(self) -> bool:
        """Return whether the client has taken `SLOWEST_BYTES` since the measurement started."""
        return self._taken() - self._taken_before >= SLOWEST_BYTES

    def _taken(self) -> int:
        """Return the bytes that have arrived; the kernel may hold MiBs that have not."""
        return self._sent - self.unsent - unacknowledged(self._socket)
