# SPDX-License-Identifier: Apache-2.0
"""How long nobody is answered: a process of its own asks for next to nothing, every 2 ms.

What it waits is the service's doing as far as the service used a processor meanwhile; the rest is that
of the machine and of those who measure, who share it.
"""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

import psutil

from bench.clients.connection import Connection

_PAUSE = 0.002
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Stop:
    """The longest that somebody waited who asked for next to nothing.

    Attributes:
        wait_ms: For the answer.
        cpu_ms: Processor time of the worker within one wait, the most of all; of all its threads.
    """

    wait_ms: float = 0.0
    cpu_ms: float = 0.0

    def or_longer(self, other: "Stop") -> "Stop":
        """Return the longer of two."""
        return Stop(max(self.wait_ms, other.wait_ms), max(self.cpu_ms, other.cpu_ms))


class Stops:
    """What the process notes."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def take(self) -> Stop:
        """Return the longest since this was called last; a wait that has begun counts, too."""
        self._pipe.send(None)
        found: Stop = self._pipe.recv()
        return found


def worker_of(service: psutil.Process) -> int:
    """Return the process id of the only worker of a service: it has threads for requests."""
    return max(service.children(recursive=True), key=psutil.Process.num_threads).pid


@contextmanager
def noted(url: str, worker: int) -> Iterator[Stops]:
    """Note how long nobody is answered at a URL by a worker while the block runs."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    asking = context.Process(target=_ask, args=(url, worker, its), daemon=True)
    asking.start()
    # Whoever asks it after its end is told of that.
    its.close()
    try:
        stops = Stops(ours)
        stops.take()
        yield stops
    finally:
        asking.terminate()
        asking.join()


def _ask(url: str, worker: int, pipe: Pipe) -> None:
    clock = _clock_of(worker)
    client = Connection(url, {"Accept": "application/json"}, _TIMEOUT)
    client.get("/")
    longest = Stop()
    while True:
        cpu, begin = time.clock_gettime(clock), time.perf_counter()
        client.get("/")
        end, cpu_end = time.perf_counter(), time.clock_gettime(clock)
        longest = longest.or_longer(Stop(1000 * (end - begin), 1000 * (cpu_end - cpu)))
        if pipe.poll():
            pipe.recv()
            pipe.send(longest)
            longest = Stop()
        time.sleep(_PAUSE)


def _clock_of(process: int) -> int:
    """Return the clock of the processor time of another process, as `clock_getcpuclockid` does."""
    return (~process << 3) | 2
