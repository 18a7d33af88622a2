# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.contention`: many clients claim at once, here and from openstack-placement.

Counts what was completed and what was refused, which a median of one client's answers hides. Both
services are on databases of their own at the same server, and take turns, so that a drifting
machine hits both.
"""

import argparse
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from bench.clients.candidates import drawn
from bench.clients.connection import Connection
from bench.clients.endpoint import median
from tests import peer
from tests.clouds import World, flat
from tests.clouds.bulk import write_world
from tests.databases import KINDS, server_of

OURS = "treeclaim"
PEER = "openstack-placement"

_HOSTS = 1000
PAIRS = "search and claim"
_POOL_SIZE = 10_000_000
_TIMEOUT = 600.0
_VERSION = "OpenStack-API-Version"
_HEADERS = {
    "X-Auth-Token": "admin",
    _VERSION: "placement 1.39",
    "Accept": "application/json",
}
_START: Mapping[str, Callable[..., Any]] = {
    OURS: peer.treeclaim_on,
    PEER: peer.openstack_placement_on,
}


class Client(Connection):
    """One client's connection to a service."""

    def __init__(self, url: str, version: str = _HEADERS[_VERSION]) -> None:
        super().__init__(url, {**_HEADERS, _VERSION: version}, _TIMEOUT)

    def ask(self, query: str, dice: random.Random) -> dict[str, Any]:
        """Return what one of the candidates takes that a question finds."""
        status, body = self.get(f"/allocation_candidates?{query}&limit=1000")
        if status != HTTPStatus.OK:
            raise SystemExit(f"a search was answered with {status}: {body.decode()}")
        return drawn(body, dice)

    def claim(self, allocations: Mapping[str, Any]) -> int:
        """Claim for a new consumer; return the status."""
        body = orjson.dumps(
            {
                "allocations": allocations,
                "project_id": "bench",
                "user_id": "bench",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
        )
        return self.put(f"/allocations/{uuid.uuid4()}", body)[0]


Step = Callable[[Client, int], int]
"""Does the n-th thing; returns the status of its claim."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one service did in one turn.

    Attributes:
        completed_per_second: Claims that were answered with success.
        statuses: All answers.
    """

    completed_per_second: float
    statuses: Counter[int]


class Service:
    """A running service, and its clients."""

    def __init__(self, name: str, url: str, version: str | None = None) -> None:
        self.name = name
        self._given = (url,) if version is None else (url, version)

    def turn(self, step: Step, clients: int, steps: int, seconds: float = _TIMEOUT) -> Turn:
        """Let some clients take steps at once, for so many steps or seconds, whichever ends first.

        Each warms up by a step that does not count.
        """
        begin = threading.Barrier(clients + 1, timeout=_TIMEOUT)
        numbers = iter(range(steps))
        lock = threading.Lock()

        def work(number: int) -> Counter[int]:
            client = Client(*self._given)
            step(client, number)
            begin.wait()
            seen: Counter[int] = Counter()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                with lock:
                    current = next(numbers, None)
                if current is None:
                    return seen
                seen[step(client, current)] += 1
            return seen

        with ThreadPoolExecutor(clients) as pool:
            working = [pool.submit(work, number) for number in range(clients)]
            begin.wait()
            start = time.perf_counter()
            statuses = sum((one.result() for one in working), Counter[int]())
            taken = time.perf_counter() - start
        completed = sum(statuses[one] for one in (HTTPStatus.CREATED, HTTPStatus.NO_CONTENT))
        return Turn(completed / taken, statuses)


def cases(world: World) -> dict[str, Step]:
    """Return what is measured, by name."""
    uuids = [provider.uuid for provider in world.providers]
    pool, *hosts = uuids
    dice = random.Random(9)

    def on_hosts(client: Client, number: int) -> int:
        return client.claim({hosts[number % len(hosts)]: {"resources": world.claim}})

    def on_pool(client: Client, _number: int) -> int:
        return client.claim({pool: {"resources": {"DISK_GB": 1}}})

    def search_then_claim(client: Client, _number: int) -> int:
        return client.claim(client.ask(world.query, dice))

    return {
        f"claims on {len(hosts)} hosts": on_hosts,
        "claims on one pool": on_pool,
        PAIRS: search_then_claim,
    }


def world_with_pool() -> World:
    """Return hosts, and before them a provider with room for all claims."""
    world = flat(_HOSTS + 1)
    first, *others = world.providers
    pool = type(first)(first.uuid, "pool", inventories={"DISK_GB": _POOL_SIZE})
    return World(f"flat {_HOSTS}", (pool, *others), world.query, world.limits, world.claim)


@contextmanager
def running(
    names: Sequence[str], kind: str, workers: int, world: World
) -> Iterator[list[Service]]:
    """Run services, each on a new database of one kind."""
    with ExitStack() as stack:
        services = []
        for name in names:
            folder = Path(stack.enter_context(peer.new_folder()))
            database = stack.enter_context(server_of(kind).database(folder))
            write_world(database, world)
            url, _ = stack.enter_context(_START[name](database, folder, workers))
            services.append(Service(name, url))
        yield services


def measure(options: argparse.Namespace, console: Console) -> Table:
    """Let the services take turns at each case."""
    world = world_with_pool()
    table = Table("case", "service", "completed/s", "of each turn", "answers", "ratio")
    with running((OURS, PEER), options.database, options.workers, world) as services:
        for case, step in cases(world).items():
            steps = options.pairs if case == PAIRS else options.claims
            turns: dict[str, list[Turn]] = {service.name: [] for service in services}
            for _ in range(options.turns):
                for service in services:
                    turns[service.name].append(service.turn(step, options.clients, steps))
                    done = turns[service.name][-1]
                    rate = f"{done.completed_per_second:.1f}/s"
                    console.print(f"{case}: {service.name} {rate} {dict(done.statuses)}")
            for row in _rows(case, turns):
                table.add_row(*row)
    return table


def _rows(case: str, turns: Mapping[str, Sequence[Turn]]) -> Iterator[Sequence[str]]:
    rates = {name: [one.completed_per_second for one in some] for name, some in turns.items()}
    ratio = median(rates[OURS]) / max(median(rates[PEER]), 1e-9)
    for name, some in turns.items():
        answers = sum((one.statuses for one in some), Counter[int]())
        yield (
            case,
            name,
            f"{median(rates[name]):.1f}",
            " ".join(f"{one:.1f}" for one in rates[name]),
            ", ".join(f"{count} x {status}" for status, count in sorted(answers.items())),
            f"{ratio:.1f}" if name == OURS else "",
        )


def main() -> None:
    """Measure what the options ask for."""
    parser = argparse.ArgumentParser(prog="python -m bench.contention", description=__doc__)
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    parser.add_argument("--workers", type=int, default=2, help="processes of each service")
    parser.add_argument("--clients", type=int, default=16, help="clients at once")
    parser.add_argument("--claims", type=int, default=300, help="claims in a turn")
    parser.add_argument("--pairs", type=int, default=60, help="searches with a claim in a turn")
    parser.add_argument("--turns", type=int, default=3, help="turns of each service")
    console = Console(width=120)
    console.print(measure(parser.parse_args(), console))


if __name__ == "__main__":
    main()
