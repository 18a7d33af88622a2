# SPDX-License-Identifier: Apache-2.0
"""How long nobody is answered: a process of its own asks for next to nothing, every 2 ms.

For the second of two questions the inventory is needed, as for all searches, and not for the first.

What it waits is the service's doing as far as the service used a processor meanwhile; the rest is that
of the machine and of those who measure, who share it.
"""

import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from typing import NamedTuple

from bench.clients.connection import Connection

_PAUSE = 0.002
_TIMEOUT = 60.0


class Stop(NamedTuple):
    """The longest wait for an answer, and the most of a worker's processor time within any wait."""

    wait_ms: float = 0.0
    cpu_ms: float = 0.0


@contextmanager
def noted(url: str, worker: int) -> Iterator[Callable[[], Stop]]:
    """Ask while the block runs; yield what returns the longest stop since it was called last."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    asking = context.Process(target=_ask, args=(url, worker, its), daemon=True)
    asking.start()
    its.close()

    def take() -> Stop:
        # A wait that has begun counts: the other process looks here after each.
        ours.send(None)
        return Stop(*ours.recv())

    try:
        take()
        yield take
    finally:
        asking.terminate()
        asking.join()


def _ask(url: str, worker: int, pipe: Pipe) -> None:
    clock = (~worker << 3) | 2  # The processor time of another process (clock_getcpuclockid).
    client = Connection(url, {"X-Auth-Token": "admin"}, _TIMEOUT)
    client.get("/")
    longest = Stop()
    for path in itertools.cycle(("/", "/resource_providers?name=nobody")):
        cpu, begin = time.clock_gettime(clock), time.perf_counter()
        client.get(path)
        wait, used = time.perf_counter() - begin, time.clock_gettime(clock) - cpu
        longest = Stop(*map(max, longest, (1000 * wait, 1000 * used)))
        if pipe.poll():
            pipe.recv()
            pipe.send(longest)
            longest = Stop()
        time.sleep(_PAUSE)
