# SPDX-License-Identifier: Apache-2.0
"""Simulates clients, workers and a database that share cores, event by event.

It checks the rules of the model: what workers get done is measured on one machine, where clients,
workers and the database share cores, and is compared with what happens here. Delays of the network
can be put in that no machine at hand has.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from bench.scale.coefficients import Coefficients

_MOST_IN_A_GROUP = 64

Process = Generator["Use | Pause | Wait", None, None]
"""Something that happens over time: it yields what it does, or waits for, next."""


class Resource:
    """Something of which a number can be had at a time: cores, the lock of a worker, a disk."""

    def __init__(self, capacity: int) -> None:
        self.free = capacity
        self.waiting: deque[Callable[[], None]] = deque()


@dataclass(frozen=True, slots=True)
class Use:
    """Have a resource for some seconds, as soon as it is free."""

    resource: Resource
    seconds: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Let some seconds pass."""

    seconds: float


@dataclass(slots=True)
class Wait:
    """Wait until somebody calls `end`.

    Attributes:
        go: Lets the process go on that waits.
    """

    go: Callable[[], None] | None = None

    def end(self) -> None:
        """Let the process go on that waits, if one does already."""
        if self.go is not None:
            self.go()


class Simulation:
    """Events in order of time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def run(self, until: float) -> None:
        """Let everything happen until a time."""
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heapq.heappop(self._events)
            event()

    def start(self, process: Process) -> None:
        """Let a process go on, to what it does next."""
        action = next(process, None)
        if isinstance(action, Pause):
            self._after(action.seconds, lambda: self.start(process))
        elif isinstance(action, Wait):
            action.go = lambda: self.start(process)
        elif action is not None:
            self._use(action, process)

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def _use(self, action: Use, process: Process) -> None:
        resource = action.resource

        def begin() -> None:
            resource.free -= 1
            self._after(action.seconds, end)

        def end() -> None:
            resource.free += 1
            if resource.waiting:
                resource.waiting.popleft()()
            self.start(process)

        if resource.free:
            begin()
        else:
            resource.waiting.append(begin)


class _Worker:
    """A worker: one thread at a time computes, and one transaction of claims is under way."""

    def __init__(self) -> None:
        self.lock = Resource(1)
        self.group: list[Wait] = []
        self.is_writing = False


class Cloud:
    """Clients that search and claim without a pause, as in the measurement.

    Args:
        costs: As measured.
        workers: Processes of the service.
        clients: How many at once.
        cores: That all processes share; None for as many as there are processes.
        delay: Seconds that each round trip to the database takes longer.
    """

    def __init__(
        self,
        costs: Coefficients,
        workers: int,
        clients: int = 16,
        cores: int | None = None,
        delay: float = 0.0,
    ) -> None:
        self._costs = costs
        self._delay = delay
        self._cores = Resource(cores or 2 * workers + clients)
        self._disk = Resource(1)
        self._simulation = Simulation()
        self._workers = [_Worker() for _ in range(workers)]
        self.latencies: list[float] = []
        size = costs.group_size
        self._api = _fixed_and_each(costs.claim.api_ms, costs.grouped_claim.api_ms, size)
        self._database = _fixed_and_each(
            costs.claim.database_ms, costs.grouped_claim.database_ms, size
        )
        for number in range(clients):
            self._simulation.start(self._client(self._workers[number % workers]))

    def pairs_per_second(self, seconds: float) -> float:
        """Let some seconds pass; return how many searches with a claim were done in each."""
        self._simulation.run(seconds)
        return len(self.latencies) / seconds

    def _client(self, worker: _Worker) -> Process:
        search, claim = self._costs.search_after_claim, self._costs.claim
        while True:
            begun = self._simulation.now
            yield Use(self._cores, (search.client_ms + claim.client_ms) / 1000.0)
            yield from self._held(worker, search.api_ms)
            yield from self._asked(search.database_ms, search.round_trips)
            yield from self._claimed(worker)
            self.latencies.append(self._simulation.now - begun)

    def _held(self, worker: _Worker, milliseconds: float) -> Process:
        """Compute in slices, as threads of one interpreter and processes of one machine do."""
        slices = max(round(milliseconds), 1)
        for _ in range(slices):
            yield from self._slice(worker, milliseconds / slices / 1000.0)

    def _slice(self, worker: _Worker, seconds: float) -> Process:
        while not worker.lock.free:
            waiting = Wait()
            worker.lock.waiting.append(waiting.end)
            yield waiting
        worker.lock.free -= 1
        yield Use(self._cores, seconds)
        worker.lock.free += 1
        if worker.lock.waiting:
            worker.lock.waiting.popleft()()

    def _asked(self, milliseconds: float, round_trips: float) -> Process:
        yield Use(self._cores, milliseconds / 1000.0)
        yield Pause(round_trips * self._delay)

    def _claimed(self, worker: _Worker) -> Process:
        """Lead a transaction, or join the next one and wait for it."""
        if worker.is_writing:
            joined = Wait()
            worker.group.append(joined)
            yield joined
            return
        worker.is_writing = True
        yield from self._written(worker, 1)
        # Whoever came meanwhile is the next group.
        self._simulation.start(self._led(worker))

    def _led(self, worker: _Worker) -> Process:
        """Write the groups that wait, one after the other."""
        while worker.group:
            members = worker.group[:_MOST_IN_A_GROUP]
            del worker.group[: len(members)]
            yield from self._written(worker, len(members))
            for member in members:
                member.end()
        worker.is_writing = False

    def _written(self, worker: _Worker, count: int) -> Process:
        yield from self._held(worker, self._api[0] + count * self._api[1])
        database = self._database[0] + count * self._database[1]
        yield from self._asked(database, self._costs.claim.round_trips)
        yield Use(self._disk, self._costs.commit_ms / 1000.0)


def _fixed_and_each(alone: float, grouped: float, size: float) -> tuple[float, float]:
    """Return what a group costs, and each claim in it, given a claim alone and in a group."""
    if size <= 1.0:
        return 0.0, grouped
    fixed = min(max((alone - grouped) / (1.0 - 1.0 / size), 0.0), alone)
    return fixed, alone - fixed
