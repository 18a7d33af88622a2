# SPDX-License-Identifier: Apache-2.0
"""How long plans take: all failures of single hosts, and of racks, of a full cloud.

`python -m bench.planning [--hosts 1000] [--each 20] [--shape plain|numa|shared]`; with `--beside SECONDS`
instead what searches and claims of others take, over HTTP, with plans made all the time and without.
"""

import argparse
import os
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from bench.clients.endpoint import Endpoint, percentile
from bench.clients.loads import Step, claims, in_background
from bench.clients.open_loop import Stream, run
from tests import peer
from tests.clouds import World, flat
from tests.clouds.bulk import write_world
from tests.databases import server_of
from treeclaim.api.resources.candidates.operations import request_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import Consumers, PlannedConsumer
from treeclaim.forest.planning.survival import survival
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
from treeclaim.model.extension.planning import Failures
from treeclaim.model.inventory import Inventory
from treeclaim.model.microversions import NEWEST
from treeclaim.model.provider import InventoryRecord, ProviderRecord

_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
_FLAVORS = ((1, 2048, 20), (2, 4096, 40), (4, 8192, 40), (8, 16384, 80), (4, 32768, 40))
_NAMESPACE = uuid.UUID(int=4)


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--each", type=int, default=20, help="consumers on each host")
    parser.add_argument("--rack", type=int, default=25, help="hosts in a rack")
    parser.add_argument("--full", type=float, default=0.85)
    parser.add_argument("--order", default="", help="order_by of all requests")
    parser.add_argument("--shape", default="plain", choices=("plain", "numa", "shared"))
    parser.add_argument("--beside", type=float, metavar="SECONDS", help="of each of six turns")
    given = parser.parse_args()
    if given.beside:
        _beside_plans(given)
    else:
        _survive(given)


def _survive(given: argparse.Namespace) -> None:
    for name in ("hosts", "racks"):
        forest, consumers, racks = cloud(given)
        asked = Failures() if name == "hosts" else Failures(domains=tuple(racks))
        begin = time.process_time()
        found = survival(forest, consumers, asked, Budget())
        seconds = time.process_time() - begin
        proven = sum(domain["proven"] for domain in found["domains"])
        print(
            f"{name}: {found['survive']} of {found['of']} survive, {proven} of the others proven "
            f"among {len(found['domains'])}, {len(consumers)} consumers: {seconds:.2f} s"
        )


_SEARCHES, _CLAIMS = 50, 25
"""A second, at fixed rates."""

_IN_A_CALL = 1_000


def _beside_plans(given: argparse.Namespace) -> None:
    """Let searches and claims arrive, in turn alone and while one client asks for plans."""
    world = flat(given.hosts)
    taken: dict[tuple[str, bool], list[float]] = {}
    made: list[int] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(peer.new_folder()))
        database = stack.enter_context(server_of("sqlite").database(folder))
        write_world(database, world)
        url, _ = stack.enter_context(peer.treeclaim_on(database, folder))
        endpoint = Endpoint("treeclaim", url, version="placement 1.39, treeclaim latest")
        for _ in range(given.hosts * given.each // _IN_A_CALL):
            endpoint.post("/treeclaim/placements", _placing())
        for turn in range(6):
            is_busy = turn % 2 == 1
            plans = in_background(_plans(endpoint.another(), world, made))
            with plans if is_busy else nullcontext():
                found = run(
                    (
                        Stream(lambda n: endpoint.ask(world.question(n % 40), 1_000), _SEARCHES),
                        Stream(claims(endpoint, world), _CLAIMS),
                    ),
                    given.beside,
                )
            for what, arrivals in zip(("searches", "claims"), found, strict=True):
                taken.setdefault((what, is_busy), []).extend(arrivals.latencies)
    print(f"{len(made)} plans, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for (what, is_busy), latencies in sorted(taken.items()):
        p50, p99 = (1_000 * percentile(latencies, share) for share in (0.5, 0.99))
        print(
            f"{what} {'beside plans' if is_busy else 'alone'}: p50 {p50:.1f} ms, p99 {p99:.1f} ms"
        )


def _placing() -> dict[str, Any]:
    """Return a call that places some consumers, whose request is kept."""
    return {
        "requests": [
            {
                "alternatives": ["resources=VCPU:2,MEMORY_MB:4096&order_by=spread"],
                "consumers": [str(uuid.uuid4()) for _ in range(_IN_A_CALL)],
                "project_id": "bench",
                "user_id": "bench",
                "consumer_type": "INSTANCE",
            }
        ]
    }


def _plans(endpoint: Endpoint, world: World, made: list[int]) -> Step:
    """Ask for the failures of all hosts, and then how to empty one, in turn."""
    roots = [provider.uuid for provider in world.providers]

    def step(number: int) -> bool:
        if number % 2:
            goal = {"empty": [roots[number % len(roots)]]}
            endpoint.post("/treeclaim/moves", {"goal": goal})
        else:
            endpoint.post("/treeclaim/survival", {"domains": "tree"})
        made.append(number)
        return True

    return step


def cloud(given: argparse.Namespace) -> tuple[Forest, Consumers, list[str]]:
    """Return a cloud of which hosts are full to a share, its consumers, and its racks."""
    dice = random.Random(4)
    racks = [str(uuid.uuid5(_NAMESPACE, f"rack{n}")) for n in range(given.hosts // given.rack)]
    catalogue = Catalogue.of(
        [CatalogueEntry(1, "MISC_SHARES_VIA_AGGREGATE", 0.0)],
        [CatalogueEntry(number, name, 0.0) for number, name in enumerate(_CLASSES)],
    )
    consumers: Consumers = {}
    records: list[ProviderRecord] = []
    for number in range(given.hosts):
        records += _host(given, dice, number, racks[number % len(racks)], consumers)
    if given.shape == "shared":
        records.append(_pool(racks, consumers))
    forest = Forest()
    forest.apply(Changes(Cursor({}, None, frozenset()), True, records, (), catalogue))
    return forest, consumers, racks


def _host(
    given: argparse.Namespace, dice: random.Random, number: int, rack: str, consumers: Consumers
) -> Iterator[ProviderRecord]:
    first = 10 * number + 10
    cells = 2 if given.shape == "numa" else 1
    names = _CLASSES[:2] if given.shape == "shared" else _CLASSES
    used = [dict.fromkeys(names, 0) for _ in range(cells)]
    ids = [str(uuid.uuid5(_NAMESPACE, f"{number}/{cell}")) for cell in range(cells + 1)]
    for one in range(given.each):
        flavor = dict(zip(names, dice.choice(_FLAVORS), strict=False))
        cell = dice.randrange(cells)
        query = "resources=" + ",".join(f"{name}:{amount}" for name, amount in flavor.items())
        name = str(uuid.uuid5(_NAMESPACE, f"{number}-{one}"))
        held = {ids[cell + 1]: flavor}
        if given.shape == "shared":
            disk = dice.choice((20, 40))
            query += f",DISK_GB:{disk}"
            held[str(uuid.uuid5(_NAMESPACE, "pool"))] = {"DISK_GB": disk}
        query += f"&order_by={given.order}" if given.order else ""
        request = request_of(query, NEWEST, 512)
        consumers[name] = PlannedConsumer(name, "p", "INSTANCE", 1, held, (request,), (0,))
        for kind, amount in flavor.items():
            used[cell][kind] += amount
    links = {"traits": (), "aggregates": (rack,)}
    yield ProviderRecord(first, ids[0], f"host{number}", 1, None, first, 0.0, (), links)
    for cell in range(cells):
        stock = tuple(
            InventoryRecord(
                kind, Inventory(int(used[cell][name] / given.full) + 1), used[cell][name], 0.0
            )
            for kind, name in enumerate(names)
        )
        none = {"traits": (), "aggregates": ()}
        yield ProviderRecord(
            first + cell + 1,
            ids[cell + 1],
            f"cell{number}/{cell}",
            1,
            first,
            first,
            0.0,
            stock,
            none,
        )


def _pool(racks: list[str], consumers: Consumers) -> ProviderRecord:
    pool = str(uuid.uuid5(_NAMESPACE, "pool"))
    used = sum(one.allocations[pool]["DISK_GB"] for one in consumers.values())
    stock = (InventoryRecord(2, Inventory(used * 2), used, 0.0),)
    links = {"traits": (1,), "aggregates": tuple(sorted(racks))}
    return ProviderRecord(1, pool, "pool", 1, None, 1, 0.0, stock, links)


if __name__ == "__main__":
    main()
