# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.held`: a cloud with 100,000 holds and 1,000,000 kept requests, and one without.

Both have the same hosts and servers, and are asked in turn.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console

from bench.clients.endpoint import Endpoint, median, percentile
from bench.clients.loads import Step, in_background
from bench.contention import Service
from bench.contention import cases as contention_cases
from bench.measuring import busy_cloud
from bench.measuring.loading import first_answer
from bench.measuring.row import Row
from bench.reporting.report import markdown, show
from tests import peer
from tests.clouds import World, flat
from tests.clouds.bulk import write_world
from tests.clouds.promises import write_promises, write_servers
from tests.databases import KINDS, server_of

WITH, WITHOUT = "with holds", "without"

_VERSION = "placement 1.39, treeclaim latest"
_HOST = {"VCPU": 4_096, "MEMORY_MB": 4_194_304, "DISK_GB": 100_000}
_CLIENTS = 16
_TURNS = 3
_MOST_CLAIMS = 100_000
_ROUNDS = 9
_BESIDE = 100
"""Searches beside somebody who looks at what is held."""

LOOKS = {
    "explain": "/allocation_candidates/explain?resources=VCPU:100000&nearest=50",
    "totals": "/treeclaim/totals",
    "totals by tree": "/treeclaim/totals?by=tree&limit=100",
}
"""What tells how much is held, by name."""


def main() -> int:
    """Measure what the options ask for."""
    options = _options()
    console = Console(width=160)
    with ExitStack() as stack:
        rows = list(_measured(stack, options, console))
    show(console, rows, WITH, WITHOUT, ())
    if options.markdown is not None:
        options.markdown.write_text(markdown(rows, WITH, WITHOUT))
    return 0


def _measured(stack: ExitStack, options: argparse.Namespace, console: Console) -> Iterator[Row]:
    world = _world(options.hosts)
    services = {name: _database(stack, options, world, name) for name in (WITHOUT, WITH)}
    endpoints, processes = [], []
    for name, (database, folder) in services.items():
        url, process = stack.enter_context(peer.treeclaim_on(database, folder))
        endpoints.append(Endpoint(name, url, version=_VERSION))
        processes.append(process)
        yield first_answer(endpoints[-1], process, world)
    endpoints.reverse()
    for measure in (
        _claims,
        partial(busy_cloud.after_claims, most=(_TURNS, options.seconds)),
        _looks,
        _beside_looks,
    ):
        for row in measure(world, endpoints):
            console.print(f"{row.case}: {row.endpoint} {row.median_ms or row.per_second:.2f}")
            yield row
    for endpoint, process in zip(reversed(endpoints), processes, strict=True):
        yield _memory(world, endpoint, process)


def _world(hosts: int) -> World:
    """Return hosts with room for a hundred servers, ten holds and all claims."""
    world = flat(hosts)
    providers = tuple(replace(provider, inventories=_HOST) for provider in world.providers)
    return replace(world, providers=providers)


def _database(
    stack: ExitStack, options: argparse.Namespace, world: World, name: str
) -> tuple[str, Path]:
    folder = Path(stack.enter_context(peer.new_folder()))
    database = stack.enter_context(server_of(options.database).database(folder))
    write_world(database, world)
    write_servers(database, world, options.requests)
    if name == WITH:
        write_promises(database, world, holds=options.holds, requests=options.requests)
    return database, folder


def _claims(world: World, endpoints: Sequence[Endpoint]) -> Iterator[Row]:
    """Let sixteen clients claim on all hosts, for some seconds of each in turn."""
    (case, step), *_ = contention_cases(world).items()
    rates: dict[str, list[float]] = {endpoint.name: [] for endpoint in endpoints}
    for _ in range(_TURNS):
        for endpoint in endpoints:
            turn = Service(endpoint.name, endpoint.url).turn(step, _CLIENTS, _MOST_CLAIMS, 4.0)
            rates[endpoint.name].append(turn.completed_per_second)
    for name, found in rates.items():
        yield Row(f"{case}, {_CLIENTS} clients", name, per_second=median(found))


def _looks(_world: World, endpoints: Sequence[Endpoint]) -> Iterator[Row]:
    """Time what tells how much is held."""
    for name, path in LOOKS.items():
        taken: dict[str, list[float]] = {endpoint.name: [] for endpoint in endpoints}
        for _ in range(_ROUNDS):
            for endpoint in endpoints:
                taken[endpoint.name].append(endpoint.get(path).seconds)
        for endpoint in endpoints:
            yield _row(name, endpoint, taken[endpoint.name])


def _beside_looks(world: World, endpoints: Sequence[Endpoint]) -> Iterator[Row]:
    """Time searches while somebody looks at what is held, without a pause."""
    for name in ("explain", "totals"):
        for endpoint in endpoints:
            with in_background(_looking(endpoint.another(), LOOKS[name])):
                taken = [
                    endpoint.ask(world.question(number), 10).seconds for number in range(_BESIDE)
                ]
            yield _row(f"search beside {name}", endpoint, taken)


def _looking(endpoint: Endpoint, path: str) -> Step:
    return lambda _: bool(endpoint.get(path).body)


def _row(case: str, endpoint: Endpoint, taken: Sequence[float]) -> Row:
    return Row(
        case,
        endpoint.name,
        median_ms=1000 * median(taken),
        p95_ms=1000 * percentile(taken, 0.95),
        p99_ms=1000 * percentile(taken, 0.99),
    )


def _memory(world: World, endpoint: Endpoint, process: psutil.Process) -> Row:
    return Row(
        f"{world.name}: memory after all this",
        endpoint.name,
        resident_bytes=peer.memory_of(process),
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.held", description=__doc__)
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--holds", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=1_000_000, help="and as many servers")
    parser.add_argument("--seconds", type=float, default=4.0, help="of searches in each round")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a table to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
