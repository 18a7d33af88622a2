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
from treeclaim.server.processes.listening import ListenError, admin_socket
from treeclaim.server.processes.nursery import NoLoaderError, Nursery
from treeclaim.server.processes.orders import Role
from treeclaim.server.processes.patience import Patience, reason
from treeclaim.server.processes.questions import answer_questions

_LOG = logging.getLogger(__name__)


class AdminPlace:
    """The place; without the listener the service works as well."""

    def __init__(self, nursery: Nursery, census: Callable[[], Awaitable[Census]]) -> None:
        """Begin with nothing.

        Args:
            nursery: Bears the process.
            census: Asks the workers which of them answer.
        """
        self._nursery = nursery
        self._census = census
        self._address: Sequence[Any] = ()
        self._listener: socket.socket | None = None
        self._child: Child | None = None
        self._turn = asyncio.Lock()
        self._is_open = asyncio.Event()
        self._others: set[asyncio.Task[None]] = set()

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

    async def keep(self) -> None:
        """Keep a process in the place while there is an address."""
        patience = Patience()
        while True:
            await self._is_open.wait()
            try:
                child = await self._filled()
            except NoLoaderError as error:
                _LOG.error("The admin listener cannot start (%s)", error)
            else:
                code = await child.wait()
                if self._child is not child:
                    continue
                self._child = None
                patience.note_life(child.born)
                _LOG.error("The admin listener ended (%s)", reason(code))
            await asyncio.sleep(patience.pause)
            patience.lengthen()

    async def _filled(self) -> Child:
        """Return the process in the place; start one if there is none.

        Raises:
            NoLoaderError: if none can be started now.
        """
        async with self._turn:
            if self._child is None:
                self._child = await self._started()
            return self._child

    async def _started(self) -> Child:
        if self._listener is None:
            raise NoLoaderError("it has no address")
        child = await Child.spawn(self._nursery, Role.ADMIN, self._listener)
        try:
            await child.wait_until_ready()
        except asyncio.CancelledError:
            await child.stop(END_SECONDS)
            raise
        child.accompany(answer_questions(child.connection, self._census))
        return child

    async def renew(self, address: Sequence[Any]) -> None:
        """Replace the process by one that knows a new configuration, perhaps at another address."""
        async with self._turn:
            self.open(address)
            former, successor = self._child, None
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
            self._child = successor
        if former is not None:
            self._do(former.stop(END_SECONDS))

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def stop(self) -> None:
        """Stop the process."""
        if self._child is not None:
            await self._child.stop(END_SECONDS)
        for task in list(self._others):
            task.cancel()
        await asyncio.gather(*self._others, return_exceptions=True)
