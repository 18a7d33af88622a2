# SPDX-License-Identifier: Apache-2.0
"""The place of the admin listener: its address, and the process that answers there.

The first process keeps the socket, so whoever probes while one process replaces another waits for that
instead of being refused.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from treeclaim.admin.census import Census
from treeclaim.server.bounds import END_SECONDS
from treeclaim.server.processes.child import Child
from treeclaim.server.processes.forking import Forker, NoLoaderError
from treeclaim.server.processes.heartbeat import serve_census
from treeclaim.server.processes.listening import ListenError, admin_socket
from treeclaim.server.processes.orders import Role
from treeclaim.server.processes.places import Place

_LOG = logging.getLogger(__name__)


class AdminPlace(Place):
    """The place; without the listener the service works as well."""

    def __init__(self, forker: Forker, census: Callable[[], Awaitable[Census]]) -> None:
        """Begin with nothing.

        Args:
            forker: Starts the process.
            census: Asks the workers which of them answer.
        """
        super().__init__("The admin listener", Role.ADMIN, forker)
        self._census = census
        self._address: Sequence[Any] = ()
        self._listener: socket.socket | None = None
        self._is_open = asyncio.Event()

    def open(self, address: Sequence[Any]) -> None:
        """Listen at an address, at none if it is empty; if it cannot be had, log that and go on as before."""
        if tuple(address) == tuple(self._address) and self._listener is not None:
            return
        try:
            listener = admin_socket(*address) if address else None
        except ListenError as error:
            _LOG.error("%s", error)
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
                    _LOG.error("The admin listener is not replaced: its successor works worse")
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
