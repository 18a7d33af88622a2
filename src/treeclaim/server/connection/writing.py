# SPDX-License-Identifier: Apache-2.0
"""Writes answers to a client, counts what it has not read, and measures how fast it reads.

The news of a watch is an answer that continues.
"""

import asyncio
import fcntl
import socket
import struct
import termios
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from treeclaim.server.bounds import SLOWEST_BYTES, WRITTEN_BYTES
from treeclaim.server.http.exchange import Exchange
from treeclaim.server.sharing.account import HeldBytes
from treeclaim.server.sharing.watchers import Watch, Watcher, WatcherPlace, Watchers

_MOST_PIECES = 1_024
"""How many pieces the kernel takes at once (IOV_MAX)."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The interim answer that asks for a body, and otherwise says nothing."""

_NUMBER = struct.Struct("i")


class AnswerWriter:
    """Bytes on their way to a client.

    Attributes:
        is_lost: Whether the connection is closed.
        is_full: Whether the kernel takes no more for now; the transport tells.
    """

    def __init__(
        self,
        accepted: socket.socket,
        transport: asyncio.Transport,
        hold: HeldBytes,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Write to a socket.

        Args:
            accepted: The socket.
            transport: That of the event loop.
            hold: Where bytes are counted.
            loop: The event loop.
        """
        self.is_lost = False
        self.is_full = False
        self.on_taken: Callable[[], None] = _ignore
        """Called when the kernel has taken all, unless it has at once."""
        self._socket = accepted
        self._lock = threading.Lock()
        self._transport = transport
        self._hold = hold
        self._loop = loop
        self._waiting: deque[memoryview] = deque()
        self._untaken = 0
        self._sent = 0
        self._taken_before = 0
        self._is_begun = True
        # The transport reports every byte that the kernel does not take at once.
        transport.set_write_buffer_limits(high=1, low=0)

    @property
    def is_blocked(self) -> bool:
        """Whether the kernel has not taken all bytes."""
        return self._untaken > 0

    def begin(self) -> None:
        """Begin another answer; the one before was sent."""
        with self._lock:
            self._is_begun = False

    def probe(self) -> None:
        """Send something without meaning, unless the answer has begun, which serves as well.

        A client that has closed the connection resets it then; one that only sends no more reads on.
        Any answer may come behind interim ones (RFC 9110, 15.2), and 100 is what all clients skip.
        """
        with self._lock:
            if not (self._is_begun or self.is_lost):
                # If it is reset already, the kernel tells.
                with suppress(OSError):
                    self._socket.send(CONTINUE)

    def announce(self, size: int) -> None:
        """Count bytes that are on their way to the event loop; any thread may."""
        self._hold.add(size)

    def write(self, data: bytes) -> None:
        """Send bytes that were announced; only the loop calls this."""
        if self.is_lost or self._transport.is_closing():
            self._hold.add(-len(data))
            return
        is_idle = not self.is_blocked
        self._is_begun = True
        self._untaken += len(data)
        view = memoryview(data)
        for begin in range(0, len(data), WRITTEN_BYTES):
            self._waiting.append(view[begin : begin + WRITTEN_BYTES])
        if is_idle and data:
            self._write_some()

    def write_on(self) -> None:
        """Write more: the kernel has taken what it did not take before."""
        if self.is_lost or self.is_full or not self.is_blocked:
            return
        self._write_some()
        if not self.is_blocked:
            self.on_taken()

    def _write_some(self) -> None:
        """Write a piece, which takes so much of a turn, and leave the next to another turn."""
        if self._waiting:
            piece = self._waiting.popleft()
            self._sent += len(piece)
            self._transport.write(piece)
        if self.is_full:
            return
        if self._waiting:
            self._loop.call_soon(self.write_on)
        else:
            self._take_off()

    def _take_off(self) -> None:
        self._hold.add(-self._untaken)
        self._untaken = 0

    def send_now(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Send from the calling thread what the kernel takes at once; return how many bytes.

        The kernel gathers the pieces, so that large ones need not be copied to be joined.
        Nobody else may write meanwhile. Not for TLS, whose state belongs to the loop.
        """
        with self._lock:
            self._is_begun = True
            if not self.is_lost:
                # If the socket is full or broken, the loop finds out.
                with suppress(OSError):
                    return self._socket.sendmsg(pieces[:_MOST_PIECES])
        return 0

    def lose(self) -> None:
        """Note that the connection is closed: the socket's number may be given to another one."""
        with self._lock:
            self.is_lost = True
        self._waiting.clear()
        self._take_off()

    def start_measuring(self) -> None:
        """Note how much the client has taken by now."""
        self._taken_before = self._taken()

    def has_taken_enough(self) -> bool:
        """Return whether the client has taken `SLOWEST_BYTES` since the measurement started."""
        return self._taken() - self._taken_before >= SLOWEST_BYTES

    def _taken(self) -> int:
        """Return the bytes that have arrived; the kernel may hold MiBs that have not."""
        return self._sent - self._transport.get_write_buffer_size() - unacknowledged(self._socket)


def _ignore() -> None:
    """Do nothing."""


def rest_of(pieces: Sequence[bytes | memoryview], sent: int) -> bytes:
    """Return what is left of pieces of which some bytes were sent."""
    left = []
    for piece in pieces:
        if sent < len(piece):
            left.append(memoryview(piece)[sent:])
        sent = max(sent - len(piece), 0)
    return b"".join(left)


def unacknowledged(connected: socket.socket) -> int:
    """Return the bytes that were sent and have not arrived; 0 where the system does not tell.

    A socket can be written to again only when a third of the kernel's buffer is free, which with a
    slow client may be much later than its reads.
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


class Watching:
    """A watch in its connection; all of it runs in the event loop."""

    def __init__(
        self,
        watchers: Watchers,
        watcher: Watcher,
        watch: Watch,
        place: WatcherPlace,
        exchange: Exchange,
    ) -> None:
        """Begin in a place that has been reserved."""
        self._watchers = watchers
        self._watcher = watcher
        self._watch = watch
        self._place = place
        self._exchange = exchange
        watch.wake = partial(watchers.wake, watcher)
        watchers.add(watcher)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._watch.is_over

    @property
    def due(self) -> float:
        """The time of the next poll at the latest."""
        return self._watch.due

    def next_bytes(self, *, ends: bool) -> bytes:
        """Return what is to be sent now.

        Args:
            ends: True to end it, whatever may come.
        """
        piece = self._watch.finish() if ends else self._watch.take()
        self._place.count()
        data = self._exchange.framed(piece) if piece else b""
        return data + self._exchange.last_bytes if self.is_over else data

    def close(self) -> None:
        """Release the resources held for it."""
        self._watch.close()
        self._watchers.remove(self._watcher)
        self._place.give_back()
