# SPDX-License-Identifier: Apache-2.0
"""The busy cloud: questions of which nearly every one comes after somebody else's write.

Each question is about a flavor that nobody has asked for before. It is asked when nobody writes
("quiet"), and right after another client's write has been answered, in turn.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence

import orjson

from bench.clients import loads
from bench.clients.endpoint import Endpoint, median, percentile
from bench.measuring.row import Row
from tests.clouds import World

LIMIT = 1000
"""Nova's default."""

_IN_A_ROW = 10
_LEAST_ANSWERS = 5
_CLIENTS = 16
_MOST_CLAIMS = 100_000
_FLAVORS = itertools.count(1)

Write = Callable[[Endpoint], None]
"""The write of the other client before a search."""


def after_claims(
    world: World, endpoints: Sequence[Endpoint], most: tuple[int, float]
) -> Iterator[Row]:
    """Time a question right after another client's claim, and when it is quiet."""
    case = f"{world.name}, after a claim, new flavor"
    yield from _after(case, world, endpoints, _claimer(world, endpoints), most)


def after_shapes(
    world: World, endpoints: Sequence[Endpoint], most: tuple[int, float]
) -> Iterator[Row]:
    """Time a question right after another client has changed the shape of one tree."""
    case = f"{world.name}, after a change of a tree, new flavor"
    yield from _after(case, world, endpoints, _grower(world), most)


def _claimer(world: World, endpoints: Sequence[Endpoint]) -> Write:
    """Return what claims one candidate after the other, each of another tree."""
    body = endpoints[0].ask(world.query, LIMIT).body
    allocation_requests = orjson.loads(body)["allocation_requests"]
    random.Random(3).shuffle(allocation_requests)
    left = {endpoint.name: iter(allocation_requests) for endpoint in endpoints}

    def claim(other: Endpoint) -> None:
        if not other.claim_candidate(next(left[other.name])):
            raise SystemExit(f"{other.name} refused a claim")

    return claim


def _grower(world: World) -> Write:
    """Return what adds a provider to a tree, and takes it away the next time."""
    roots = itertools.cycle(
        [provider.uuid for provider in world.providers if provider.parent is None]
    )
    added: dict[str, str] = {}

    def change(other: Endpoint) -> None:
        if other.name in added:
            other.remove(added.pop(other.name))
        else:
            added[other.name] = other.add_child(next(roots))

    return change


def _after(
    case: str,
    world: World,
    endpoints: Sequence[Endpoint],
    write: Write,
    most: tuple[int, float],
) -> Iterator[Row]:
    """Let each endpoint be asked for so many rounds, or so many seconds of answers."""
    rounds, seconds = most
    quiet: dict[str, list[float]] = {endpoint.name: [] for endpoint in endpoints}
    busy: dict[str, list[float]] = {endpoint.name: [] for endpoint in endpoints}
    others = {endpoint.name: endpoint.another() for endpoint in endpoints}

    def ask(endpoint: Endpoint, taken: list[float], before: Write | None) -> None:
        for _ in range(_IN_A_ROW):
            if sum(taken) > seconds and len(taken) >= _LEAST_ANSWERS:
                return
            if before is not None:
                before(others[endpoint.name])
            taken.append(endpoint.ask(world.question(next(_FLAVORS)), LIMIT).seconds)

    for _ in range(rounds):
        for endpoint in endpoints:
            ask(endpoint, quiet[endpoint.name], None)
            ask(endpoint, busy[endpoint.name], write)
    for endpoint in endpoints:
        yield Row(
            case=case,
            endpoint=endpoint.name,
            median_ms=median(busy[endpoint.name]) * 1000,
            p95_ms=percentile(busy[endpoint.name], 0.95) * 1000,
            quiet_ms=median(quiet[endpoint.name]) * 1000,
        )


def one_claim(world: World, endpoints: Sequence[Endpoint], seconds: float) -> Iterator[Row]:
    """Time claims that one client makes one after the other."""
    hosts = [
        provider.uuid
        for provider in world.providers
        if world.claim.keys() <= provider.inventories.keys()
    ]
    for endpoint in endpoints:
        taken = []
        end = time.perf_counter() + seconds
        for host in itertools.cycle(hosts):
            start = time.perf_counter()
            if start > end:
                break
            if not endpoint.claim(host, world.claim):
                raise SystemExit(f"{endpoint.name} refused a claim")
            taken.append(time.perf_counter() - start)
        yield Row(
            case=f"{world.name}, one claim, one client",
            endpoint=endpoint.name,
            median_ms=median(taken) * 1000,
            p95_ms=percentile(taken, 0.95) * 1000,
            p99_ms=percentile(taken, 0.99) * 1000,
        )


def contended(world: World, endpoints: Sequence[Endpoint], seconds: float) -> Iterator[Row]:
    """Let sixteen clients claim, and search and claim, as fast as they are answered."""
    for case in loads.contended(endpoints[0], world):
        for endpoint in endpoints:
            step = loads.contended(endpoint, world)[case]
            yield Row(
                case=f"{world.name}, {case}, {_CLIENTS} clients",
                endpoint=endpoint.name,
                per_second=loads.per_second(step, _CLIENTS, _MOST_CLAIMS, seconds),
            )
