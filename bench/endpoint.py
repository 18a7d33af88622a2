# SPDX-License-Identifier: Apache-2.0
"""An endpoint under measurement: loads worlds into it, asks it, claims from it."""

import http.client
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from bench.worlds import BenchProvider, World

_THREADS = 4
_TIMEOUT = 300.0
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer with the time it took.

    Attributes:
        seconds: From sending the request to having the whole body.
        body: The body.
    """

    seconds: float
    body: bytes


class Endpoint:
    """A Placement API endpoint; each thread has a connection of its own that stays open."""

    def __init__(self, name: str, url: str, token: str = "admin") -> None:
        self.name = name
        self.url = url
        self._headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": "placement 1.39",
            "Accept": "application/json",
        }
        self._local = threading.local()

    def _client(self) -> httpx.Client:
        if not hasattr(self._local, "client"):
            self._local.client = httpx.Client(
                base_url=self.url, timeout=_TIMEOUT, headers=self._headers
            )
        client: httpx.Client = self._local.client
        return client

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection that adds little of its own to what is timed."""
        if not hasattr(self._local, "connection"):
            address = urlsplit(self.url).netloc
            self._local.connection = http.client.HTTPConnection(address, timeout=_TIMEOUT)
        connection: http.client.HTTPConnection = self._local.connection
        return connection

    def load(self, world: World) -> None:
        """Create a world's providers, level by level."""
        waiting = list(world.providers)
        known: set[str | None] = {None}
        with ThreadPoolExecutor(_THREADS) as pool:
            while waiting:
                level = [one for one in waiting if one.parent in known]
                list(pool.map(self._create, level))
                known.update(one.uuid for one in level)
                waiting = [one for one in waiting if one.uuid not in known]

    def _insist(self, method: str, path: str, body: object) -> None:
        """Make a write that must succeed; some services answer 5xx when two writers meet."""
        for _ in range(_ATTEMPTS):
            response = self._client().request(method, path, json=body)
            if not response.is_server_error:
                break
        response.raise_for_status()

    def _create(self, one: BenchProvider) -> None:
        body = {"name": one.name, "uuid": one.uuid, "parent_provider_uuid": one.parent}
        self._insist("POST", "/resource_providers", body)
        path, generation = f"/resource_providers/{one.uuid}", 0
        if one.inventories:
            inventories = {name: {"total": total} for name, total in one.inventories.items()}
            self._put(f"{path}/inventories", generation, "inventories", inventories)
            generation += 1
        if one.traits:
            self._put(f"{path}/traits", generation, "traits", one.traits)
            generation += 1
        if one.aggregates:
            self._put(f"{path}/aggregates", generation, "aggregates", one.aggregates)

    def _put(self, path: str, generation: int, name: str, value: object) -> None:
        self._insist("PUT", path, {name: value, "resource_provider_generation": generation})

    def ask(self, query: str, limit: int | None) -> Answer:
        """Ask for candidates."""
        path = f"/allocation_candidates?{query}"
        if limit is not None:
            path += f"&limit={limit}"
        prefix = urlsplit(self.url).path.rstrip("/")
        connection = self._connection()
        start = time.perf_counter()
        connection.request("GET", prefix + path, headers=self._headers)
        response = connection.getresponse()
        body = response.read()
        taken = time.perf_counter() - start
        if response.status != http.HTTPStatus.OK:
            raise SystemExit(f"{self.name} answered {response.status}: {body.decode()}")
        return Answer(taken, body)

    def claim(self, provider: str, amounts: dict[str, int]) -> bool:
        """Claim for a new consumer; tell whether it was taken."""
        body = {
            "allocations": {provider: {"resources": amounts}},
            "project_id": "bench",
            "user_id": "bench",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        return self._client().put(f"/allocations/{uuid.uuid4()}", json=body).is_success


def claims_per_second(endpoint: Endpoint, world: World, clients: int, claims: int) -> float:
    """Let some clients claim from different providers; return completed claims per second."""
    providers = [one.uuid for one in world.providers]
    turns: Iterable[str] = (providers[number % len(providers)] for number in range(claims))
    with ThreadPoolExecutor(clients) as pool:
        start = time.perf_counter()
        taken = sum(pool.map(lambda one: endpoint.claim(one, world.claim), turns))
        return taken / (time.perf_counter() - start)


def median(numbers: Sequence[float]) -> float:
    """Return the middle one."""
    return sorted(numbers)[len(numbers) // 2]


def percentile_95(numbers: Sequence[float]) -> float:
    """Return the number that 95 % are not above."""
    return sorted(numbers)[min(int(len(numbers) * 0.95), len(numbers) - 1)]
