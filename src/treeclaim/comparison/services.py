# SPDX-License-Identifier: Apache-2.0
"""Sends the same reads to two services, and collects the differences."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from treeclaim.client import Client
from treeclaim.client.session import encode_query, run_parallel
from treeclaim.comparison.comparison import (
    PRESENT,
    ReadRequest,
    Response,
    ResponsePair,
    describe_differences,
)
from treeclaim.comparison.known_differences import find_known_difference

_THREADS = 4
"""Concurrent requests to each service."""

_LONGEST_EXAMPLE = 1_000

_MOST_CONSUMERS = 10_000
"""Most consumers that a sweep reads."""

_CANDIDATES = 100
"""Providers from whose inventories a sweep makes queries for candidates."""


@dataclass(slots=True)
class ServiceComparison:
    """The comparison of two services.

    Attributes:
        equal_count: Number of reads with equal responses.
        unsettled_count: Number of reads with different responses at first, and equal ones when repeated.
        known_differences: Counts of known differences by number.
        unknown_differences: Counts of unknown differences by kind.
        examples: Text of the first difference of each kind.
    """

    equal_count: int = 0
    unsettled_count: int = 0
    known_differences: Counter[int] = field(default_factory=Counter)
    unknown_differences: Counter[tuple[str, ...]] = field(default_factory=Counter)
    examples: dict[tuple[str, ...], str] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        """Return the comparison as a JSON document."""
        return {
            "equal": self.equal_count,
            "unsettled": self.unsettled_count,
            "known": {str(number): count for number, count in self.known_differences.items()},
            "different": [
                {"kind": list(kind), "count": count, "example": self.examples[kind]}
                for kind, count in self.unknown_differences.most_common()
            ],
        }

    def add(self, exchange: ResponsePair) -> None:
        """Count a pair of different responses."""
        if (number := find_known_difference(exchange)) is not None:
            self.known_differences[number] += 1
            return
        kind = exchange.signature
        self.unknown_differences[kind] += 1
        example = f"{exchange.request.path}: {'; '.join(describe_differences(exchange).values())}"
        self.examples.setdefault(kind, example[:_LONGEST_EXAMPLE])


def compare_services(
    old_client: Client,
    new_client: Client,
    reads: Sequence[ReadRequest],
    progress: Callable[[str, int, int], None],
) -> ServiceComparison:
    """Send reads to two services; repeat a read with different responses once, as clients may write."""
    outcome, lock = ServiceComparison(), Lock()

    def compare(request: ReadRequest) -> None:
        for is_settled in (True, False):
            exchange = ResponsePair(
                request,
                ours=_send_read(new_client, request),
                theirs=_send_read(old_client, request),
            )
            if not describe_differences(exchange):
                with lock:
                    outcome.equal_count += is_settled
                    outcome.unsettled_count += not is_settled
                return
        with lock:
            outcome.add(exchange)

    run_parallel(
        compare, reads, threads=_THREADS, progress=lambda *counts: progress("comparing", *counts)
    )
    return outcome


def _send_read(client: Client, request: ReadRequest) -> Response:
    version = {"OpenStack-API-Version": f"placement {request.version}"}
    answer = client.send("GET", request.path, version)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    text = answer.content.decode("utf-8", "replace")
    try:
        is_json = headers.get("content-type", "").startswith("application/json")
        document = json.loads(text, object_hook=_mask_generations) if is_json else None
    except ValueError:
        document = None
    return Response(answer.status_code, headers, text, document)


def _mask_generations(members: dict[str, Any]) -> dict[str, Any]:
    """Replace generations, which a copy of the data does not preserve, by a placeholder."""
    return {
        name: PRESENT if name.endswith("generation") and value is not None else value
        for name, value in members.items()
    }


def generate_reads(client: Client, version: str) -> Iterator[ReadRequest]:
    """Yield reads of all objects of a service, and queries for candidates of its inventories."""
    for path in ("/", "/resource_providers", "/resource_classes", "/traits"):
        yield ReadRequest(path, version)
    consumers: set[str] = set()
    queries: dict[str, None] = {}
    for number, provider in enumerate(client.providers()):
        path = f"/resource_providers/{provider['uuid']}"
        parts = ("inventories", "usages", "traits", "aggregates", "allocations")
        for part in ("", *(f"/{part}" for part in parts)):
            yield ReadRequest(path + part, version)
        consumers |= client.get(f"{path}/allocations")["allocations"].keys()
        if number < _CANDIDATES:
            amounts = {
                name: stock["min_unit"]
                for name, stock in client.get(f"{path}/inventories")["inventories"].items()
            }
            words = [f"{name}:{minimum}" for name, minimum in sorted(amounts.items())]
            for value in [*words, ",".join(words)] if words else []:
                queries[encode_query({"resources": value}, safe=":,")] = None
            yield ReadRequest(f"/resource_providers?in_tree={provider['uuid']}", version)
    for consumer in sorted(consumers)[:_MOST_CONSUMERS]:
        yield ReadRequest(f"/allocations/{consumer}", version)
    for query in queries:
        yield ReadRequest(f"/allocation_candidates?{query}", version)
