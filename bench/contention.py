# SPDX-License-Identifier: Apache-2.0
"""Loads of many clients at once: each completed and each refused claim is counted."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from bench.clients.candidates import drawn
from bench.clients.connection import Connection
from tests.clouds import World, flat

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


class Client(Connection):
    """The connection of a client to a service."""

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
"""Takes the n-th step; returns the status of its claim."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The outcome of a turn of a service.

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
