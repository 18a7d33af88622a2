# SPDX-License-Identifier: Apache-2.0
"""Measures one world at one or two endpoints, in turn, so that a drifting machine hits both."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from bench.endpoint import Endpoint, claims_per_second, median, percentile_95
from bench.worlds import World

_IN_A_ROW = 10
"""Answers that an endpoint gives before it is the other one's turn."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the report.

    Attributes:
        case: World and limit, or kind of load.
        endpoint: Which one.
        median_ms, p95_ms: Latency; None where a rate was measured.
        body_bytes: Length of an answer.
        candidates: In one answer.
        candidates_per_second: At the median latency.
        claims_per_second: Completed claims.
        orjson_ms: What `orjson.dumps` takes for the same body from ready objects.
    """

    case: str
    endpoint: str
    median_ms: float | None = None
    p95_ms: float | None = None
    body_bytes: int | None = None
    candidates: int | None = None
    candidates_per_second: float | None = None
    claims_per_second: float | None = None
    orjson_ms: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the row as it is written to a file."""
        return asdict(self)


def measure_searches(world: World, endpoints: Sequence[Endpoint], rounds: int) -> list[Row]:
    """Ask a world's question with each of its limits."""
    rows = []
    for limit in world.limits:
        case = f"{world.name}, " + ("no limit" if limit is None else f"limit={limit}")
        seconds: dict[str, list[float]] = {one.name: [] for one in endpoints}
        bodies: dict[str, bytes] = {}
        for one in endpoints:
            bodies[one.name] = one.ask(world.query, limit).body
        _require_same(case, limit, bodies)
        for _ in range(rounds):
            for one in endpoints:
                for _ in range(_IN_A_ROW):
                    seconds[one.name].append(one.ask(world.query, limit).seconds)
        rows += [_row(case, one, seconds[one.name], bodies[one.name]) for one in endpoints]
    return rows


def _row(case: str, endpoint: Endpoint, seconds: list[float], body: bytes) -> Row:
    document = orjson.loads(body)
    count = len(document["allocation_requests"])
    middle = median(seconds)
    return Row(
        case=case,
        endpoint=endpoint.name,
        median_ms=middle * 1000,
        p95_ms=percentile_95(seconds) * 1000,
        body_bytes=len(body),
        candidates=count,
        candidates_per_second=count / middle,
        orjson_ms=_orjson_ms(document),
    )


def _orjson_ms(document: object) -> float:
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        orjson.dumps(document)
        seconds.append(time.perf_counter() - start)
    return median(seconds) * 1000


def _require_same(case: str, limit: int | None, bodies: dict[str, bytes]) -> None:
    """Check that all endpoints give the same answer, or under a limit as many candidates."""
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


def measure_claims(world: World, endpoints: Sequence[Endpoint], claims: int) -> list[Row]:
    """Claim from a world's providers, with one client and with sixteen."""
    rows = []
    for clients in (1, 16):
        case = f"claims on {world.name}, {clients} client" + ("s" if clients > 1 else "")
        for one in endpoints:
            rate = claims_per_second(one, world, clients, claims)
            rows.append(Row(case=case, endpoint=one.name, claims_per_second=rate))
    return rows
