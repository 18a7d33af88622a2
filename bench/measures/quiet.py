# SPDX-License-Identifier: Apache-2.0
"""Searches, loads and reads without other writers."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import orjson

from bench.clients import loads
from bench.clients.endpoint import Endpoint, median, median_ms
from bench.rows import RATE, Row
from bench.services import Extent
from tests.clouds import World

_IN_A_ROW = 10
"""Searches of an endpoint in one turn."""

_LEAST_ANSWERS = 3
"""Searches after which a measurement ends once its time is used up."""

_LARGEST_READ = 50_000_000
"""Bytes of the largest answer whose serialization is timed."""

_QUESTIONS = 100_000


def searches(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Time a world's query with each of its limits.

    One row repeats the same query, as a scheduler does for one flavor. The row "new questions" changes the amounts
    each time, so that no answer is cached.
    """
    for limit in world.limits:
        case = f"{world.name}, " + ("no limit" if limit is None else f"limit={limit}")
        bodies = {endpoint.name: endpoint.ask(world.query, limit).body for endpoint in endpoints}
        _require_same(case, limit, list(bodies.values()))
        usual_query = lambda _: world.query  # noqa: E731
        yield from _time_queries(
            case, endpoints, extent, bodies, question=usual_query, limit=limit
        )
        if world.has_questions:
            new_case = f"{case}, new questions"
            yield from _time_queries(
                new_case, endpoints, extent, bodies, question=world.question, limit=limit
            )


def _time_queries(
    case: str,
    endpoints: Sequence[Endpoint],
    extent: Extent,
    bodies: dict[str, bytes],
    *,
    question: Callable[[int], str],
    limit: int | None,
) -> Iterator[Row]:
    seconds: dict[str, list[float]] = {endpoint.name: [] for endpoint in endpoints}
    numbers = {endpoint.name: itertools.count(1) for endpoint in endpoints}
    for _ in range(extent.rounds):
        for endpoint in endpoints:
            durations = seconds[endpoint.name]
            for _ in range(_IN_A_ROW):
                if sum(durations) > extent.seconds and len(durations) >= _LEAST_ANSWERS:
                    break
                query = question(next(numbers[endpoint.name]) % _QUESTIONS)
                durations.append(endpoint.ask(query, limit).seconds)
    for name, durations in seconds.items():
        body = bodies[name]
        base = None if len(body) > _LARGEST_READ else orjson_ms(orjson.loads(body))
        yield Row(case, name, 1000 * median(durations), base=base)


def orjson_ms(document: object) -> float:
    """Return the milliseconds that `orjson.dumps` takes for a document."""
    return median_ms(lambda: orjson.dumps(document), 5)


def _require_same(case: str, limit: int | None, bodies: Sequence[bytes]) -> None:
    """Exit unless all endpoints return the same candidates, or under a limit equally many."""
    if len(bodies) == 1:
        return
    candidate_lists = [orjson.loads(body)["allocation_requests"] for body in bodies]
    if len({len(candidates) for candidates in candidate_lists}) > 1 or (
        limit is None
        and len({tuple(sorted(map(_canonical, candidates))) for candidates in candidate_lists}) > 1
    ):
        raise SystemExit(f"{case}: the endpoints do not give the same candidates")


def _canonical(candidate: dict[str, Any]) -> bytes:
    """Serialize a candidate so that equal candidates have equal bytes; the order of providers is irrelevant."""
    mappings = {suffix: sorted(uuids) for suffix, uuids in candidate["mappings"].items()}
    return orjson.dumps(candidate | {"mappings": mappings}, option=orjson.OPT_SORT_KEYS)


def explain(world: World, endpoints: Sequence[Endpoint], _: Extent) -> Iterator[Row]:
    """Explain ten requests that no provider can serve, each with another amount."""
    path = "/allocation_candidates/explain?nearest=50&resources=VCPU:{}"
    for endpoint in endpoints:
        if endpoint.has_extension:
            extended_endpoint, numbers = endpoint.extended(), itertools.count(100_000)
            milliseconds = median_ms(lambda: extended_endpoint.get(path.format(next(numbers))), 10)  # noqa: B023
            yield Row(f"{world.name}: explain", endpoint.name, milliseconds)


def work(world: World, endpoints: Sequence[Endpoint], extent: Extent) -> Iterator[Row]:
    """Measure the rates of clients that claim, search and claim, refresh, and read."""
    first_uuid = world.providers[0].uuid
    steps: dict[str, tuple[int, Callable[[Endpoint], loads.Step]]] = {}
    if world.claim:
        steps = {
            "claims, 1 client": (1, lambda endpoint: loads.claims(endpoint, world)),
            "claims, 16 clients": (16, lambda endpoint: loads.claims(endpoint, world)),
            "claims on one provider, 16 clients": (
                16,
                lambda endpoint: lambda _: endpoint.claim(first_uuid, world.claim),
            ),
            "search and claim, 16 clients": (16, lambda endpoint: loads.pairs(endpoint, world)),
        }
    steps["refreshes of a host"] = (1, lambda endpoint: loads.refreshes(endpoint, world))
    for name, path in loads.READS.items():
        steps[name] = (1, partial(loads.reads, world=world, path=path))
    for name, (clients, make) in steps.items():
        for endpoint in endpoints:
            rate = loads.per_second(make(endpoint), clients, extent.steps, extent.seconds)
            yield Row(f"{world.name}: {name}", endpoint.name, rate, RATE)


def searches_beside_claims(
    world: World, endpoints: Sequence[Endpoint], _: Extent
) -> Iterator[Row]:
    """Time searches while another client claims as fast as it can."""
    for endpoint in endpoints:
        with loads.in_background(loads.claims(endpoint, world)):
            seconds = [endpoint.ask(world.query, 10).seconds for _ in range(5 * _IN_A_ROW)]
        case = f"{world.name}: limit=10 while one client claims"
        yield Row(case, endpoint.name, 1000 * median(seconds))
