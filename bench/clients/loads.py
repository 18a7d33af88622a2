# SPDX-License-Identifier: Apache-2.0
"""Loads: steps that clients run in turn, concurrently or at a fixed rate."""

import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from bench.clients.endpoint import Endpoint
from tests.clouds import World

_TIMEOUT = 600.0

_SWITCH_SECONDS = 0.0005
"""Seconds for which a thread of a client at a fixed rate may hold the interpreter; Python's default is 5 ms."""

_HEAD_START = 0.2
"""Seconds until the first request of a fixed rate is due: all threads have started by then."""

_KEY = b'"allocations"'
"""Precedes the allocations of each candidate, and occurs nowhere else in an answer."""

Step = Callable[[int], bool]
"""Runs the n-th step; returns whether it succeeded."""


def per_second(step: Step, clients: int, steps: int, seconds: float) -> float:
    """Run steps in concurrent clients until the steps or the seconds are used up.

    Each client warms up with one step that is not counted.

    Returns:
        Completed steps per second.
    """
    begin = threading.Barrier(clients + 1, timeout=_TIMEOUT)
    numbers = iter(range(steps))
    lock = threading.Lock()

    def work(warm_up: int) -> int:
        step(warm_up)
        begin.wait()
        completed = 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            completed += step(number)
        return completed

    with ThreadPoolExecutor(clients) as pool:
        working_clients = [pool.submit(work, number) for number in range(clients)]
        begin.wait()
        start = time.perf_counter()
        completed = sum(client.result() for client in working_clients)
        return completed / (time.perf_counter() - start)


def at_fixed_rates(
    streams: Sequence[tuple[Step, float]], seconds: float, clients: int = 16
) -> list[list[float]]:
    """Send requests at fixed rates, whether or not earlier requests were answered: an open loop.

    In a closed loop, a client that waits for each answer sends fewer requests while the service is slow. It
    underestimates the latency that independent clients see.

    Args:
        streams: Requests, each with its rate a second.
        seconds: Duration of the arrivals.
        clients: Threads of each stream: as many of its requests can be under way at once.

    Returns:
        For each stream, the seconds from when each request was due to the end of its answer.
    """

    def work(step: Step, rate: float, numbers: Iterator[int], lock: threading.Lock) -> list[float]:
        latencies: list[float] = []
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return latencies
            due_time = begin + number / rate
            time.sleep(max(due_time - time.perf_counter(), 0))
            step(number)
            latencies.append(time.perf_counter() - due_time)

    begin = time.perf_counter() + _HEAD_START
    former_interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(clients * len(streams)) as pool:
            running_futures = []
            for step, rate in streams:
                shared_arguments = iter(range(int(seconds * rate))), threading.Lock()
                running_futures.append(
                    [pool.submit(work, step, rate, *shared_arguments) for _ in range(clients)]
                )
            return [
                [duration for future in futures for duration in future.result()]
                for futures in running_futures
            ]
    finally:
        sys.setswitchinterval(former_interval)


@contextmanager
def in_background(step: Step) -> Iterator[None]:
    """Run steps without a pause in a thread while the block runs."""
    stop = threading.Event()

    def work() -> None:
        for number in itertools.takewhile(lambda _: not stop.is_set(), itertools.count()):
            step(number)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def hosts_of(world: World) -> list[str]:
    """Return the uuids of the providers that have the classes of the world's claim."""
    return [
        provider.uuid
        for provider in world.providers
        if world.claim.keys() <= provider.inventories.keys()
    ]


def claims(endpoint: Endpoint, world: World) -> Step:
    """Return a step that claims from one host after the other."""
    hosts = hosts_of(world)
    return lambda number: endpoint.claim(hosts[number % len(hosts)], world.claim)


def pairs(endpoint: Endpoint, world: World) -> Step:
    """Return a step that searches and claims one of the candidates, as a scheduler does."""
    dice = random.Random(9)

    def step(_: int) -> bool:
        body = endpoint.ask(world.query, 1000).body
        return endpoint.take({"allocations": draw_candidate(body, dice)})

    return step


def refreshes(endpoint: Endpoint, world: World) -> Step:
    """Return a step that reads an unchanged host's tree, as its compute agent does every few minutes."""
    trees: dict[str, list[str]] = {}
    root = ""
    for member in world.providers:
        root = member.uuid if member.parent is None else root
        trees.setdefault(root, []).append(member.uuid)
    roots = list(trees)

    def step(number: int) -> bool:
        root = roots[number % len(roots)]
        endpoint.get(f"/resource_providers?in_tree={root}")
        for provider in trees[root]:
            for part in ("inventories", "traits", "aggregates"):
                endpoint.get(f"/resource_providers/{provider}/{part}")
        endpoint.get(f"/resource_providers/{root}/allocations")
        return True

    return step


READS = {
    "list of all providers": "/resource_providers",
    "list by name": "/resource_providers?name={0.name}",
    "show provider": "/resource_providers/{0.uuid}",
    "inventories": "/resource_providers/{0.uuid}/inventories",
    "usages": "/resource_providers/{0.uuid}/usages",
    "allocations": "/resource_providers/{0.uuid}/allocations",
}
"""Reads by people and dashboards: paths for a provider."""


def reads(endpoint: Endpoint, world: World, path: str) -> Step:
    """Return a step that reads a path of `READS` for one provider after the other."""

    def step(number: int) -> bool:
        endpoint.get(path.format(world.providers[number % len(world.providers)]))
        return True

    return step


def draw_candidate(answer: bytes, dice: random.Random) -> dict[str, Any]:
    """Return the allocations of a random candidate, without parsing the others.

    Parsing whole answers took three times the CPU time of the service, which shares the cores. All candidates are
    about equally likely.

    Raises:
        ValueError: if the answer has no candidate.
    """
    last_offset = answer.rfind(_KEY)
    if last_offset < 0:
        raise ValueError("no candidate is left")
    # Candidates are about equally long, so a random offset draws each about equally often.
    begin = answer.index(_KEY, dice.randint(0, last_offset)) + len(_KEY)
    end = answer.find(_KEY, begin)
    text = answer[begin : end if end >= 0 else None].decode().lstrip().removeprefix(":").lstrip()
    allocations: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
    return allocations
