# SPDX-License-Identifier: Apache-2.0
"""Where processes come from: a loader, replaced when it is gone, too old, or told to be."""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from contextlib import suppress

from treeclaim.server.bounds import LOADER_SECONDS, LOADERS, SILENCE_SECONDS
from treeclaim.server.processes.orders import (
    MOST_BYTES,
    Checked,
    Fork,
    Forked,
    Load,
    Loaded,
    Message,
    Refused,
    Role,
    Working,
    connected_sockets,
    packed,
    unpacked,
)
from treeclaim.server.processes.reaper import Process, Reaper
from treeclaim.server.settings import ServerSettings

_LOG = logging.getLogger(__name__)

_ORDERS = 3
"""The file descriptor of the loader's end of the connection."""


class NoLoaderError(Exception):
    """No loader can be started, or it has ended; the message says why."""


class SilentLoaderError(NoLoaderError):
    """A loader has stalled."""

    def __init__(self) -> None:
        super().__init__(f"the loader has stalled: it said nothing for {SILENCE_SECONDS:.0f} s")


class Loader:
    """A running loader, seen from the first process.

    Attributes:
        checked: What it has found out at its start.
        has_inventory: Whether it could load the inventory.
    """

    def __init__(self, process: Process, connection: socket.socket, checked: Checked) -> None:
        self.checked = checked
        self._process = process
        self._connection = connection
        self._is_loaded = False
        self.has_inventory = True

    @classmethod
    async def start(cls, settings: ServerSettings, reaper: Reaper, lifeline: int) -> "Loader":
        """Start one, and wait until it has checked that the service can run.

        Args:
            settings: The settings of the service.
            reaper: Notes its end.
            lifeline: A pipe that ends with the first process; it becomes the standard input.

        Raises:
            NoLoaderError: if it refuses, ends, or has stalled.
        """
        ours, theirs = connected_sockets()
        ours.setblocking(False)
        with theirs:
            process = reaper.started(_spawned(settings, lifeline, theirs.fileno()))
        try:
            answer = await _answer(ours)
        except BaseException:
            ours.close()
            process.send(signal.SIGKILL)
            raise
        if isinstance(answer, Checked):
            return cls(process, ours, answer)
        ours.close()
        raise NoLoaderError(answer.why if isinstance(answer, Refused) else "it does not start")

    @property
    def is_usable(self) -> bool:
        """Tell whether it runs and is young enough."""
        age = time.monotonic() - self._process.started_at
        return not self._process.has_ended and age < LOADER_SECONDS

    async def load(self) -> None:
        """Let it wait for the database and load the inventory, if it has not yet.

        Raises:
            NoLoaderError: if the database cannot be used; or if it has ended, or has stalled.
        """
        if not self._is_loaded:
            self._order(Load())
            answer = await _answer(self._connection)
            if isinstance(answer, Refused):
                raise NoLoaderError(answer.why)
            if isinstance(answer, Loaded):
                self.has_inventory = answer.has_inventory
            self._is_loaded = True

    async def fork(self, role: Role, *descriptors: int) -> int:
        """Let it fork a process; return the number.

        Raises:
            NoLoaderError: if it has ended, or has stalled.
        """
        self._order(Fork(role), *descriptors)
        answer = await _answer(self._connection)
        if isinstance(answer, Forked):
            return answer.pid
        raise NoLoaderError(
            answer.why if isinstance(answer, Refused) else "no process was started"
        )

    def _order(self, order: Message, *descriptors: int) -> None:
        try:
            socket.send_fds(self._connection, [packed(order)], descriptors)
        except OSError as error:
            raise NoLoaderError("the loader has ended") from error

    def end(self) -> None:
        """End it; what it has forked goes on."""
        self._connection.close()
        self._process.send(signal.SIGKILL)


def _spawned(settings: ServerSettings, lifeline: int, orders: int) -> int:
    """Start an interpreter for a loader; return its number."""
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "treeclaim.server", settings.to_json(), str(_ORDERS)],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, lifeline, 0),
            (os.POSIX_SPAWN_DUP2, orders, _ORDERS),
        ],
    )


async def _answer(connection: socket.socket) -> Message:
    """Return what a loader answers, as long as it works on that.

    Raises:
        NoLoaderError: if it has ended, or has stalled.
    """
    while True:
        message = await _message(connection)
        if not isinstance(message, Working):
            return message


async def _message(connection: socket.socket) -> Message:
    data = b""
    receiving = asyncio.get_running_loop().sock_recv(connection, MOST_BYTES)
    try:
        with suppress(ConnectionError):
            data = await asyncio.wait_for(receiving, SILENCE_SECONDS)
    except TimeoutError as error:
        raise SilentLoaderError from error
    if not data:
        raise NoLoaderError("the loader has ended")
    try:
        return unpacked(data)
    except ValueError as error:
        # The service goes on as it is.
        words = "the loader is of another release, which this process does not understand"
        raise NoLoaderError(f"{words} ({error}); restart the service instead") from error


class Forker:
    """Forks processes by the loader of the time."""

    def __init__(self, settings: ServerSettings, reaper: Reaper) -> None:
        self._settings = settings
        self._reaper = reaper
        # All processes hold the one end, this one alone the other; nobody writes.
        self._lifeline, self._held = os.pipe()
        self._loader: Loader | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> Checked:
        """Start the first loader; return what it has found out.

        Raises:
            NoLoaderError: if it refuses.
        """
        self._loader = await self._started()
        return self._loader.checked

    async def load(self) -> None:
        """Load the inventory; wait for the database for as long as the options say.

        Raises:
            NoLoaderError: if the database cannot be used.
        """
        async with self._turn:
            try:
                await (await self._usable()).load()
            except SilentLoaderError as error:
                self.close()
                _LOG.error("Another loader is started: %s", error)

    async def renew(self) -> Checked:
        """Replace the loader by one with new code, configuration and inventory.

        The former one forks processes until then, and also if this fails.

        Raises:
            NoLoaderError: if the new one refuses, or ends.
        """
        loader = await self._started(is_loaded=True)
        if not loader.has_inventory:
            loader.end()
            raise NoLoaderError("the inventory could not be loaded; the log says why")
        # A process that is being forked comes from one of the two, not from a loader that ends meanwhile.
        async with self._turn:
            self.close()
            self._loader = loader
        return loader.checked

    async def fork(self, role: Role, *descriptors: int) -> Process:
        """Fork a process, one at a time.

        Args:
            role: What it is to be.
            descriptors: What it is given.

        Raises:
            NoLoaderError: if there can be no loader now.
        """
        async with self._turn:
            loader = await self._usable()
            try:
                if role is Role.WORKER:
                    # Liveness is told while a large inventory is loaded.
                    await loader.load()
                self._reaper.expect()
                return self._reaper.adopt(await loader.fork(role, *descriptors))
            except BaseException:
                # A cancelled task has left an answer that is not read.
                self.close()
                raise

    async def _usable(self) -> Loader:
        if self._loader is None or not self._loader.is_usable:
            self.close()
            self._loader = await self._started()
        return self._loader

    async def _started(self, *, is_loaded: bool = False) -> Loader:
        """Start a loader; another one, if it has stalled."""
        for _ in range(LOADERS - 1):
            try:
                return await self._one_started(is_loaded=is_loaded)
            except SilentLoaderError as error:
                _LOG.error("Another loader is started: %s", error)
        return await self._one_started(is_loaded=is_loaded)

    async def _one_started(self, *, is_loaded: bool) -> Loader:
        loader = await Loader.start(self._settings, self._reaper, self._lifeline)
        if is_loaded:
            try:
                await loader.load()
            except BaseException:
                loader.end()
                raise
        return loader

    async def rest(self) -> None:
        """End the loader, when it has done what it was told; there will be another one if needed."""
        async with self._turn:
            self.close()

    def close(self) -> None:
        """End the loader at once."""
        if self._loader is not None:
            self._loader.end()
            self._loader = None
