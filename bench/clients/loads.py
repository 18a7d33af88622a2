# SPDX-License-Identifier: Apache-2.0
"""Loads: steps that clients take, in turn, at once or at a fixed rate."""

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
"""Seconds until the first request of a fixed rate is due: all threads are there by then."""

_KEY = b'"allocations"'
"""In front of what each candidate takes; nothing else in an answer has this key."""

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


def at_fixed_rates(
    streams: Sequence[tuple[Step, float]], seconds: float, clients: int = 16
) -> list[list[float]]:
    """Let requests arrive at fixed rates, whether or not earlier ones were answered: an open loop.

    A client that waits for one answer before it sends the next request asks less often just when the
    service is slow, and so does not see what others, who do not know of each other, wait.

    Args:
        streams: Requests, each with its rate a second.
        seconds: For how long requests arrive.
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
            due = begin + number / rate
            time.sleep(max(due - time.perf_counter(), 0))
            step(number)
            latencies.append(time.perf_counter() - due)

    begin = time.perf_counter() + _HEAD_START
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(clients * len(streams)) as pool:
            running = []
            for step, rate in streams:
                shared = iter(range(int(seconds * rate))), threading.Lock()
                running.append([pool.submit(work, step, rate, *shared) for _ in range(clients)])
            return [
                [duration for future in futures for duration in future.result()]
                for futures in running
            ]
    finally:
        sys.setswitchinterval(before)


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


def hosts_of(world: World) -> list[str]:
    """Return the uuids of the providers that have the classes of the world's claim."""
    return [
        provider.uuid
        for provider in world.providers
        if world.claim.keys() <= provider.inventories.keys()
    ]


def claims(endpoint: Endpoint, world: World) -> Step:
    """Claim from one host after the other."""
    hosts = hosts_of(world)
    return lambda number: endpoint.claim(hosts[number % len(hosts)], world.claim)


def pairs(endpoint: Endpoint, world: World) -> Step:
    """Search, and claim one of the candidates, as a scheduler does."""
    dice = random.Random(9)

    def step(_: int) -> bool:
        body = endpoint.ask(world.query, 1000).body
        return endpoint.take({"allocations": draw_candidate(body, dice)})

    return step


def refreshes(endpoint: Endpoint, world: World) -> Step:
    """Read a host's tree as its compute agent does every few minutes; nothing has changed."""
    trees: dict[str, list[str]] = {}
    root = ""
    for provider in world.providers:
        root = provider.uuid if provider.parent is None else root
        trees.setdefault(root, []).append(provider.uuid)
    roots = list(trees)

    def step(number: int) -> bool:
        root = roots[number % len(roots)]
        endpoint.get(f"/resource_providers?in_tree={root}")
        for one in trees[root]:
            for part in ("inventories", "traits", "aggregates"):
                endpoint.get(f"/resource_providers/{one}/{part}")
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
"""Reads of people and dashboards: paths for a provider."""


def reads(endpoint: Endpoint, world: World, path: str) -> Step:
    """Read a path of `READS` for one provider after the other."""

    def step(number: int) -> bool:
        endpoint.get(path.format(world.providers[number % len(world.providers)]))
        return True

    return step


def draw_candidate(answer: bytes, dice: random.Random) -> dict[str, Any]:
    """Return what one of the candidates takes, about equally likely each, without parsing the others.

    A client that parsed whole answers needed three times the CPU time of the service, which has the same cores.

    Raises:
        ValueError: if there is none.
    """
    last = answer.rfind(_KEY)
    if last < 0:
        raise ValueError("no candidate is left")
    # Candidates are about equally long, so a place in the text is one among them.
    begin = answer.index(_KEY, dice.randint(0, last)) + len(_KEY)
    end = answer.find(_KEY, begin)
    text = answer[begin : end if end >= 0 else None].decode().lstrip().removeprefix(":").lstrip()
    allocations: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
    return allocations
