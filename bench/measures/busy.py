# SPDX-License-Identifier: Apache-2.0
"""The busy cloud: searches right after another client's write.

Each search is for a new flavor. Searches without writes and searches right after the answer to a write take turns.
"""

import itertools
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence

import orjson

from bench.clients import loads
from bench.clients.endpoint import Endpoint, median, percentile
from bench.rows import RATE, Row
from bench.services import Extent
from tests.clouds import World

LIMIT = 1000
"""Nova's default."""

_IN_A_ROW = 10
_LEAST_ANSWERS = 5
_CLIENTS = 16
_MOST_CLAIMS = 100_000
_NEW_FLAVORS = itertools.count(1)

_SEARCHES_A_SECOND = 200
_CLAIMS_A_SECOND = 100
_FLAVORS = 40

Write = Callable[[], None]
"""A write of another client before a search."""


def after_claims(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Time a search right after another client's claim, beside a search without writes."""
    case = f"{world.name}, after a claim, new flavor"
    return _search_after(case, world, endpoints, _claimer, extent)


def after_shapes(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Time a search right after another client has changed the shape of a tree."""
    case = f"{world.name}, after a change of a tree, new flavor"
    return _search_after(case, world, endpoints, _grower, extent)


def _claimer(world: World, endpoint: Endpoint) -> Write:
    """Return a write that claims the next candidate, each in another tree."""
    candidates = orjson.loads(endpoint.ask(world.query, LIMIT).body)["allocation_requests"]
    random.Random(3).shuffle(candidates)
    remaining_candidates = iter(candidates)

    def claim() -> None:
        if not endpoint.take(next(remaining_candidates)):
            raise SystemExit(f"{endpoint.name} refused a claim")

    return claim


def _grower(world: World, endpoint: Endpoint) -> Write:
    """Return a write that alternately adds a provider to a tree and deletes it."""
    roots = itertools.cycle(
        provider.uuid for provider in world.providers if provider.parent is None
    )
    added_uuids: list[str] = []

    def change() -> None:
        if added_uuids:
            endpoint.send("DELETE", f"/resource_providers/{added_uuids.pop()}")
            return
        added_uuids.append(str(uuid.uuid4()))
        body = {
            "name": added_uuids[0],
            "uuid": added_uuids[0],
            "parent_provider_uuid": next(roots),
        }
        endpoint.send("POST", "/resource_providers", body)

    return change


def _search_after(
    case: str,
    world: World,
    endpoints: Sequence[Endpoint],
    writer: Callable[[World, Endpoint], Write],
    extent: Extent,
) -> Iterator[Row]:
    # The writer uses its own connections, as another client would.
    writes = {
        side.name: writer(
            world,
            Endpoint(
                side.name,
                side.url,
                has_extension=side.has_extension,
            ),
        )
        for side in endpoints
    }
    quiet_durations: dict[str, list[float]] = {side.name: [] for side in endpoints}
    busy_durations: dict[str, list[float]] = {side.name: [] for side in endpoints}

    def ask(endpoint: Endpoint, durations: list[float], write: Write | None) -> None:
        for _ in range(_IN_A_ROW):
            if sum(durations) > extent.seconds and len(durations) >= _LEAST_ANSWERS:
                return
            if write is not None:
                write()
            durations.append(endpoint.ask(world.question(next(_NEW_FLAVORS)), LIMIT).seconds)

    for _ in range(extent.rounds):
        for side in endpoints:
            ask(side, quiet_durations[side.name], None)
            ask(side, busy_durations[side.name], writes[side.name])
    for name, seconds in busy_durations.items():
        yield Row(case, name, 1000 * median(seconds), base=1000 * median(quiet_durations[name]))


def one_claim(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Time claims of a single client."""
    for endpoint in endpoints:
        claim = loads.claims(endpoint, world)
        durations = []
        end = time.perf_counter() + extent.seconds
        for number in itertools.count():
            start = time.perf_counter()
            if start > end:
                break
            if not claim(number):
                raise SystemExit(f"{endpoint.name} refused a claim")
            durations.append(time.perf_counter() - start)
        yield Row(f"{world.name}, one claim, one client", endpoint.name, 1000 * median(durations))


def contended(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Measure the rates of sixteen clients that claim, or search and claim, in a world with a pool."""
    pool = world.providers[0].uuid
    steps: dict[str, Callable[[Endpoint], loads.Step]] = {
        "claims on 1000 hosts": lambda endpoint: loads.claims(endpoint, world),
        "claims on one pool": lambda endpoint: lambda _: endpoint.claim(pool, {"DISK_GB": 1}),
        "search and claim": lambda endpoint: loads.pairs(endpoint, world),
    }
    for case, make in steps.items():
        for endpoint in endpoints:
            rate = loads.per_second(make(endpoint), _CLIENTS, _MOST_CLAIMS, extent.seconds)
            yield Row(f"{world.name}, {case}, {_CLIENTS} clients", endpoint.name, rate, RATE)


def open_loop(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Time searches while searches and claims arrive at fixed rates; flavors and hosts rotate."""
    case = f"{world.name}, p99 of {_SEARCHES_A_SECOND} searches and {_CLAIMS_A_SECOND} claims a second"
    for endpoint in endpoints:

        def search(number: int, endpoint: Endpoint = endpoint) -> bool:
            return bool(endpoint.ask(world.question(number % _FLAVORS), LIMIT).body)

        search(0)
        claim = loads.claims(endpoint, world)
        streams = ((search, _SEARCHES_A_SECOND), (claim, _CLAIMS_A_SECOND))
        latencies, _ = loads.at_fixed_rates(streams, 2 * extent.seconds)
        yield Row(case, endpoint.name, 1000 * percentile(latencies, 0.99))
