# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.large`: what grows where there are many classes, aggregates, or providers.

Each operation is called in this process, at one size and at ten times that. Beside its CPU time is the
longest turn that anybody had at the Forest while another client asked all the time.

`served` asks a service with a million providers over HTTP, and tells how long others waited meanwhile.
"""

import argparse
import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.cases import scaling
from bench.clients.endpoint import median
from bench.clients.loads import in_background
from bench.measured import commit
from bench.measuring import served
from tests import peer
from tests.api.raw import send
from tests.clouds import World
from tests.clouds.bulk import write_world
from tests.clouds.large import many_aggregates, many_classes, one_tree
from tests.databases import KINDS
from tests.service import services_on_database

_SEND: Callable[..., Any] = send
_VERSION = "1.39, treeclaim latest"
_TIMES = 5
_TRAIT = "HW_CPU_X86_AVX2"
_EVERYTHING = "limit=1000&include=inventories,usages,traits,aggregates"

WORLDS: Mapping[str, Sequence[Callable[[], World]]] = {
    "classes": [partial(many_classes, count) for count in (500, 5_000)],
    "aggregates": [partial(many_aggregates, count) for count in (10_000, 100_000)],
    "tree": [partial(one_tree, count) for count in (1_000, 10_000)],
    "providers": [partial(scaling, 1_429, copies) for copies in (10, 100)],
}
"""Worlds of each kind: one, and another that is ten times as large."""

_SERVED = "served"

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Measured:
    """What an operation took.

    Attributes:
        cpu_ms: Median, of this process.
        hold_ms: Longest turn at the Forest beside a client that asks all the time.
    """

    cpu_ms: float
    hold_ms: float


class Cloud:
    """A service in this process, and what is asked of it."""

    def __init__(self, world: World, application: Any) -> None:
        self._world = world
        self._application = application
        self._numbers = itertools.count(1)
        self.hosts = [one.uuid for one in world.providers if "VCPU" in one.inventories]
        self.all = [one.uuid for one in world.providers]

    def ask(self, method: str, path: str, query: str = "", body: object = None) -> bytes:
        """Send a request, which is answered as it asks for."""
        content = None if body is None else json.dumps(body).encode()
        answer = _SEND(
            self._application, method, path, query=query.encode(), body=content, version=_VERSION
        )
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status} {answer.body!r}")
        return bytes(answer.body)

    def get(self, path: str, query: str = "") -> Call:
        """Return what reads something."""
        return lambda: self.ask("GET", path, query)

    def search(self) -> None:
        """Search for a flavor that nobody has asked for."""
        query = self._world.question(next(self._numbers))
        self.ask("GET", "/allocation_candidates", f"{query}&limit=1000")

    def claim(self) -> None:
        """Claim from a host."""
        host = self.hosts[next(self._numbers) * 31 % len(self.hosts)]
        owner = {"project_id": "bench", "user_id": "bench", "consumer_type": "INSTANCE"}
        allocations = {host: {"resources": {"VCPU": 1}}}
        body = {"allocations": allocations, "consumer_generation": None} | owner
        self.ask("PUT", f"/allocations/{uuid.uuid4()}", body=body)

    def change(self, provider: str | None = None) -> None:
        """Give a provider another trait, so that its tree has another shape."""
        some = self.all[next(self._numbers) * 17 % len(self.all)]
        path = f"/resource_providers/{provider or some}/traits"
        known = json.loads(self.ask("GET", path))
        self.ask("PUT", path, body=known | {"traits": list({*known["traits"]} ^ {_TRAIT})})

    def name(self) -> None:
        """Make a new resource class."""
        self.ask("PUT", f"/resource_classes/CUSTOM_NEW_{next(self._numbers)}")


def operations(cloud: Cloud) -> Iterator[tuple[str, Call, Call]]:
    """Yield names of operations, what is done before, and what is measured."""
    some, last = cloud.all[len(cloud.all) // 2], cloud.all[-1]
    nothing: Call = lambda: None  # noqa: E731
    yield "search, new flavor", nothing, cloud.search
    yield "search after a claim", cloud.claim, cloud.search
    yield "search after a change of a trait", cloud.change, cloud.search
    yield "search after one of the last provider", partial(cloud.change, last), cloud.search
    yield "search after a new class", cloud.name, cloud.search
    yield (
        "a page of a thousand with everything",
        cloud.claim,
        cloud.get("/treeclaim/providers", _EVERYTHING),
    )
    in_tree = f"in_tree={some}"
    yield "list of a tree", cloud.claim, cloud.get("/resource_providers", in_tree)
    page = f"{in_tree}&{_EVERYTHING}"
    yield "page of a tree with everything", cloud.claim, cloud.get("/treeclaim/providers", page)
    yield "list of a name", cloud.claim, cloud.get("/treeclaim/providers", "name=nobody")
    yield "totals", cloud.claim, cloud.get("/treeclaim/totals")
    for by in ("tree", "aggregate"):
        query = f"by={by}&limit=1000"
        yield f"totals by {by}", cloud.claim, cloud.get("/treeclaim/totals", query)
    explain = cloud.get("/allocation_candidates/explain", "resources=VCPU:1000")
    yield "explain", cloud.claim, explain


def measured(world: World) -> dict[str, Measured]:
    """Measure all operations in a world."""
    with peer.new_folder() as name:
        url = f"sqlite:///{name}/placement.db"
        write_world(url, world)
        limits = {"treeclaim.search_seconds": 600.0}
        with services_on_database(url, Path(name), **limits) as (services, application):
            cloud = Cloud(world, application)
            cloud.search()
            cloud.ask("GET", "/treeclaim/providers", _EVERYTHING)
            turn = services.replica.turn
            beside = cloud.get(f"/resource_providers/{cloud.all[0]}")
            return {
                name: Measured(_cpu(before, call), _hold(turn, beside, before, call))
                for name, before, call in operations(cloud)
            }


def _cpu(before: Call, call: Call) -> float:
    taken = []
    for _ in range(_TIMES):
        before()
        begin = time.process_time()
        call()
        taken.append(time.process_time() - begin)
    return 1000 * median(taken)


def _hold(turn: Any, beside: Call, before: Call, call: Call) -> float:
    """Return the median of the longest turns of some calls."""
    longest = []
    with in_background(lambda _: beside() is not None):
        for _ in range(_TIMES):
            turn.longest = 0.0
            before()
            call()
            longest.append(turn.longest)
    return 1000 * median(longest)


def table(found: Mapping[str, Sequence[dict[str, Measured]]]) -> Iterator[str]:
    """Yield the lines of a table of what was measured in the two worlds of each kind."""
    yield "".join(["| |", *(f" {kind}: CPU, ms | turn, ms |" for kind in found)])
    yield "| --- |" + " ---: | ---: |" * len(found)
    for name in next(iter(found.values()))[0]:
        cells = [
            f" {few[name].cpu_ms:.1f}; {many[name].cpu_ms:.1f} |"
            f" {few[name].hold_ms:.1f}; {many[name].hold_ms:.1f} |"
            for few, many in found.values()
        ]
        yield "".join([f"| {name} |", *cells])


def main() -> None:
    """Measure the kinds of worlds that are asked for, and print a table, or two."""
    parser = argparse.ArgumentParser(prog="python -m bench.large", description=__doc__)
    kinds = [*WORLDS, _SERVED]
    parser.add_argument("kinds", nargs="*", default=kinds, metavar="KIND", help=", ".join(kinds))
    parser.add_argument("--database", choices=KINDS, default=KINDS[0], help=f"of {_SERVED}")
    parser.add_argument("--copies", type=int, default=100, help="of ten thousand providers there")
    options = parser.parse_args()
    found = {
        kind: [measured(make()) for make in WORLDS[kind]]
        for kind in options.kinds
        if kind != _SERVED
    }
    if found:
        print("\n".join(table(found)))
    if _SERVED in options.kinds:
        world = scaling(1_429, options.copies)
        print(f"{world.size:,} providers on {options.database}, commit {commit()}:\n")
        for line in served.table(served.measured(world, options.database)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
