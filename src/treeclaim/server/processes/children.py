# SPDX-License-Identifier: Apache-2.0
"""Forked processes, the places in which the loader keeps one running, and the fork itself."""

import gc
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from treeclaim import allocator

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
"""Seconds before the second of two processes that ended young is replaced; they double up to the longest."""

YOUNG_SECONDS = 30.0
"""A process that lived longer is replaced at once. No younger one is replaced for its memory."""

LOADER_NAME, WORKER_NAME, ADMIN_NAME = "treeclaim-load", "treeclaim-work", "treeclaim-admin"
"""Names that `ps` and `top` show."""

_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1024 * 1024)


class CannotForkError(Exception):
    """A process cannot be forked; the message says why."""


@dataclass(eq=False)
class ProcessPlace:
    """A place in which a process is kept running.

    Attributes:
        name: Name in log lines.
        process_name: Name that `ps` shows.
        work: What the process does, given its row of the liveness table.
        pause: Seconds until the next start if this process ends young.
        due: Earliest start of the next process, of the monotonic clock.
        was_ready: Whether a process has ever answered here.
    """

    name: str
    process_name: str
    work: Callable[[int], None]
    pause: float = 0.0
    due: float = 0.0
    was_ready: bool = False

    def postpone(self) -> None:
        """Start the next process after the pause, and the one after it later."""
        self.due = time.monotonic() + self.pause
        self.pause = min(max(2 * self.pause, _FIRST_PAUSE), _LONGEST_PAUSE)


@dataclass(eq=False)
class ServiceProcess:
    """A forked process.

    Attributes:
        pid: Its process id.
        row: Its row of the liveness table.
        place: Its place.
        started_at: Start, of the monotonic clock.
        deadline: When it is killed, unless it has begun to answer, or has ended.
        is_ready: Whether it has begun to answer.
        is_leaving: Whether another process has replaced it.
    """

    pid: int
    row: int
    place: ProcessPlace
    started_at: float
    deadline: float
    is_ready: bool = False
    is_leaving: bool = False

    def age(self) -> float:
        """Return seconds since its start."""
        return time.monotonic() - self.started_at

    def memory(self) -> float:
        """Return MiB of resident memory, shared pages too; 0 where the system does not tell."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_MIB
        except (OSError, ValueError, IndexError):
            return 0.0

    def find_excess(self, lifetime: float | None, memory: float | None) -> str | None:
        """Return "old" or "large" for more seconds or MiB than it may have; None while it is young."""
        if not self.is_ready or self.age() < YOUNG_SECONDS:
            return None
        if lifetime is not None and self.age() > lifetime:
            return "old"
        return "large" if memory is not None and self.memory() > memory else None

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def describe_end(code: int) -> str:
    """Return the words for an exit code, which is negative for a signal."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"


def require_no_threads() -> None:
    """Check that this process has one thread: a fork would leave the locks of others taken.

    Raises:
        CannotForkError: if it has more.
    """
    others = [thread.name for thread in threading.enumerate()][1:]
    if others:
        raise CannotForkError(f"a library has started threads: {', '.join(others)}")


def fork_with_shared_memory() -> int:
    """Fork; return the process id of the child, and 0 in the child.

    The garbage collector leaves all present objects alone; it would write to each page.

    Raises:
        CannotForkError: if the system allows no process.
    """
    gc.collect()
    gc.freeze()
    allocator.give_back()
    try:
        with warnings.catch_warnings():
            # From Python 3.12 on; the threads of a library for arrays know of forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork()
    except OSError as error:
        raise CannotForkError(f"no process can be started: {error.strerror}") from error


def release_memory() -> None:
    """Give memory that nothing refers to any more back to the system."""
    gc.unfreeze()
    gc.collect()
    allocator.give_back()


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` show."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)
