# SPDX-License-Identifier: Apache-2.0
"""Latency of searches while they and claims arrive at fixed rates."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.clients.endpoint import Endpoint, percentile
from bench.clients.open_loop import Arrivals, Stream, run
from bench.measuring.row import Row
from tests.clouds import World

SEARCHES = 200
CLAIMS = 100
"""A second; what is asked of this service."""

_LIMIT = 1000
_FLAVORS = 40
_LADDER = (0.5, 1, 2, 4, 8, 16, 32, 64, 100, SEARCHES)
"""Searches a second at which a peer is tried, one after the other, with half as many claims."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of searches and claims.

    Attributes:
        searches: How long each took.
        refused: Claims that were not taken, though there is room; the peer's writers get in each
            other's way.
    """

    searches: Arrivals
    refused: int


def at_fixed_rate(world: World, endpoints: Sequence[Endpoint], seconds: float) -> Iterator[Row]:
    """Let searches and claims arrive; the peer gets the highest of some rates that it bears."""
    case = f"{world.name}, searches while claims arrive, open loop"
    ours, *peers = endpoints
    yield _row(case, ours, SEARCHES, arrivals(world, ours, SEARCHES, CLAIMS, seconds))
    for peer in peers:
        rate, outcome = _highest_stable(world, peer, seconds)
        yield _row(case, peer, rate, outcome)


def arrivals(
    world: World, endpoint: Endpoint, searches: float, claims: float, seconds: float
) -> Outcome:
    """Return what became of them; forty flavors take turns, as do the hosts."""
    hosts = [
        provider.uuid
        for provider in world.providers
        if world.claim.keys() <= provider.inventories.keys()
    ]
    number_of_claim = itertools.count()

    def search(number: int) -> None:
        endpoint.ask(world.question(number % _FLAVORS), _LIMIT)

    def claim(_: int) -> None:
        host = hosts[next(number_of_claim) % len(hosts)]
        if not endpoint.claim(host, world.claim):
            refused.append(host)

    refused: list[str] = []
    search(0)
    searched, _ = run((Stream(search, searches), Stream(claim, claims)), seconds)
    return Outcome(searched, len(refused))


def _highest_stable(world: World, endpoint: Endpoint, seconds: float) -> tuple[float, Outcome]:
    best: tuple[float, Outcome] | None = None
    for rate in _LADDER:
        # At a low rate there must be some requests to look at.
        outcome = arrivals(world, endpoint, rate, rate / 2, max(seconds, 4 / rate))
        if best is None or outcome.searches.is_stable:
            best = rate, outcome
        if not outcome.searches.is_stable:
            break
    assert best is not None
    return best


def _row(case: str, endpoint: Endpoint, rate: float, outcome: Outcome) -> Row:
    p50, p95, p99 = (
        percentile(outcome.searches.latencies, share) * 1000 for share in (0.5, 0.95, 0.99)
    )
    return Row(
        case=case,
        endpoint=endpoint.name,
        median_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        per_second=rate,
        refused=outcome.refused,
    )
