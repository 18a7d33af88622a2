# SPDX-License-Identifier: Apache-2.0
"""What a cloud of very many providers takes over HTTP, and how long nobody is answered meanwhile."""

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import servers
from bench.clients.endpoint import Endpoint, median
from bench.contention import Client, Service
from bench.measuring.loading import first_answer
from bench.measuring.stops import Stop, Stops, noted, worker_of
from bench.worlds import World
from bench.worlds.bulk import write_world
from tests.databases import server_of

_VERSION = "placement 1.39, treeclaim 1.4"
_TIMES = 30
_CLIENTS = 16
_SECONDS = 5.0
_MOST_CLAIMS = 1_000_000
_AMOUNT = {"VCPU": 1}
_PAGE = "/treeclaim/providers?limit=1000"
_EVERYTHING = f"{_PAGE}&include=inventories,usages,traits,aggregates"

Act = Callable[[], object]
Operation = tuple[str, Act, Act]
"""A name, what is done before, and what is measured."""


@dataclass(frozen=True, slots=True)
class Served:
    """A line of the table: a case, what it took with the unit, how long nobody else was answered."""

    case: str
    figure: str
    stop: Stop | None = None


class Clients:
    """Clients of a service that holds many copies of a world; they ask about any of these."""

    def __init__(self, world: World, endpoint: Endpoint) -> None:
        self._world = world
        self._endpoint = endpoint
        self._other = endpoint.another()
        self._dice = random.Random(17)
        self._flavors = itertools.count(1)
        self._hosts = [some for some in world.providers if "VCPU" in some.inventories]
        self._roots = [some for some in world.providers if some.parent is None]
        self._added: str | None = None
        self._next = _PAGE

    def get(self, form: str) -> Act:
        """Return what reads something, of any tree: of its root, or by its name."""

        def act() -> None:
            root, copy = self._dice.choice(self._roots), self._copy()
            name = self._world.name_in(root, copy)
            self._endpoint.get(form.format(root=self._world.uuid_in(root, copy), name=name))

        return act

    def search(self, limit: int) -> Act:
        """Return what asks for another flavor each time."""
        return lambda: self._endpoint.ask(self._world.question(next(self._flavors)), limit)

    def search_again(self, limit: int) -> Act:
        """Return what asks for the same flavor each time."""
        return lambda: self._endpoint.ask(self._world.query, limit)

    def claim(self) -> None:
        """Claim, as another client."""
        if not self._other.claim(self._host(), _AMOUNT):
            raise SystemExit("a claim was refused")

    def claim_as(self, client: Client, _number: int) -> int:
        """Claim as one of several clients; return the status."""
        return client.claim({self._host(): {"resources": _AMOUNT}})

    def grow(self) -> None:
        """Add a provider to a tree, and take it away the next time, as another client."""
        if self._added is None:
            root = self._world.uuid_in(self._dice.choice(self._roots), self._copy())
            self._added = self._other.add_child(root)
        else:
            self._other.remove(self._added)
            self._added = None

    def turn_page(self) -> None:
        """Read the next page of all providers, as the last one says."""
        body = self._endpoint.get(self._next).body
        _, found, after = body.rpartition(b'"href":"')
        self._next = after.partition(b'"')[0].decode() if found else _PAGE

    def sum_up(self) -> None:
        """Ask for the totals as if a tree were gone."""
        root = self._world.uuid_in(self._dice.choice(self._roots), self._copy())
        self._endpoint.post("/treeclaim/totals", {"given": {"without": [root]}})

    def _copy(self) -> int:
        return self._dice.randrange(self._world.copies)

    def _host(self) -> str:
        return self._world.uuid_in(self._dice.choice(self._hosts), self._copy())


def operations(clients: Clients) -> Iterator[Operation]:
    """Yield what a client does, each after what another one did."""

    def nothing() -> None:
        return

    for limit in (10, 1000):
        yield f"search, the same flavor, limit={limit}", nothing, clients.search_again(limit)
        for name, before in {
            "": nothing,
            " after a claim": clients.claim,
            " after a change of a tree": clients.grow,
        }.items():
            yield f"search{name}, new flavor, limit={limit}", before, clients.search(limit)
    yield "a claim", nothing, clients.claim
    yield "a change of a tree", nothing, clients.grow
    yield "a page of a thousand, one after the other", clients.claim, clients.turn_page
    for name, form in {
        "a page of a thousand with everything": _EVERYTHING,
        "`/resource_providers?in_tree=`": "/resource_providers?in_tree={root}",
        "`/resource_providers?name=`": "/resource_providers?name={name}",
        "totals": "/treeclaim/totals",
        "totals by tree": "/treeclaim/totals?by=tree",
    }.items():
        yield name, clients.claim, clients.get(form)
    yield "totals as if a tree were gone (`POST`)", clients.claim, clients.sum_up


def measured(world: World, database: str) -> Iterator[Served]:
    """Measure all of it at one worker on a database of some kind that holds a world."""
    with servers.new_folder() as name, server_of(database).database(Path(name)) as url:
        write_world(url, world)
        with servers.treeclaim_on(url, Path(name)) as (service, process):
            endpoint = Endpoint(service, service, version=_VERSION)
            row = first_answer(endpoint, process, world)
            yield Served("first answer after the start", f"{(row.median_ms or 0) / 1000:.1f} s")
            yield _memory("memory then (PSS of all processes)", process)
            with noted(service, worker_of(process)) as stops:
                clients = Clients(world, endpoint)
                time.sleep(_SECONDS)
                yield Served("nobody else asks", "", stops.take())
                yield from (_timed(operation, stops) for operation in operations(clients))
                yield _contended(clients, service, stops)
            yield _memory("memory after all this", process)


def _timed(operation: Operation, stops: Stops) -> Served:
    """Do something several times; the first, for which something may have to be made, too."""
    name, before, act = operation
    taken, longest = [], Stop()
    for _ in range(_TIMES):
        before()
        stops.take()
        begin = time.perf_counter()
        act()
        taken.append(1000 * (time.perf_counter() - begin))
        longest = longest.or_longer(stops.take())
    return Served(name, f"{median(taken):.1f} ms; {max(taken):.1f} ms", longest)


def _contended(clients: Clients, url: str, stops: Stops) -> Served:
    """Let sixteen clients claim at once."""
    turn = Service(url, url).turn(clients.claim_as, _CLIENTS, _MOST_CLAIMS, _SECONDS)
    rate = f"{turn.completed_per_second:.0f} a second"
    return Served(f"claims by {_CLIENTS} clients", rate, stops.take())


def _memory(case: str, process: psutil.Process) -> Served:
    return Served(case, f"{servers.memory_of(process) / 1e6:.0f} MB")


def table(rows: Iterator[Served]) -> Iterator[str]:
    """Yield the lines of a table, each as soon as it is known."""
    yield "| | median; most | longest wait for `GET /`, ms | of the worker's processor time in it, ms |"
    yield "| --- | ---: | ---: | ---: |"
    for row in rows:
        stop = "" if row.stop is None else f" {row.stop.wait_ms:.0f} | {row.stop.cpu_ms:.0f} "
        yield f"| {row.case} | {row.figure} |{stop or ' | '}|"
