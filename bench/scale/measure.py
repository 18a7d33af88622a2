# SPDX-License-Identifier: Apache-2.0
"""Measures what one search and one claim cost: CPU time, round trips, bytes, memory."""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from bench.cases import scaling
from bench.clients.endpoint import Endpoint
from bench.contention import PAIRS, Service, world_with_pool
from bench.contention import cases as contention_cases
from bench.measuring.loading import bytes_each, first_answer
from bench.measuring.row import Row
from bench.scale.coefficients import Coefficients, Cost, Rate
from tests import peer
from tests.clouds import World
from tests.clouds.bulk import write_world
from tests.databases import server_of
from tests.delay import Traffic, Watched, watched

_CLIENTS = 16
_LIMIT = 1000
_MOST_STEPS = 1_000_000
_MILLISECONDS = 1000.0
_WORKERS = (1, 2, 4, 8)
_MORE_WORKERS = 3
_CONNECTIONS_EACH = 8
_QUESTIONS_EACH = 40


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes:
        operations: Searches, and claims, whose CPU time is taken.
        seconds: Of each rate.
        copies: Of ten thousand providers, for memory and the time of loading.
    """

    operations: int = 500
    seconds: float = 5.0
    copies: int = 100


@dataclass(frozen=True, slots=True)
class _Spent:
    """What has been spent so far: seconds of CPU, and what went to the database."""

    api: float
    database: float
    client: float
    traffic: Traffic


class _Running:
    """A service on a database behind a counting proxy."""

    def __init__(self, url: str, process: psutil.Process, database: Watched, kind: str) -> None:
        self.endpoint = Endpoint("treeclaim", url)
        self.url = url
        self.process = process
        self._database = database
        self._database_process = _process_of(kind)

    def cost(self, step: Callable[[], object], count: int) -> Cost:
        """Return what one of some steps costs."""
        step()
        before = self._spent()
        for _ in range(count):
            step()
        return self._difference(before, count)

    def cost_at_once(self, run: Callable[[], int]) -> Cost:
        """Return what one step costs of those that a function says it has taken."""
        before = self._spent()
        return self._difference(before, max(run(), 1))

    def _spent(self) -> _Spent:
        return _Spent(
            api=_cpu(self.process),
            database=0.0 if self._database_process is None else _cpu(self._database_process),
            client=_cpu_alone(psutil.Process()),
            traffic=self._database.traffic(),
        )

    def _difference(self, before: _Spent, count: int) -> Cost:
        after = self._spent()
        traffic = after.traffic.since(before.traffic)
        return Cost(
            api_ms=(after.api - before.api) / count * _MILLISECONDS,
            database_ms=(after.database - before.database) / count * _MILLISECONDS,
            client_ms=(after.client - before.client) / count * _MILLISECONDS,
            round_trips=traffic.round_trips / count,
            database_bytes=(traffic.sent + traffic.received) / count,
        )


def coefficients(kind: str, sizes: Sizes) -> Coefficients:
    """Measure everything on one kind of database."""
    world = world_with_pool()
    with _running(kind, world, 1) as running:
        endpoint = running.endpoint
        flavors = itertools.count(1)
        hosts = itertools.cycle([host.uuid for host in world.providers[1:]])
        body = endpoint.ask(world.query, _LIMIT).body

        def search() -> None:
            endpoint.ask(world.question(next(flavors)), _LIMIT)

        def claim() -> None:
            endpoint.claim(next(hosts), world.claim)

        def pair() -> None:
            claim()
            search()

        quiet = running.cost(search, sizes.operations)
        begun = time.perf_counter()
        alone = running.cost(claim, sizes.operations)
        latency = (time.perf_counter() - begun) / (sizes.operations + 1) * _MILLISECONDS
        both = running.cost(pair, sizes.operations)
        grouped = running.cost_at_once(lambda: _claims_at_once(running, world, sizes.seconds))
    held = _memory(kind, sizes.copies)
    return Coefficients(
        database=kind,
        search=_with_answer(quiet, len(body)),
        search_after_claim=_with_answer(_minus(both, alone), len(body)),
        claim=alone,
        grouped_claim=grouped,
        commit_ms=max(latency - alone.api_ms - alone.database_ms - alone.client_ms, 0.0),
        provider_bytes=held.provider,
        copied_bytes=held.copied,
        worker_bytes=held.worker,
        service_bytes=held.service,
        load_seconds=held.load_seconds,
        rates=tuple(_rate(kind, world, workers, sizes.seconds) for workers in _WORKERS),
        cores=os.cpu_count() or 1,
    )


def _claims_at_once(running: _Running, world: World, seconds: float) -> int:
    step = contention_cases(world)[f"claims on {len(world.providers) - 1} hosts"]
    turn = Service("treeclaim", running.url).turn(step, _CLIENTS, _MOST_STEPS, seconds)
    # Each client has warmed up by one that is not counted there, but was paid for.
    return turn.statuses.total() + _CLIENTS


def _rate(kind: str, world: World, workers: int, seconds: float) -> Rate:
    step = contention_cases(world)[PAIRS]
    with _running(kind, world, workers) as running:
        service = Service("treeclaim", running.url)
        turn = service.turn(step, _CLIENTS, _MOST_STEPS, seconds)
    return Rate(workers, turn.completed_per_second)


@dataclass(frozen=True, slots=True)
class _Memory:
    """What a service holds, in bytes, and how long it takes to load a million providers.

    Attributes:
        service: Beside the workers, and what all share without providers.
        worker: Each worker without providers.
        provider: For each provider, all workers together.
        copied: For each provider, each worker beyond the first.
        load_seconds: Of a million providers.
    """

    service: float
    worker: float
    provider: float
    copied: float
    load_seconds: float


def _memory(kind: str, copies: int) -> _Memory:
    """Measure a small and a large world, each held by one worker and by some more."""
    (small, many_small), (large, many_large) = (
        (_loaded(kind, size), _loaded(kind, size, _MORE_WORKERS)) for size in (1, copies)
    )
    worker = _each_more(small, many_small)
    more_providers = max((large.providers or 0) - (small.providers or 0), 1)
    more_seconds = ((large.median_ms or 0) - (small.median_ms or 0)) / _MILLISECONDS
    provider = bytes_each(large, small) or 0.0
    return _Memory(
        service=(small.resident_bytes or 0) - worker - provider * (small.providers or 0),
        worker=worker,
        provider=provider,
        copied=max((_each_more(large, many_large) - worker) / more_providers, 0.0),
        load_seconds=more_seconds / more_providers * 1e6,
    )


def _each_more(one: Row, many: Row) -> float:
    """Return the memory of each worker beyond the first."""
    return ((many.resident_bytes or 0) - (one.resident_bytes or 0)) / (_MORE_WORKERS - 1)


def _loaded(kind: str, copies: int, workers: int = 1) -> Row:
    """Return the time of the first answer, and the memory when all workers have answered."""
    world = scaling(1_429, copies)
    with _running(kind, world, workers) as running:
        row = first_answer(running.endpoint, running.process, world)
        with ThreadPoolExecutor(workers * _CONNECTIONS_EACH) as clients:
            questions = (world.question(number) for number in range(workers * _QUESTIONS_EACH))
            list(clients.map(lambda question: running.endpoint.ask(question, _LIMIT), questions))
        return replace(row, resident_bytes=peer.memory_of(running.process))


@contextmanager
def _running(kind: str, world: World, workers: int) -> Iterator[_Running]:
    with peer.new_folder() as name:
        folder = Path(name)
        with server_of(kind).database(folder) as url:
            write_world(url, world)
            with (
                watched(url) as database,
                peer.treeclaim_on(database.url, folder, workers) as (address, process),
            ):
                yield _Running(address, process, database, kind)


def _process_of(kind: str) -> psutil.Process | None:
    """Return the process of a database's server, None where there is none."""
    process = getattr(server_of(kind), "process", None)
    return None if process is None else psutil.Process(process.pid)


def _cpu(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and its children, those that have ended too."""
    family = [process, *process.children(recursive=True)]
    return sum(_cpu_alone(member) for member in family) + process.cpu_times().children_user


def _cpu_alone(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _minus(both: Cost, other: Cost) -> Cost:
    return Cost(
        api_ms=max(both.api_ms - other.api_ms, 0.0),
        database_ms=max(both.database_ms - other.database_ms, 0.0),
        client_ms=max(both.client_ms - other.client_ms, 0.0),
        round_trips=max(both.round_trips - other.round_trips, 0.0),
        database_bytes=max(both.database_bytes - other.database_bytes, 0.0),
    )


def _with_answer(cost: Cost, answer_bytes: int) -> Cost:
    return replace(cost, answer_bytes=answer_bytes)
