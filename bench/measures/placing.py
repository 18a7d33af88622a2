# SPDX-License-Identifier: Apache-2.0
"""Placing, counting and ordered searches of the extension.

openstack-placement is used as Nova uses it: for each consumer a search for at most 1,000 candidates, which the
client weighs, and a claim. A few consumers are measured, and the time is multiplied.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from bench.clients import loads
from bench.clients.endpoint import Endpoint, median, median_ms, percentile
from bench.rows import RATE, Row
from bench.services import Extent
from tests.clouds import World

_CONSUMERS = 1_000
_CLIENTS = 16
_FLAVORS = 50
_MOST_CANDIDATES = 1_000
"""Nova's limit of candidates."""

_SAMPLE = 8
"""Consumers that are placed in the way of Nova."""

_ONE_A_TREE = {"domains": "tree", "max_per_domain": 1}
_FLAVOR = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10"


def nova_places(endpoint: Endpoint, query: str, used_hosts: set[str]) -> bool:
    """Place one consumer as Nova does: search, weigh, claim; return whether it was placed."""
    document = orjson.loads(endpoint.ask(query, _MOST_CANDIDATES).body)
    summaries = document["provider_summaries"]

    def compute_free_share(candidate: Mapping[str, Any]) -> float:
        (host,) = candidate["allocations"]
        parts = summaries[host]["resources"].values()
        return sum(1 - float(part["used"]) / float(part["capacity"]) for part in parts)

    other_requests = (
        candidate
        for candidate in document["allocation_requests"]
        if not used_hosts & set(candidate["allocations"])
    )
    best_candidate = max(other_requests, key=compute_free_share)
    used_hosts.update(best_candidate["allocations"])
    return endpoint.take({"allocations": best_candidate["allocations"]})


def _place_batch(endpoint: Endpoint) -> bool:
    return endpoint.place(f"{_FLAVOR}&order_by=spread", _CONSUMERS, [_ONE_A_TREE])


def place_batches(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Place a batch: one call, beside a search and a claim for each consumer."""
    for endpoint in endpoints:
        if endpoint.has_extension:
            extended_endpoint = endpoint.extended()
            milliseconds = median_ms(
                lambda: _require(_place_batch(extended_endpoint)),  # noqa: B023
                extent.rounds,
            )
        else:
            used_hosts: set[str] = set()

            def step(endpoint: Endpoint = endpoint, used_hosts: set[str] = used_hosts) -> None:
                _require(nova_places(endpoint, _FLAVOR, used_hosts))

            milliseconds = _CONSUMERS * median_ms(step, _SAMPLE)
        yield Row(f"{world.name}: 1,000 placed, spread, 1 a tree", endpoint.name, milliseconds)


def search_meanwhile(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Search while the same worker places batches one after the other."""
    case = f"{world.name}: p99 of searches while 1,000 after 1,000 are placed"
    for endpoint in endpoints:
        extended_endpoint = endpoint.extended()

        def search(number: int, endpoint: Endpoint = extended_endpoint) -> bool:
            return bool(endpoint.ask(world.question(number % 50), 10).body)

        def p99(step: loads.Step = search) -> float:
            (latencies,) = loads.at_fixed_rates([(step, 100.0)], extent.rounds, 4)
            return 1000 * percentile(latencies, 0.99)

        quiet_p99 = p99()
        with loads.in_background(lambda _: _place_batch(extended_endpoint)):  # noqa: B023
            yield Row(case, endpoint.name, p99(), base=quiet_p99)


def place_singly(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Place one consumer a call by many clients, beside bare claims on the same service."""
    for endpoint in endpoints:
        if endpoint.has_extension:
            extended_endpoint = endpoint.extended()
            steps = [
                lambda _: extended_endpoint.place(f"{_FLAVOR}&order_by=spread", 1),  # noqa: B023
                loads.claims(extended_endpoint, world),
            ]
            count = extent.steps
        else:
            steps = [lambda _: nova_places(endpoint, _FLAVOR, set())]  # noqa: B023
            count = 2 * _SAMPLE
        rates: list[list[float]] = [[] for _ in steps]
        for _ in range(extent.rounds if endpoint.has_extension else 1):
            for step, side_rates in zip(steps, rates, strict=True):
                side_rates.append(loads.per_second(step, _CLIENTS, count, 600.0))
        rate, *base = map(median, rates)
        case = f"{world.name}: one placement a call, {_CLIENTS} clients"
        yield Row(case, endpoint.name, rate, RATE, *base)


def search_ordered(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Search the ten best candidates, beside any ten; the peer returns all candidates that Nova would weigh."""
    numbers = itertools.count(1)
    order = "order_by=pack,near:_GPU:_NIC"

    def search(endpoint: Endpoint, parameters: str, limit: int) -> None:
        query = world.query.replace("DISK_GB:10", f"DISK_GB:{10 + next(numbers)}")
        endpoint.ask(query + parameters, limit)

    for endpoint in endpoints:
        base = None
        if endpoint.has_extension:
            extended_endpoint = endpoint.extended()
            search(extended_endpoint, f"&{order}", 10)
            base, milliseconds = (
                median_ms(partial(search, extended_endpoint, parameters, 10), 10 * extent.rounds)
                for parameters in ("", f"&{order}")
            )
        else:
            milliseconds = median_ms(partial(search, endpoint, "", _MOST_CANDIDATES), 1)
        yield Row(f"{world.name}: {order}, limit=10", endpoint.name, milliseconds, base=base)


def count_capacity(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Count how many consumers of 50 flavors fit after each claim; the peer needs a search for each flavor."""
    flavors = [
        f"resources_NODE=VCPU:{1 + number % 10},MEMORY_MB:{1024 * (1 + number // 5)}"
        for number in range(_FLAVORS)
    ]
    body = {"requests": {str(number): query for number, query in enumerate(flavors)}}
    nodes = [provider.uuid for provider in world.providers if "VCPU" in provider.inventories]
    dice = random.Random(5)
    for endpoint in endpoints:
        if endpoint.has_extension:
            extended_endpoint = endpoint.extended()
            seconds = []
            for _ in range(5 * extent.rounds):
                _require(extended_endpoint.claim(dice.choice(nodes), {"VCPU": 1}))
                count = median_ms(
                    partial(extended_endpoint.send, "POST", "/treeclaim/capacity", body), 1
                )
                seconds.append(count)
            duration = median(seconds)
        else:
            duration = _FLAVORS * median_ms(partial(endpoint.ask, flavors[0], None), 1)
        yield Row(f"{world.name}: capacity of 50 flavors after a claim", endpoint.name, duration)


def _require(is_placed: object) -> None:
    if not is_placed:
        raise SystemExit("a consumer was not placed")
