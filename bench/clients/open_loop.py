# SPDX-License-Identifier: Apache-2.0
"""An open loop: requests are due at fixed times, whether or not earlier ones were answered.

A latency counts from the time at which a request was due. A client that waits for one answer before
it sends the next request would ask less often just when the service is slow, and so would not see
what others, who do not know of each other, wait.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

_SWITCH_SECONDS = 0.0005
"""Seconds for which a thread of this client may hold the interpreter; Python's default is 5 ms."""

_HEAD_START = 0.2
"""Seconds until the first request is due: all threads are there by then."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Requests that arrive at a fixed rate.

    Attributes:
        send: Makes the n-th request, and returns when its whole answer is there.
        per_second: The rate.
        clients: Threads that send; as many requests can be under way at once.
    """

    send: Callable[[int], object]
    per_second: float
    clients: int = 16


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The outcome of a stream of requests.

    Attributes:
        latencies: Seconds from when each request was due to the end of its answer, in order.
    """

    latencies: Sequence[float]

    @property
    def is_stable(self) -> bool:
        """Tell whether the service kept up: the end of the stream waited no longer than the rest.

        A queue that grows all the time makes the last quarter wait much longer than the second.
        """
        quarter = max(len(self.latencies) // 4, 1)
        early = sorted(self.latencies[quarter : 2 * quarter] or self.latencies)
        late = sorted(self.latencies[-quarter:])
        return late[len(late) // 2] <= 2 * early[len(early) // 2] + 0.01


def run(streams: Sequence[Stream], seconds: float) -> list[Arrivals]:
    """Let requests of some streams arrive for a while; return what became of each stream."""
    begin = time.perf_counter() + _HEAD_START
    with _quick_switches(), ThreadPoolExecutor(sum(stream.clients for stream in streams)) as pool:
        running = [_start(pool, stream, begin, seconds) for stream in streams]
        return [_arrivals(some) for some in running]


def _start(
    pool: ThreadPoolExecutor, stream: Stream, begin: float, seconds: float
) -> list[Future[dict[int, float]]]:
    numbers = iter(range(int(seconds * stream.per_second)))
    lock = threading.Lock()

    def work() -> dict[int, float]:
        latencies: dict[int, float] = {}
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return latencies
            due = begin + number / stream.per_second
            time.sleep(max(due - time.perf_counter(), 0))
            stream.send(number)
            latencies[number] = time.perf_counter() - due

    return [pool.submit(work) for _ in range(stream.clients)]


def _arrivals(working: Sequence[Future[dict[int, float]]]) -> Arrivals:
    latencies: dict[int, float] = {}
    for one in working:
        latencies |= one.result()
    return Arrivals([latencies[number] for number in sorted(latencies)])


@contextmanager
def _quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
