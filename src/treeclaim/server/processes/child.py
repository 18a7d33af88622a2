# SPDX-License-Identifier: Apache-2.0
"""A worker, or the admin listener, as the first process controls it."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from treeclaim.server.bounds import END_SECONDS, GRACE_SECONDS, HEARTBEAT_SECONDS, READY_SECONDS
from treeclaim.server.processes.forking import Forker
from treeclaim.server.processes.heartbeat import BROKEN, READY, Heartbeat
from treeclaim.server.processes.orders import Role, connected_sockets
from treeclaim.server.processes.reaper import Process

_LOG = logging.getLogger(__name__)

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1024 * 1024


class Child:
    """A running process.

    Attributes:
        pid: Its number.
        started_at: When it was started, by the monotonic clock.
        is_ready: Whether it answers requests.
        is_broken: Whether it has said that it lacks something a former one may have.
        connection: To that process.
    """

    def __init__(self, process: Process, connection: socket.socket) -> None:
        self.pid = process.pid
        self.started_at = process.started_at
        self.is_ready = False
        self.is_broken = False
        self.connection = connection
        self._process = process
        self._heartbeat = Heartbeat(connection)
        self._companion: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(cls, forker: Forker, role: Role, listener: socket.socket) -> "Child":
        """Start a process that serves a listening socket.

        Raises:
            NoLoaderError: if none can be started now.
        """
        ours, theirs = connected_sockets()
        ours.setblocking(False)
        try:
            process = await forker.fork(role, listener.fileno(), theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(process, ours)

    async def wait_until_ready(self) -> bool:
        """Wait until the process answers requests or has ended; return whether it answers.

        One that does neither for long is ended.
        """
        try:
            word = await self._heartbeat.first_word(READY_SECONDS)
        except TimeoutError:
            _LOG.error("Process %s is given up: it did not begin to answer", self.pid)
            self._process.send(signal.SIGKILL)
            return False
        self.is_broken = word == BROKEN
        self.is_ready = word in (READY, BROKEN)
        return self.is_ready

    async def answers(self) -> tuple[bool, bool]:
        """Return whether it has not stalled, and whether it reads the inventory."""
        return await self._heartbeat.beats(HEARTBEAT_SECONDS)

    def accompany(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something with the connection until the process has ended."""
        self._companion = asyncio.create_task(work)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        self._process.send(number)

    async def wait(self) -> int:
        """Wait until it has ended; return the exit code, negative for a signal."""
        code = await self._process.wait()
        self.is_ready = False
        if self._companion is not None:
            self._companion.cancel()
            await asyncio.gather(self._companion, return_exceptions=True)
        self._heartbeat.close()
        return code

    async def stop(self, seconds: float = GRACE_SECONDS + END_SECONDS) -> None:
        """Let the process finish its requests and end; kill it if that takes too long."""
        await self._process.stop(seconds)
        await self.wait()

    def memory(self) -> float:
        """Return MiB of resident memory, shared pages too; 0 where the system does not tell."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0.0
        return pages * _PAGE / _MIB
