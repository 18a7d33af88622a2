# SPDX-License-Identifier: Apache-2.0
"""How the admin listener learns which workers answer: it asks the first process, which asks them."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict

from treeclaim.admin.census import Census
from treeclaim.server.bounds import PULSE_SECONDS

_MOST_BYTES = 64 * 1024
"""An answer about some thousand workers."""

_MARGIN_SECONDS = 1.0
"""What the first process may take besides."""


class Questions:
    """The admin listener's end of the connection to the first process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(PULSE_SECONDS + _MARGIN_SECONDS)
        self._turn = threading.Lock()
        self._number = 0
        self._answered_at = -1.0
        self._latest: Census | None = None

    def census(self) -> Census | None:
        """Return which workers answer; None if the first process does not tell."""
        came = time.monotonic()
        # Whoever was before in the queue waits for two answers at most, as all others share the second.
        if not self._turn.acquire(timeout=2 * (PULSE_SECONDS + _MARGIN_SECONDS)):
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
            while data := self._connection.recv(_MOST_BYTES):
                number, told = json.loads(data)
                # What was asked before may be answered only now.
                if number == self._number:
                    return Census(**told)
        except OSError:
            return None
        return None


async def answer_questions(
    connection: socket.socket, census: Callable[[], Awaitable[Census]]
) -> None:
    """Answer an admin listener until it ends."""
    loop = asyncio.get_running_loop()
    while True:
        data = b""
        with suppress(OSError):
            data = await loop.sock_recv(connection, _MOST_BYTES)
        if not data:
            return
        answer = json.dumps([int(data), asdict(await census())]).encode()
        with suppress(OSError):
            await loop.sock_sendall(connection, answer)
