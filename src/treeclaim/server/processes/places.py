# SPDX-License-Identifier: Apache-2.0
"""Places in which a process is kept running.

A process that ends is always replaced, after a pause that grows while processes die soon after their
start. One that works is stopped only when its successor answers requests.

The place of the admin listener also keeps the socket, so a probe that comes while one process replaces another
waits for that instead of being refused.
"""

import asyncio
import logging
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from treeclaim.admin import Census
from treeclaim.server.bounds import END_SECONDS
from treeclaim.server.processes.child import Child
from treeclaim.server.processes.forking import Forker, NoLoaderError
from treeclaim.server.processes.heartbeat import serve_census
from treeclaim.server.processes.listening import ListenError, admin_socket
from treeclaim.server.processes.orders import Role

_LOG = logging.getLogger(__name__)

_FIRST_PAUSE = 0.25
"""Seconds before the second of two processes that died young is replaced; it doubles each time."""

_LONGEST_PAUSE = 5.0
"""Longest pause: the service comes back soon after the cause is gone."""

_YOUNG = 30.0
"""Seconds; a process that lived longer is replaced at once."""


class Place(ABC):
    """A place for one process.

    Attributes:
        name: What log lines call the process.
        child: The process there; None before the first, and between one and the next.
    """

    def __init__(self, name: str, role: Role, forker: Forker) -> None:
        self.name = name
        self.child: Child | None = None
        self._role = role
        self._forker = forker
        self._turn = asyncio.Lock()
        """Held while the place is filled, so that no process replaces another by accident."""
        self._pause = 0.0
        self._background: set[asyncio.Future[Any]] = set()

    async def keep(self) -> None:
        """Keep a process in the place."""
        while True:
            try:
                child = await self._filled()
            except NoLoaderError as error:
                _LOG.error("%s cannot start (%s); again in %s s", self.name, error, self._pause)
            else:
                code = await child.wait()
                if self.child is not child:
                    continue
                self.child = None
                if time.monotonic() - child.started_at > _YOUNG:
                    self._pause = 0.0
                _LOG.error(
                    "%s ended (%s); the next one starts in %s s",
                    self.name,
                    _reason(code),
                    self._pause,
                )
            await asyncio.sleep(self._pause)
            self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE)

    @abstractmethod
    async def _filled(self) -> Child:
        """Return the process in the place; start one if there is none.

        Raises:
            NoLoaderError: if none can be started now.
        """

    async def _spawned(self, listener: socket.socket) -> Child:
        return await Child.spawn(self._forker, self._role, listener)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


class WorkerPlace(Place):
    """The place of a worker.

    Attributes:
        is_ready: Set as soon as a worker has answered requests here.
    """

    def __init__(self, number: int, forker: Forker, *, is_only: bool) -> None:
        """Begin without a worker.

        Args:
            number: The number of the place.
            forker: Starts workers.
            is_only: Whether there are no other places.
        """
        super().__init__(f"Worker {number}", Role.WORKER, forker)
        self.is_ready = asyncio.Event()
        self._number = number
        self._is_only = is_only
        self._listener: socket.socket | None = None

    async def serve(self, listener: socket.socket) -> None:
        """Keep a worker that serves a listening socket."""
        self._listener = listener
        await self.keep()

    async def _filled(self) -> Child:
        async with self._turn:
            if self.child is not None:
                return self.child
            worker = self.child = await self._started()
        if await worker.wait_until_ready():
            await self._note_ready(worker)
        return worker

    async def _started(self) -> Child:
        if self._listener is None:
            raise NoLoaderError("it has no address")
        return await self._spawned(self._listener)

    async def _note_ready(self, worker: Child) -> None:
        _LOG.info("%s runs as process %s", self.name, worker.pid)
        self.is_ready.set()
        if self._is_only:
            # No other process is left to share with: its pages would be kept for nothing.
            await self._forker.rest()

    async def replace(self) -> None:
        """Start another worker; the former one goes when that one answers."""
        async with self._turn:
            try:
                successor = await self._started()
            except NoLoaderError as error:
                _LOG.error("%s is not replaced: %s", self.name, error)
                return
            try:
                is_ready = await successor.wait_until_ready()
            except asyncio.CancelledError:
                await successor.stop()
                raise
            if not is_ready:
                _LOG.error("%s is not replaced: its successor ended", self.name)
                return
            former, self.child = self.child, successor
        await self._note_ready(successor)
        if former is not None:
            _LOG.info("Stopping old worker %s, process %s", self._number, former.pid)
            self._do(former.stop())

    async def stop(self) -> None:
        """Stop the worker, and wait for those that were replaced."""
        if self.child is not None:
            self._do(self.child.stop())
        await asyncio.gather(*self._background)


def _reason(code: int) -> str:
    """Say why a process has ended."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"


class AdminPlace(Place):
    """The place; without the listener the service works as well."""

    def __init__(self, forker: Forker, census: Callable[[], Awaitable[Census]]) -> None:
        super().__init__("The admin listener", Role.ADMIN, forker)
        self._census = census
        self._address: Sequence[Any] = ()
        self._listener: socket.socket | None = None
        self._is_open = asyncio.Event()

    def open(self, address: Sequence[Any]) -> None:
        """Listen at an address, at none if it is empty; if it cannot be had, log that and go on as before."""
        if tuple(address) == tuple(self._address) and self._listener is not None:
            return
        fault, listener = None, None
        try:
            listener = admin_socket(*address) if address else None
        except ListenError as error:
            fault = str(error)
        if fault is not None:
            # Inside of the handler, oslo.log would add the error's text to the same line once more.
            _LOG.error("%s", fault)
            return
        if self._listener is not None:
            self._listener.close()
        self._address, self._listener = address, listener
        if listener is None:
            self._is_open.clear()
        else:
            self._is_open.set()

    async def _filled(self) -> Child:
        await self._is_open.wait()
        async with self._turn:
            if self.child is None:
                self.child = await self._started()
            return self.child

    async def _started(self) -> Child:
        if self._listener is None:
            raise NoLoaderError("it has no address")
        child = await self._spawned(self._listener)
        try:
            await child.wait_until_ready()
        except asyncio.CancelledError:
            await child.stop(END_SECONDS)
            raise
        child.accompany(serve_census(child.connection, self._census))
        return child

    async def renew(self, address: Sequence[Any]) -> None:
        """Replace the process by one that knows a new configuration, perhaps at another address."""
        async with self._turn:
            self.open(address)
            former, successor = self.child, None
            if self._listener is not None:
                try:
                    successor = await self._started()
                except NoLoaderError as error:
                    _LOG.error("The admin listener is not replaced: %s", error)
                    return
                if former is not None and (successor.is_broken or not successor.is_ready):
                    _LOG.error(
                        "The admin listener is not replaced: its successor lacks something that it has"
                    )
                    self._do(successor.stop(END_SECONDS))
                    former.send(signal.SIGHUP)
                    return
            self.child = successor
        if former is not None:
            self._do(former.stop(END_SECONDS))

    async def stop(self) -> None:
        """Stop the process."""
        if self.child is not None:
            await self.child.stop(END_SECONDS)
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
