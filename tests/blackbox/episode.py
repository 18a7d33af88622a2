# SPDX-License-Identifier: Apache-2.0
"""The life of a world, from planting to its end, on both endpoints."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.blackbox import differences, reads, worlds, writes
from tests.blackbox.endpoint import Endpoint
from tests.blackbox.pools import Pool
from tests.blackbox.requests import (
    Body,
    ConsumerGeneration,
    Open,
    ProviderGeneration,
    Request,
    filled,
)
from treeclaim.comparison.comparison import Difference, ResponsePair

WRONG_GENERATION = 4711
OK = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference that nothing explains, and the writes that went before it."""

    history: tuple[Request, ...]
    exchange: ResponsePair
    differences: tuple[Difference, ...]


def _ids() -> Iterator[str]:
    """Ids that nobody has used, also not an earlier run with the same seed."""
    while True:
        yield str(uuid.uuid4())


@dataclass(slots=True)
class Sides:
    """Both endpoints. What a request leaves open is looked up at theirs."""

    ours: Endpoint
    theirs: Endpoint
    once: Iterator[str] = field(default_factory=_ids)

    def clear(self) -> None:
        """Empty both endpoints."""
        self.ours.clear()
        self.theirs.clear()

    def exchange(self, request: Request) -> ResponsePair:
        """Send one request to both."""
        request = self._without_leftovers(request)
        body = filled(request.body, self._fill)
        request = replace(request, body=body)
        return ResponsePair(
            request, self.ours.send(request, body), self.theirs.send(request, body)
        )

    def _fill(self, place: Open) -> int | None:
        match place:
            case ProviderGeneration(provider, offset):
                answer = self.theirs.get(f"/resource_providers/{provider}")
                return offset + (answer["generation"] if answer else 0)
            case ConsumerGeneration(wrong=True):
                return WRONG_GENERATION
            case ConsumerGeneration(consumer):
                return self._consumer_generation(consumer)

    def _consumer_generation(self, consumer: str) -> int | None:
        answer = self.theirs.get(f"/allocations/{consumer}")
        generation: int | None = answer.get("consumer_generation")
        return generation

    def _without_leftovers(self, request: Request) -> Request:
        """Take a consumer that is never used again where theirs would leave a record behind.

        Contract page 70, section 3.3, compatibility note: a new consumer is
        kept, without allocations, when a provider is unknown or nothing is
        allocated; every later answer about it would differ.
        """
        if not _allocates(request):
            return request
        if not self._leaves_record(request):
            return request
        consumer_generation = self._consumer_generation
        fresh = {
            name: next(self.once)
            for name in _consumers(request)
            if consumer_generation(name) is None
        }
        return _renamed(request, fresh)

    def _leaves_record(self, request: Request) -> bool:
        claims = list(_claims(request))
        if any(not allocations for allocations in claims):
            return True
        named = {uuid for allocations in claims for uuid in _providers(allocations)}
        return any(
            self.theirs.get(f"/resource_providers/{uuid}") is None for uuid in sorted(named)
        )


def _allocates(request: Request) -> bool:
    routed = request.route.startswith("/allocations") or request.route == "/reshaper"
    return routed and request.method in {"PUT", "POST"} and isinstance(request.body, dict)


def _consumers(request: Request) -> list[str]:
    if request.method == "PUT":
        return [request.route.removeprefix("/allocations/")]
    body = request.body["allocations"] if request.route == "/reshaper" else request.body
    return [name for name in body if name.count("-")] if isinstance(body, dict) else []


def _claims(request: Request) -> Iterator[Body]:
    if request.method == "PUT":
        yield request.body.get("allocations")
        return
    source = request.body.get("allocations") if request.route == "/reshaper" else request.body
    for entry in source.values() if isinstance(source, dict) else ():
        if isinstance(entry, dict):
            yield entry.get("allocations")


def _providers(allocations: Body) -> list[str]:
    if isinstance(allocations, dict):
        return list(allocations)
    if not isinstance(allocations, list):
        return []
    items = [item for item in allocations if isinstance(item, dict)]
    return [item["resource_provider"]["uuid"] for item in items if "resource_provider" in item]


def _renamed(request: Request, names: dict[str, str]) -> Request:
    """The request with other consumers."""

    def rename(body: Body) -> Body:
        if isinstance(body, ConsumerGeneration):
            return replace(body, consumer=names.get(body.consumer, body.consumer))
        if isinstance(body, dict):
            return {names.get(key, key): rename(value) for key, value in body.items()}
        return body

    path = request.path
    for old, new in names.items():
        path = path.replace(old, new)
    return replace(request, path=path, body=rename(request.body))


def unexplained(exchange: ResponsePair, note: Callable[[str], None]) -> list[Difference]:
    """The differences of an exchange, unless they are known; `note` hears of those by name."""
    result = differences.differences(exchange)
    known = differences.recognised(exchange) if result else None
    if known is not None:
        note(known.name)
        return []
    return result


@dataclass(slots=True)
class Episode:
    """A random world that is planted, then read and written in turns.

    `note` hears of known differences and `count` of every request, by "reads" or "writes".
    """

    sides: Sides
    random: Random
    note: Callable[[str], None]
    count: Callable[[str], None]

    def run(self, write_count: int, reads_for_each: int) -> Iterator[Finding]:
        """Yield what differs; a world ends with a write whose answers differ."""
        self.sides.clear()
        pool = Pool(self.random)
        history: list[Request] = []
        planting = list(worlds.plant(pool))
        changes = (writes.write(pool) for _ in range(max(0, write_count - len(planting))))
        for request in (*planting, *changes):
            exchange = self.sides.exchange(request)
            self.count("writes")
            result = unexplained(exchange, self.note)
            if result:
                yield Finding(tuple(history), replace_request(exchange, request), tuple(result))
                return
            history.append(request)
            for _ in range(reads_for_each):
                yield from self._read(reads.read(pool), history)

    def _read(self, request: Request, history: Sequence[Request]) -> Iterator[Finding]:
        exchange = self.sides.exchange(request)
        self.count("reads")
        result = unexplained(exchange, self.note)
        if exchange.has_limit and not result and exchange.ours.status == OK:
            result = self._limited(exchange)
        if result:
            yield Finding(tuple(history), exchange, tuple(result))

    def _limited(self, exchange: ResponsePair) -> list[Difference]:
        """Check that a limited response has a part of the unlimited one."""
        if exchange.request.route != "/allocation_candidates":
            return []
        parts = [
            part
            for part in exchange.request.path.partition("?")[2].split("&")
            if not part.startswith("limit=")
        ]
        assert isinstance(exchange.request, Request)
        whole = replace(exchange.request, path=f"{exchange.request.route}?{'&'.join(parts)}")
        answer = self.sides.ours.send(whole)
        return differences.outside(exchange.ours, answer)


def replace_request(exchange: ResponsePair, request: Request) -> ResponsePair:
    """The exchange with the request as it was meant, open places and all."""
    return replace(exchange, request=request)
