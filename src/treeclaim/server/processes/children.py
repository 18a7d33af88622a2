# SPDX-License-Identifier: Apache-2.0
"""Forked processes, the places in which the loader keeps them running, retries, and the fork."""

import gc
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from treeclaim import allocator

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
"""Seconds before the second retry; later pauses double up to the longest."""

YOUNG_SECONDS = 30.0
"""Age from which a process that ends is replaced immediately, and may be replaced for its memory."""

LOADER_NAME, WORKER_NAME, ADMIN_NAME = "treeclaim-load", "treeclaim-work", "treeclaim-admin"
"""Process names that `ps` and `top` show."""

_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1024 * 1024)


class CannotForkError(Exception):
    """A process cannot be forked; the message is the reason."""


class Backoff:
    """Exponential backoff whose first retry is immediate; `pause` is in seconds."""

    def __init__(self) -> None:
        self.pause = 0.0
        self._due_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the pause has passed."""
        return time.monotonic() >= self._due_at

    def postpone(self) -> None:
        """Start the pause before the next retry."""
        self._due_at = time.monotonic() + self.pause
        self.pause = min(max(2 * self.pause, _FIRST_PAUSE), _LONGEST_PAUSE)

    def disable(self) -> None:
        """Allow no further retry."""
        self._due_at = math.inf

    def reset(self) -> None:
        """Make the next retry immediate."""
        self.pause = 0.0


@dataclass(eq=False)
class ProcessPlace:
    """A place in which a process is kept running.

    Attributes:
        name, process_name: The names in log lines and in `ps`.
        work: Runs the process, given its row in the liveness table.
        backoff: Delays the next start after a process ended young.
        was_ready: Whether a process in this place has ever answered.
    """

    name: str
    process_name: str
    work: Callable[[int], None]
    backoff: Backoff = field(default_factory=Backoff)
    was_ready: bool = False


@dataclass(eq=False)
class ServiceProcess:
    """A forked process.

    Attributes:
        row: The row of the liveness table.
        started_at: Start by the monotonic clock.
        deadline: Time at which the loader kills a process that has not begun to answer, or not ended.
        is_ready: Whether the process has begun to answer.
        is_leaving: Whether another process has replaced this one.
    """

    pid: int
    row: int
    place: ProcessPlace
    started_at: float
    deadline: float
    is_ready: bool = False
    is_leaving: bool = False

    def age(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started_at

    def memory(self) -> float:
        """Return the MiB of resident memory including shared pages; 0 if /proc is unreadable."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE_MIB
        except (OSError, ValueError, IndexError):
            return 0.0

    def find_excess(self, lifetime: float | None, memory: float | None) -> str | None:
        """Return "old" or "large" if the process exceeds these seconds or MiB, else None; None for a young process."""
        if not self.is_ready or self.age() < YOUNG_SECONDS:
            return None
        if lifetime is not None and self.age() > lifetime:
            return "old"
        return "large" if memory is not None and self.memory() > memory else None

    def send(self, number: signal.Signals) -> None:
        """Send a signal if the process still runs."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def describe_end(code: int) -> str:
    """Describe an exit code, which is negative for a signal."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"


def require_no_threads() -> None:
    """Raise CannotForkError if this process has several threads: a fork would leave their locks acquired."""
    names = [thread.name for thread in threading.enumerate()][1:]
    if names:
        raise CannotForkError(f"a library has started threads: {', '.join(names)}")


def fork_with_shared_memory() -> int:
    """Fork; return the process id of the child, or 0 in the child.

    Raises:
        CannotForkError: if the system allows no further process.
    """
    # The garbage collector writes to the pages of all objects that are not frozen.
    gc.collect()
    gc.freeze()
    allocator.trim_heap()
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of the threads of numpy's libraries, which support forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork()
    except OSError as error:
        raise CannotForkError(f"no process can be started: {error.strerror}") from error


def release_memory() -> None:
    """Return unused memory to the system."""
    gc.unfreeze()
    gc.collect()
    allocator.trim_heap()


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` show."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)
