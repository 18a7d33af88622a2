# SPDX-License-Identifier: Apache-2.0
"""Loads: what clients do all day, by some clients at a time. Each returns what was completed."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.clients.candidates import drawn
from bench.clients.endpoint import Endpoint
from tests.clouds import World

_TIMEOUT = 600.0

Step = Callable[[int], bool]
"""Takes the n-th step; returns whether it was completed."""


def per_second(step: Step, clients: int, steps: int, seconds: float) -> float:
    """Let clients take steps at once until the steps or the seconds are over.

    Each client warms up by a step that does not count.

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
        working = [pool.submit(work, number) for number in range(clients)]
        begin.wait()
        start = time.perf_counter()
        completed = sum(client.result() for client in working)
        return completed / (time.perf_counter() - start)


def claims(endpoint: Endpoint, world: World, *, first: int = 0) -> Step:
    """Claim from one provider after the other, from the first of these on."""
    providers = [provider.uuid for provider in world.providers[first:]]
    return lambda number: endpoint.claim(providers[number % len(providers)], world.claim)


def claims_on_one(endpoint: Endpoint, world: World) -> Step:
    """Claim from one and the same provider: a pool that all hosts share."""
    return lambda _: endpoint.claim(world.providers[0].uuid, world.claim)


def pairs(endpoint: Endpoint, world: World) -> Step:
    """Search, and claim one of the candidates, as a scheduler does."""
    dice = random.Random(9)

    def step(_: int) -> bool:
        return endpoint.take(drawn(endpoint.ask(world.query, 1000).body, dice))

    return step


def contended(endpoint: Endpoint, world: World) -> dict[str, Step]:
    """Return loads of a world that begins with a pool, by name."""
    pool, hosts = world.providers[0].uuid, len(world.providers) - 1
    return {
        f"claims on {hosts} hosts": claims(endpoint, world, first=1),
        "claims on one pool": lambda _: endpoint.claim(pool, {"DISK_GB": 1}),
        "search and claim": pairs(endpoint, world),
    }


def refreshes(endpoint: Endpoint, world: World) -> Step:
    """Read a host's tree as its compute agent does every few minutes; nothing has changed."""
    roots = [provider.uuid for provider in world.providers if provider.parent is None]
    children: dict[str, list[str]] = {}
    for provider in world.providers:
        if provider.parent is not None:
            children.setdefault(provider.parent, []).append(provider.uuid)

    def step(number: int) -> bool:
        root = roots[number % len(roots)]
        endpoint.get(f"/resource_providers?in_tree={root}")
        for one in (root, *children.get(root, ())):
            for part in ("inventories", "traits", "aggregates"):
                endpoint.get(f"/resource_providers/{one}/{part}")
        endpoint.get(f"/resource_providers/{root}/allocations")
        return True

    return step


def reads(endpoint: Endpoint, world: World) -> dict[str, Step]:
    """Return the reads of people and dashboards, by name."""
    uuids = [provider.uuid for provider in world.providers]

    def of_provider(form: str) -> Step:
        def step(number: int) -> bool:
            endpoint.get(form.format(uuids[number % len(uuids)]))
            return True

        return step

    return {
        "list of all providers": of_provider("/resource_providers"),
        "list by name": lambda number: bool(
            endpoint.get(f"/resource_providers?name={world.providers[number % len(uuids)].name}")
        ),
        "show provider": of_provider("/resource_providers/{}"),
        "inventories": of_provider("/resource_providers/{}/inventories"),
        "usages": of_provider("/resource_providers/{}/usages"),
        "allocations": of_provider("/resource_providers/{}/allocations"),
    }


@contextmanager
def in_background(step: Step) -> Iterator[None]:
    """Take steps without a pause while the block runs."""
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
