# SPDX-License-Identifier: Apache-2.0
"""What a cloud of very many providers takes over HTTP, and how long nobody is answered meanwhile."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count, repeat
from pathlib import Path
from typing import Any

import psutil

from bench.clients.endpoint import Endpoint, median
from bench.contention import Client, Service
from bench.measuring.loading import first_answer
from bench.measuring.stops import Stop, noted
from tests import peer
from tests.clouds import BenchProvider, World
from tests.clouds.bulk import write_world
from tests.databases import server_of

_VERSION = "placement 1.39, treeclaim latest"
_TIMES = 30
_SECONDS = 5.0
_MOST_CLAIMS = 1_000_000
_PAGE = "/treeclaim/providers?limit=1000"

_READ = {
    "a page of a thousand with everything": f"{_PAGE}&include=inventories,usages,traits,aggregates",
    "`/resource_providers?in_tree=`": "/resource_providers?in_tree={uuid}",
    "`/resource_providers?name=`": "/resource_providers?name={name}",
    "totals": "/treeclaim/totals",
    "totals by tree": "/treeclaim/totals?by=tree",
}

Act = Callable[[], object]


Served = tuple[str, str, Stop | None]
"""A line of the table: a case, what it took with the unit, how long nobody else was answered."""


class Clients:
    """Clients of a service that holds copies of trees of seven; they ask about any of these."""

    def __init__(self, world: World, endpoint: Endpoint) -> None:
        self._world = world
        self._endpoint, self._other = endpoint, endpoint.another()
        self._dice = random.Random(17)
        self._nodes = [some for some in world.providers if "VCPU" in some.inventories]
        self._roots = [some for some in world.providers if some.parent is None]
        self._added: str | None = None
        self._next = _PAGE

    def _any(self, some: Sequence[BenchProvider]) -> tuple[str, str]:
        """Return uuid and name of some provider, in some copy."""
        return self._world.copied(
            self._dice.choice(some), self._dice.randrange(self._world.copies)
        )

    def search(self, limit: int, amounts: Iterator[int]) -> Act:
        """Return what asks for flavors with these amounts of memory more."""
        return lambda: self._endpoint.ask(self._world.question(next(amounts)), limit)

    def read(self, form: str) -> Act:
        """Return what reads something, of the tree or the name of any root."""

        def act() -> None:
            uuid, name = self._any(self._roots)
            self._endpoint.get(form.format(uuid=uuid, name=name))

        return act

    def turn_page(self) -> None:
        """Read the next page of all providers, as the last one says."""
        _, found, rest = self._endpoint.get(self._next).body.rpartition(b'"href":"')
        self._next = rest.partition(b'"')[0].decode() if found else _PAGE

    def sum_up(self) -> None:
        """Ask for the totals as if a tree were gone."""
        self._endpoint.post(
            "/treeclaim/totals", {"given": {"without": [self._any(self._roots)[0]]}}
        )

    def claim(self) -> None:
        """Claim, as another client."""
        if not self._other.take(self._amounts()):
            raise SystemExit("a claim was refused")

    def claim_by(self, client: Client, _number: int) -> int:
        """Claim as one of several clients; return the status."""
        return client.claim(self._amounts())

    def _amounts(self) -> dict[str, Any]:
        return {self._any(self._nodes)[0]: {"resources": {"VCPU": 1}}}

    def grow(self) -> None:
        """Add a provider to a tree, and take it away the next time, as another client."""
        if self._added is None:
            self._added = self._other.add_child(self._any(self._roots)[0])
        else:
            self._other.remove(self._added)
            self._added = None


def operations(clients: Clients) -> Iterator[tuple[str, Act, Act]]:
    """Yield names, what another client does before, and what is measured."""
    nothing: Act = lambda: None  # noqa: E731
    for limit in (10, 1000):
        again, search = (clients.search(limit, some) for some in (repeat(0), count(limit)))
        yield f"search, the same flavor, limit={limit}", nothing, again
        yield f"search, new flavor, limit={limit}", nothing, search
        yield f"search, new flavor, after a claim, limit={limit}", clients.claim, search
        yield f"search, new flavor, after a change of a tree, limit={limit}", clients.grow, search
    yield "a claim", nothing, clients.claim
    yield "a change of a tree", nothing, clients.grow
    yield "a page of a thousand, one after the other", clients.claim, clients.turn_page
    for name, form in _READ.items():
        yield name, clients.claim, clients.read(form)
    yield "totals as if a tree were gone (`POST`)", clients.claim, clients.sum_up


def measured(world: World, database: str) -> Iterator[Served]:
    """Measure all of it at one worker on a database of some kind that holds a world."""
    with peer.new_folder() as name, server_of(database).database(Path(name)) as url:
        write_world(url, world)
        with peer.treeclaim_on(url, Path(name)) as (service, process):
            endpoint = Endpoint(service, service, version=_VERSION)
            row = first_answer(endpoint, process, world)
            family = [process, *process.children(recursive=True)]
            spent = sum(sum(member.cpu_times()[:4]) for member in family)
            begun = f"{(row.median_ms or 0) / 1000:.1f} s; {spent:.1f} s of the processor"
            yield "first answer after the start", begun, None
            yield "memory then", f"{peer.memory_of(process) / 1e6:.0f} MB", None
            clients = Clients(world, endpoint)
            worker = max(family, key=psutil.Process.num_threads)
            with noted(service, worker.pid) as take:
                time.sleep(_SECONDS)
                yield "nobody else asks", "", take()
                yield from (_timed(*each, take) for each in operations(clients))
                load = clients.claim_by, 16, _MOST_CLAIMS, _SECONDS
                rate = Service(service, service).turn(*load).completed_per_second
                yield "claims by 16 clients", f"{rate:.0f} a second", take()
            yield "memory after all this", f"{peer.memory_of(process) / 1e6:.0f} MB", None


def _timed(name: str, before: Act, act: Act, take: Callable[[], Stop]) -> Served:
    """Do something several times; the first time counts, for which something may have to be made."""
    taken, longest = [], Stop()
    for _ in range(_TIMES):
        before()
        take()
        begin = time.perf_counter()
        act()
        taken.append(1000 * (time.perf_counter() - begin))
        longest = Stop(*map(max, longest, take()))
    return name, f"{median(taken):.1f} ms; {max(taken):.1f} ms", longest


def table(rows: Iterator[Served]) -> Iterator[str]:
    """Yield the lines of a table, each as soon as it is known."""
    yield "| | median; most | longest wait of another, ms | worker's CPU in a wait, ms |"
    yield "| --- | ---: | ---: | ---: |"
    for case, figure, stop in rows:
        waits = " | " if stop is None else f"{stop.wait_ms:.0f} | {stop.cpu_ms:.0f}"
        yield f"| {case} | {figure} | {waits} |"
