# SPDX-License-Identifier: Apache-2.0
"""Facts about a connection that only the kernel knows."""

import fcntl
import socket
import struct
import termios

_NUMBER = struct.Struct("i")


def unacknowledged(connected: socket.socket) -> int:
    """Return the bytes that were sent and have not arrived; 0 where the system does not tell.

    A socket can be written to again only when a third of the kernel's buffer is free, which of a
    client that reads slowly may be much later than it reads.
    """
    try:
        answer = fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, _NUMBER.pack(0))
    except (OSError, ValueError):
        return 0
    return int(_NUMBER.unpack(answer)[0])


def has_unread(connected: socket.socket) -> bool:
    """Return whether bytes have come that nobody has read."""
    try:
        answer = fcntl.ioctl(connected.fileno(), termios.FIONREAD, _NUMBER.pack(0))
    except (OSError, ValueError):
        return False
    return bool(_NUMBER.unpack(answer)[0])
