# SPDX-License-Identifier: Apache-2.0
"""The first process as the parent of all: learns of each end, and leaves no zombies."""

import asyncio
import ctypes
import os
import signal
import time
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
"""The option of prctl(2) by which orphans among the descendants of this process become its children."""


class Process:
    """A child process.

    Attributes:
        pid: Its number, which is no other process's until its end was noted here.
        started_at: When it was started, by the monotonic clock.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.started_at = time.monotonic()
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def has_ended(self) -> bool:
        """Tell whether it has ended."""
        return self._end.done()

    def note_end(self, code: int) -> None:
        """Note that it has ended."""
        if not self._end.done():
            self._end.set_result(code)

    async def wait(self) -> int:
        """Wait until it has ended; return the exit code, negative for a signal."""
        # Several may wait, and one of them may give up.
        return await asyncio.shield(self._end)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if not self.has_ended:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def stop(self, seconds: float) -> None:
        """Ask it to end; kill it if that takes too long."""
        self.send(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.wait(), seconds)
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self.wait()


class Reaper:
    """Awaits all children, those that others have left to this process too."""

    def __init__(self) -> None:
        """Begin; raises OSError if the kernel does not give orphans to this process."""
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "the first process cannot become the parent of all")
        self._known: dict[int, Process] = {}
        self._unknown: dict[int, int] = {}
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    def expect(self) -> None:
        """Prepare for the number of a new process: ends noted until now are of others."""
        self._unknown.clear()

    def started(self, pid: int) -> Process:
        """Return a process that this one has just started itself."""
        self._unknown.pop(pid, None)
        return self.adopt(pid)

    def adopt(self, pid: int) -> Process:
        """Return a process whose number has become known; it may have ended since `expect`."""
        process = Process(pid)
        if pid in self._unknown:
            process.note_end(self._unknown.pop(pid))
        else:
            self._known[pid] = process
        return process

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            process = self._known.pop(pid, None)
            if process is None:
                self._unknown[pid] = code
            else:
                process.note_end(code)
