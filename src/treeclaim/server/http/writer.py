# SPDX-License-Identifier: Apache-2.0
"""Writes answers to a client, counts unread bytes, and measures how fast the client reads."""

import asyncio
import fcntl
import socket
import struct
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress

from treeclaim.server.bounds import SLOWEST_BYTES

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The interim answer that requests a body, and otherwise has no effect."""

_MOST_PIECES = 1_024
"""Most pieces that the kernel accepts in one call (IOV_MAX)."""

_NUMBER = struct.Struct("i")


class AnswerWriter:
    """Bytes on their way to a client. The event loop calls all methods except `send_now`.

    Attributes:
        unread: Written bytes, until the kernel has accepted the last one.
        is_lost: Whether the connection is closed.
    """

    def __init__(self, accepted: socket.socket, transport: asyncio.Transport) -> None:
        """Write to a socket, which has a transport of the event loop."""
        self.unread = 0
        self.is_lost = False
        self._socket = accepted
        self._transport = transport
        self._is_full = False
        self._sent = self._read_before = 0
        self._has_begun = True
        self._lock = threading.Lock()
        # With these limits the transport reports every byte that the kernel does not accept at once.
        transport.set_write_buffer_limits(high=1, low=0)

    def begin(self) -> None:
        """Note that another answer begins."""
        self._has_begun = False

    def probe(self) -> None:
        """Send an interim answer unless the answer has begun; a client that has left then resets the connection.

        Interim answers may precede any answer (RFC 9110, 15.2), except in HTTP/1.0.
        """
        with self._lock:
            if not (self._has_begun or self.is_lost):
                with suppress(OSError):
                    self._socket.send(CONTINUE)

    def send_now(self, pieces: Sequence[bytes | memoryview]) -> bytes:
        """Send, from any thread, the bytes that the kernel accepts at once; return the remaining bytes.

        The caller writes no other bytes meanwhile, and does not use TLS, whose state belongs to the event loop.
        """
        sent = 0
        with self._lock:
            self._has_begun = True
            if not self.is_lost:
                # The event loop handles a full or broken socket.
                with suppress(OSError):
                    sent = self._socket.sendmsg(pieces[:_MOST_PIECES])
        unsent = []
        for piece in pieces:
            if sent < len(piece):
                unsent.append(memoryview(piece)[sent:])
            sent = max(sent - len(piece), 0)
        return b"".join(unsent)

    def write(self, data: bytes) -> None:
        """Send bytes after all unread ones."""
        if not data or self._transport.is_closing():
            return
        self._has_begun = True
        self._sent += len(data)
        # The transport does not copy a view before it sends.
        self._transport.write(memoryview(data))
        if self._is_full:
            self.unread += len(data)

    def pause(self) -> None:
        """Note that the kernel's buffer is full."""
        self._is_full = True

    def resume(self) -> None:
        """Note that the kernel has accepted all bytes."""
        self._is_full = False
        self.unread = 0

    def lose(self) -> None:
        """Drop unsent bytes: the connection is closed, and its file descriptor may be reused."""
        with self._lock:
            self.is_lost = True
        self.unread = 0

    def start_measuring(self) -> None:
        """Record how many bytes the client has read."""
        self._read_before = self._count_read()

    def has_read_enough(self) -> bool:
        """Return whether the client has read `SLOWEST_BYTES` since the measurement started."""
        return self._count_read() - self._read_before >= SLOWEST_BYTES

    def _count_read(self) -> int:
        """Return the number of bytes that have arrived at the client; MiBs may remain in the kernel."""
        try:
            answer = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, _NUMBER.pack(0))
        except (OSError, ValueError):
            answer = _NUMBER.pack(0)
        in_kernel: int = _NUMBER.unpack(answer)[0]
        return self._sent - self._transport.get_write_buffer_size() - in_kernel

    def has_failed(self) -> bool:
        """Return whether the client has reset the connection, or the socket is closed."""
        try:
            return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        except OSError:
            return True
