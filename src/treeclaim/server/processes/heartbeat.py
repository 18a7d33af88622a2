# SPDX-License-Identifier: Apache-2.0
"""Whether a process still turns its event loop, and reads: it echoes what it is sent, and then tries to read.

A process that was stopped, or whose loop hangs, echoes nothing. It answers no request either, though the
kernel accepts connections for it. The admin listener, which tells that to probes, asks the first process,
which asks all workers.
"""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict

from treeclaim.admin import Census
from treeclaim.model.errors import TreeclaimError
from treeclaim.server.bounds import HEARTBEAT_SECONDS
from treeclaim.server.http.loop import ShortTurnLoop

_LOG = logging.getLogger(__name__)

READY = b"ready"
"""What a process says first, when it answers requests."""

BROKEN = b"broken"
"""What it says instead where it works worse than the one that it is to replace."""

_BEAT = b"?"
_CAN_READ = b"+"
_CANNOT_READ = b"-"
_MOST_BYTES = 64

_LONGEST_CENSUS = 64 * 1024
"""Bytes of an answer about some thousand workers."""

_MARGIN_SECONDS = 1.0
"""What the first process may take besides."""


class Heartbeat:
    """The first process' end of the connection to another one."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a socket that keeps messages apart, and does not block."""
        self.connection = connection
        self._beat: asyncio.Future[bool] | None = None
        self._read: asyncio.Future[bool] | None = None

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

    async def beats(self, seconds: float) -> tuple[bool, bool]:
        """Return whether the process echoes something within some time, and whether it reads the inventory."""
        if self._beat is None and not self._send():
            return False, False
        beat, read = self._beat, self._read
        if beat is None or read is None:
            return False, False
        # A caller that asks while another waits waits for the same answers.
        done, _ = await asyncio.wait({beat, read}, timeout=seconds)
        return beat in done and beat.result(), read in done and read.result()

    def _send(self) -> bool:
        if self.connection.fileno() < 0:
            return False
        try:
            self.connection.send(_BEAT)
        except OSError:
            return False
        loop = asyncio.get_running_loop()
        self._beat, self._read = loop.create_future(), self._read or loop.create_future()
        loop.add_reader(self.connection.fileno(), self._hear)
        return True

    def _hear(self) -> None:
        data = b""
        with suppress(ConnectionError):
            data = self.connection.recv(_MOST_BYTES)
        if data in {_CAN_READ, _CANNOT_READ}:
            self._end_read(can_read=data == _CAN_READ)
        else:
            self._end_beat(is_alive=bool(data))
        if not data:
            asyncio.get_running_loop().remove_reader(self.connection.fileno())

    def _end_beat(self, *, is_alive: bool) -> None:
        beat, self._beat = self._beat, None
        if beat is not None:
            beat.set_result(is_alive)

    def _end_read(self, *, can_read: bool) -> None:
        read, self._read = self._read, None
        if read is not None:
            read.set_result(can_read)

    def close(self) -> None:
        """Close the connection, when the process has ended."""
        self._end_beat(is_alive=False)
        self._end_read(can_read=False)
        if self.connection.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self.connection.fileno())
        self.connection.close()


def answer_heartbeats(
    loop: asyncio.AbstractEventLoop,
    connection: socket.socket,
    read: Callable[[], object],
    offer: Callable[[Callable[[], None]], bool],
) -> None:
    """Echo what comes for as long as a loop runs, and before what waits in a busy one; then try to read.

    Args:
        loop: The loop.
        connection: To the first process.
        read: Reads as a request does, in a thread of requests; raises what keeps requests from it.
        offer: Hands work to such a thread; returns False if too much waits there.
    """
    connection.setblocking(False)
    is_reading = threading.Lock()

    def send(data: bytes) -> None:
        with suppress(OSError):
            connection.send(data)

    def try_to_read() -> None:
        can_read = False
        try:
            read()
            can_read = True
        except TreeclaimError as error:
            _LOG.debug("The inventory cannot be read: %s", error)
        finally:
            is_reading.release()
            send(_CAN_READ if can_read else _CANNOT_READ)

    def hear() -> None:
        data = b""
        with suppress(ConnectionError):
            data = connection.recv(_MOST_BYTES)
        if not data:
            loop.remove_reader(connection.fileno())
            return
        send(data)
        # One that still tries answers this too.
        if is_reading.acquire(blocking=False) and not offer(try_to_read):
            is_reading.release()
            send(_CANNOT_READ)

    loop.add_reader(connection.fileno(), hear)
    if isinstance(loop, ShortTurnLoop):
        loop.hurry(connection.fileno())


class CensusClient:
    """The admin listener's end of the connection to the first process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(HEARTBEAT_SECONDS + _MARGIN_SECONDS)
        self._turn = threading.Lock()
        self._number = 0
        self._answered_at = -1.0
        self._latest: Census | None = None

    def census(self) -> Census | None:
        """Return which workers answer; None if the first process does not tell."""
        came = time.monotonic()
        # Those ahead in the queue wait for two answers at most, as all others share the second.
        if not self._turn.acquire(timeout=2 * (HEARTBEAT_SECONDS + _MARGIN_SECONDS)):
            return None
        try:
            if self._answered_at < came:
                asked_at = time.monotonic()
                self._latest = self._asked()
                self._answered_at = asked_at
            return self._latest
        finally:
            self._turn.release()

    def _asked(self) -> Census | None:
        self._number += 1
        try:
            self._connection.send(str(self._number).encode())
            while data := self._connection.recv(_LONGEST_CENSUS):
                number, told = json.loads(data)
                # What was asked before may be answered only now.
                if number == self._number:
                    return Census(**told)
        except OSError:
            return None
        return None


async def serve_census(connection: socket.socket, census: Callable[[], Awaitable[Census]]) -> None:
    """Answer an admin listener until it ends."""
    loop = asyncio.get_running_loop()
    while True:
        data = b""
        with suppress(OSError):
            data = await loop.sock_recv(connection, _LONGEST_CENSUS)
        if not data:
            return
        answer = json.dumps([int(data), asdict(await census())]).encode()
        with suppress(OSError):
            await loop.sock_sendall(connection, answer)
