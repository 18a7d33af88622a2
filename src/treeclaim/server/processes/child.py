# SPDX-License-Identifier: Apache-2.0
"""A worker process, as the first process controls it."""

import asyncio
import os
import socket
from pathlib import Path

from treeclaim.server.bounds import END_SECONDS, GRACE_SECONDS
from treeclaim.server.processes.nursery import Nursery
from treeclaim.server.processes.orders import Role
from treeclaim.server.processes.reaper import Process

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1024 * 1024


class Worker:
    """A running process.

    Attributes:
        pid: Its number.
        born: When it was started, by the monotonic clock.
        is_ready: Whether it answers requests.
    """

    def __init__(self, process: Process, ready: int) -> None:
        self.pid = process.pid
        self.born = process.born
        self.is_ready = False
        self._process = process
        self._ready = ready

    @classmethod
    async def spawn(cls, nursery: Nursery, listener: socket.socket) -> "Worker":
        """Start a process that serves a listening socket.

        Raises:
            NoLoaderError: if none can be started now.
        """
        ready, told = os.pipe()
        try:
            process = await nursery.bear(Role.WORKER, listener.fileno(), told)
        except BaseException:
            os.close(ready)
            raise
        finally:
            os.close(told)
        return cls(process, ready)

    async def wait_until_ready(self) -> bool:
        """Wait until the process answers requests or has ended; return whether it answers."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self._ready, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            self.is_ready = await reader.readline() == b"ready\n"
        finally:
            transport.close()
        return self.is_ready

    async def wait(self) -> int:
        """Wait until it has ended; return the exit code, negative for a signal."""
        return await self._process.wait()

    async def stop(self) -> None:
        """Let the process finish its requests and end; kill it if that takes too long."""
        await self._process.stop(GRACE_SECONDS + END_SECONDS)

    def memory(self) -> float:
        """Return MiB of resident memory, shared pages too; 0 where the system does not tell."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0.0
        return pages * _PAGE / _MIB
