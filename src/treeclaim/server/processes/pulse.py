# SPDX-License-Identifier: Apache-2.0
"""Whether a process still turns its event loop: it echoes what it is sent.

A process that was stopped, or whose loop hangs, echoes nothing. It answers no request either, though the
kernel accepts connections for it.
"""

import asyncio
import socket
from contextlib import suppress

from treeclaim.server.turns import ShortTurns

READY = b"ready"
"""What a process says first, when it answers requests."""

BROKEN = b"broken"
"""What it says instead where it works worse than the one that it is to replace."""

_BEAT = b"?"
_MOST_BYTES = 64


class Pulse:
    """The first process' end of the connection to another one."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a socket that keeps messages apart, and does not block."""
        self.connection = connection
        self._beat: asyncio.Future[bool] | None = None

    async def first_word(self, seconds: float) -> bytes:
        """Return what the process says first; nothing if it has ended.

        Raises:
            TimeoutError: if it says nothing for so long.
        """
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            receiving = loop.sock_recv(self.connection, _MOST_BYTES)
            return await asyncio.wait_for(receiving, seconds)
        return b""

    async def beats(self, seconds: float) -> bool:
        """Tell whether the process echoes something within some time."""
        if self._beat is None and not self._send():
            return False
        beat = self._beat
        if beat is None:
            return False
        # Whoever asks while one waits already waits for the same echo.
        done, _ = await asyncio.wait({beat}, timeout=seconds)
        return bool(done) and beat.result()

    def _send(self) -> bool:
        if self.connection.fileno() < 0:
            return False
        try:
            self.connection.send(_BEAT)
        except OSError:
            return False
        loop = asyncio.get_running_loop()
        self._beat = loop.create_future()
        loop.add_reader(self.connection.fileno(), self._hear)
        return True

    def _hear(self) -> None:
        data = b""
        with suppress(ConnectionError):
            data = self.connection.recv(_MOST_BYTES)
        self._end_beat(is_alive=bool(data))

    def _end_beat(self, *, is_alive: bool) -> None:
        beat, self._beat = self._beat, None
        if beat is not None:
            asyncio.get_running_loop().remove_reader(self.connection.fileno())
            beat.set_result(is_alive)

    def close(self) -> None:
        """Close the connection, when the process has ended."""
        self._end_beat(is_alive=False)
        self.connection.close()


def echo(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    """Echo what comes, for as long as a loop runs, and before what waits in a busy one."""
    connection.setblocking(False)

    def hear() -> None:
        data = b""
        with suppress(ConnectionError):
            data = connection.recv(_MOST_BYTES)
        if not data:
            loop.remove_reader(connection.fileno())
            return
        with suppress(OSError):
            connection.send(data)

    loop.add_reader(connection.fileno(), hear)
    if isinstance(loop, ShortTurns):
        loop.hurry(connection.fileno())
