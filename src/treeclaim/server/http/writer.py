# SPDX-License-Identifier: Apache-2.0
"""Writes answers to a client, counts unread bytes, and measures the client's reading speed."""

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
"""The interim answer that requests a body; it has no effect after the body."""

_MOST_PIECES = 1_024
"""Most pieces in one system call (IOV_MAX)."""

_C_INT = struct.Struct("i")


class AnswerWriter:
    """The bytes to a client. The event loop calls all methods except `send_now`.

    Attributes:
        unread_bytes: Written bytes, until the kernel has accepted the last one.
        is_lost: Whether the connection is closed.
    """

    def __init__(self, accepted_socket: socket.socket, transport: asyncio.Transport) -> None:
        self.unread_bytes = 0
        self.is_lost = False
        self._socket = accepted_socket
        self._transport = transport
        self._is_kernel_full = False
        self._written_bytes = self._read_bytes_at_start = 0
        self._can_probe = False
        self._lock = threading.Lock()
        # With these limits the transport reports every byte that the kernel does not accept at once.
        transport.set_write_buffer_limits(high=1, low=0)

    def begin(self, *, can_probe: bool) -> None:
        """Start an answer; an interim answer may precede it (RFC 9110, 15.2), except in HTTP/1.0."""
        self._can_probe = can_probe

    def probe(self) -> None:
        """Send an interim answer if possible; a client that has left then resets the connection."""
        with self._lock:
            if self._can_probe and not self.is_lost:
                with suppress(OSError):
                    self._socket.send(CONTINUE)

    def send_now(self, pieces: Sequence[bytes | memoryview]) -> bytes:
        """Send the bytes that the kernel accepts immediately, from any thread; return the remaining bytes.

        The caller must write no other bytes meanwhile, nor use TLS, whose state belongs to the event loop.
        """
        sent_bytes = 0
        with self._lock:
            self._can_probe = False
            if not self.is_lost:
                # The event loop handles a full or broken socket.
                with suppress(OSError):
                    sent_bytes = self._socket.sendmsg(pieces[:_MOST_PIECES])
        unsent_pieces = []
        for piece in pieces:
            if sent_bytes < len(piece):
                unsent_pieces.append(memoryview(piece)[sent_bytes:])
            sent_bytes = max(sent_bytes - len(piece), 0)
        return b"".join(unsent_pieces)

    def write(self, data: bytes) -> None:
        """Send bytes after all unread ones."""
        if not data or self._transport.is_closing():
            return
        self._can_probe = False
        self._written_bytes += len(data)
        # The transport sends a view without copying it first.
        self._transport.write(memoryview(data))
        if self._is_kernel_full:
            self.unread_bytes += len(data)

    def pause(self) -> None:
        """Note that the kernel's buffer is full."""
        self._is_kernel_full = True

    def resume(self) -> None:
        """Note that the kernel has accepted all bytes."""
        self._is_kernel_full = False
        self.unread_bytes = 0

    def lose(self) -> None:
        """Drop unsent bytes: the connection is closed, and its file descriptor may be reused."""
        with self._lock:
            self.is_lost = True
        self.unread_bytes = 0

    def start_measuring(self) -> None:
        """Start to measure how much the client reads."""
        self._read_bytes_at_start = self._count_read_bytes()

    def has_read_enough(self) -> bool:
        """Return whether the client has read `SLOWEST_BYTES` since the start of the measurement."""
        return self._count_read_bytes() - self._read_bytes_at_start >= SLOWEST_BYTES

    def _count_read_bytes(self) -> int:
        """Return the written bytes that have left the kernel, whose buffer may hold MiBs."""
        try:
            queue_size = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, _C_INT.pack(0))
        except (OSError, ValueError):
            queue_size = _C_INT.pack(0)
        kernel_bytes: int = _C_INT.unpack(queue_size)[0]
        return self._written_bytes - self._transport.get_write_buffer_size() - kernel_bytes

    def has_failed(self) -> bool:
        """Return whether the client has reset the connection, or the socket is closed."""
        try:
            return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
        except OSError:
            return True
