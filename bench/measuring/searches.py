# SPDX-License-Identifier: Apache-2.0
"""Measures one world at one or two endpoints, in turn, so that a drifting machine hits both."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import orjson

from bench.clients import loads
from bench.clients.endpoint import Endpoint, median, percentile
from bench.measuring.row import Row
from tests.clouds import World

_IN_A_ROW = 10
"""Answers that an endpoint gives before it is the other one's turn."""

_LEAST_ANSWERS = 3
"""An endpoint that has answered for long enough, and so often, is not asked the same any more."""

_LARGEST_COMPARED = 50_000_000
"""Bytes of answers up to which they are read and compared."""

_QUESTIONS = 100_000


def measure_searches(
    world: World, endpoints: Sequence[Endpoint], most: tuple[int, float]
) -> Iterator[Row]:
    """Ask a world's question with each of its limits, in so many rounds or seconds of answers.

    The same question again and again, as a scheduler asks for one flavor, and a new one each time
    ("new questions"), which nobody can have the answer to ready.
    """
    for limit in world.limits:
        case = f"{world.name}, " + ("no limit" if limit is None else f"limit={limit}")
        bodies = {endpoint.name: endpoint.ask(world.query, limit).body for endpoint in endpoints}
        _require_same(case, limit, bodies)
        yield from _asked(
            case, endpoints, most, bodies, question=lambda _: world.query, limit=limit
        )
        if world.has_questions:
            case += ", new questions"
            yield from _asked(case, endpoints, most, bodies, question=world.question, limit=limit)


def _asked(
    case: str,
    endpoints: Sequence[Endpoint],
    most: tuple[int, float],
    bodies: dict[str, bytes],
    *,
    question: Callable[[int], str],
    limit: int | None,
) -> Iterator[Row]:
    seconds: dict[str, list[float]] = {endpoint.name: [] for endpoint in endpoints}
    numbers = {endpoint.name: itertools.count(1) for endpoint in endpoints}
    rounds, enough = most
    for _ in range(rounds):
        for endpoint in endpoints:
            taken = seconds[endpoint.name]
            for _ in range(_IN_A_ROW):
                if sum(taken) > enough and len(taken) >= _LEAST_ANSWERS:
                    break
                query = question(next(numbers[endpoint.name]) % _QUESTIONS)
                taken.append(endpoint.ask(query, limit).seconds)
    for endpoint in endpoints:
        yield _row(case, endpoint, seconds[endpoint.name], bodies[endpoint.name])


def _row(case: str, endpoint: Endpoint, seconds: list[float], body: bytes) -> Row:
    known: dict[str, Any] = {
        "case": case,
        "endpoint": endpoint.name,
        "median_ms": median(seconds) * 1000,
        "p95_ms": percentile(seconds, 0.95) * 1000,
        "body_bytes": len(body),
    }
    if len(body) > _LARGEST_COMPARED:
        return Row(**known, candidates=body.count(b'{"allocations":'))
    document = orjson.loads(body)
    count = len(document["allocation_requests"])
    return Row(**known, candidates=count, orjson_ms=orjson_ms(document))


def orjson_ms(document: object) -> float:
    """Return the milliseconds that `orjson.dumps` takes for a document."""
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        orjson.dumps(document)
        seconds.append(time.perf_counter() - start)
    return median(seconds) * 1000


def _require_same(case: str, limit: int | None, bodies: dict[str, bytes]) -> None:
    """Check that all endpoints give the same answer, or under a limit as many candidates."""
    if len(bodies) == 1:
        return
    seen = [orjson.loads(body)["allocation_requests"] for body in bodies.values()]
    if limit is None:
        answers = {tuple(sorted(map(_canonical, found))) for found in seen}
    else:
        answers = {(b"%d" % len(found),) for found in seen}
    if len(answers) > 1:
        raise SystemExit(f"{case}: the endpoints do not give the same candidates")


def _canonical(candidate: dict[str, Any]) -> bytes:
    """Write a candidate so that equal ones are equal; the order of providers means nothing."""
    mappings = {suffix: sorted(some) for suffix, some in candidate["mappings"].items()}
    return orjson.dumps(candidate | {"mappings": mappings}, option=orjson.OPT_SORT_KEYS)


def measure_loads(
    world: World, endpoints: Sequence[Endpoint], most: tuple[int, float]
) -> Iterator[Row]:
    """Let clients claim, search and claim, refresh, and read, for so many steps or seconds."""
    steps, enough = most

    def measured(case: str, make: Callable[[Endpoint], loads.Step], clients: int) -> Iterator[Row]:
        for endpoint in endpoints:
            rate = loads.per_second(make(endpoint), clients, steps, enough)
            yield Row(case=f"{world.name}: {case}", endpoint=endpoint.name, per_second=rate)

    if world.claim:
        yield from measured("claims, 1 client", lambda one: loads.claims(one, world), 1)
        yield from measured("claims, 16 clients", lambda one: loads.claims(one, world), 16)
        yield from measured(
            "claims on one provider, 16 clients", lambda one: loads.claims_on_one(one, world), 16
        )
        yield from measured(
            "search and claim, 16 clients", lambda one: loads.pairs(one, world), 16
        )
        yield from _searches_under_claims(world, endpoints)
    yield from measured("refreshes of a host", lambda one: loads.refreshes(one, world), 1)
    for name in loads.reads(endpoints[0], world):
        yield from measured(name, partial(_reading, world, name), 1)


def _reading(world: World, name: str, endpoint: Endpoint) -> loads.Step:
    return loads.reads(endpoint, world)[name]


def _searches_under_claims(world: World, endpoints: Sequence[Endpoint]) -> Iterator[Row]:
    """Time searches while another client claims as fast as it can."""
    for endpoint in endpoints:
        with loads.in_background(loads.claims(endpoint, world)):
            seconds = [endpoint.ask(world.query, 10).seconds for _ in range(5 * _IN_A_ROW)]
        yield Row(
            case=f"{world.name}: limit=10 while one client claims",
            endpoint=endpoint.name,
            median_ms=median(seconds) * 1000,
            p95_ms=percentile(seconds, 0.95) * 1000,
        )
