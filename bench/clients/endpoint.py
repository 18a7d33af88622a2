# SPDX-License-Identifier: Apache-2.0
"""An endpoint under measurement, and what clients send to it."""

import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from bench.clients.connection import Connection

OURS = "treeclaim"
PEER = "openstack-placement"

EXTENDED = "placement 1.39, treeclaim latest"
"""Version of requests that use the extension."""

_TIMEOUT = 600.0
_OWNER = {"project_id": "bench", "user_id": "bench", "consumer_type": "INSTANCE"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response with the time that it took.

    Attributes:
        seconds: From sending the request to having the whole body.
        body: The body.
    """

    seconds: float
    body: bytes


class Endpoint:
    """A Placement API endpoint; each thread has a connection of its own that stays open."""

    def __init__(self, name: str, url: str, version: str = "placement 1.39") -> None:
        self.name = name
        self.url = url
        self._version = version
        self._headers = {
            "X-Auth-Token": "admin",
            "OpenStack-API-Version": version,
            "Accept": "application/json",
        }
        self._local = threading.local()

    def _connection(self) -> Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = Connection(self.url, self._headers, _TIMEOUT)
        connection: Connection = self._local.connection
        return connection

    def get(self, path: str) -> Answer:
        """Read something; only success counts.

        Raises:
            SystemExit: with what the endpoint answered instead.
        """
        connection = self._connection()
        start = time.perf_counter()
        status, body = connection.get(path)
        taken = time.perf_counter() - start
        if status != HTTPStatus.OK:
            raise SystemExit(f"{self.name} answered {status}: {body.decode()}")
        return Answer(taken, body)

    def ask(self, query: str, limit: int | None) -> Answer:
        """Ask for candidates."""
        end = "" if limit is None else f"&limit={limit}"
        return self.get(f"/allocation_candidates?{query}{end}")

    def claim_candidate(self, candidate: dict[str, Any]) -> bool:
        """Claim what a candidate offers for a new consumer; tell whether it was taken."""
        return self._claim({name: candidate[name] for name in ("allocations", "mappings")})

    def claim(self, provider: str, amounts: dict[str, int]) -> bool:
        """Claim for a new consumer; tell whether it was taken."""
        return self.take({provider: {"resources": amounts}})

    def take(self, allocations: dict[str, Any]) -> bool:
        """Claim some allocations for a new consumer; tell whether they were taken."""
        return self._claim({"allocations": allocations})

    def place(self, query: str, consumers: int, rules: Sequence[Mapping[str, Any]] = ()) -> bool:
        """Place new consumers in one call; return whether they have places."""
        uuids = [str(uuid.uuid4()) for _ in range(consumers)]
        request = {"alternatives": [query], "consumers": uuids, **_OWNER}
        body = orjson.dumps({"requests": [request], "rules": list(rules)})
        return self._connection().post("/treeclaim/placements", body)[0] == HTTPStatus.CREATED

    def post(self, path: str, body: dict[str, Any]) -> None:
        """Send a JSON object; only success counts.

        Raises:
            SystemExit: with what the endpoint answered instead.
        """
        self._insist("POST", path, orjson.dumps(body))

    def add_child(self, parent: str) -> str:
        """Create a provider below another one; return its uuid."""
        child = str(uuid.uuid4())
        body = {"name": child, "uuid": child, "parent_provider_uuid": parent}
        self._insist("POST", "/resource_providers", orjson.dumps(body))
        return child

    def remove(self, provider: str) -> None:
        """Delete a provider."""
        self._insist("DELETE", f"/resource_providers/{provider}", b"")

    def another(self) -> "Endpoint":
        """Return the same endpoint as another client sees it, by connections of its own."""
        return Endpoint(self.name, self.url, self._version)

    def _insist(self, method: str, path: str, body: bytes) -> None:
        status, answer = self._connection().send(method, path, body)
        if status >= HTTPStatus.BAD_REQUEST:
            raise SystemExit(f"{self.name} answered {status}: {answer.decode()}")

    def _claim(self, wanted: dict[str, Any]) -> bool:
        body = wanted | _OWNER | {"consumer_generation": None}
        status, _ = self._connection().put(f"/allocations/{uuid.uuid4()}", orjson.dumps(body))
        return status == HTTPStatus.NO_CONTENT


def median(numbers: Sequence[float]) -> float:
    """Return the middle one."""
    return sorted(numbers)[len(numbers) // 2]


def percentile(numbers: Sequence[float], share: float) -> float:
    """Return the number that a share of all, below one, are not above."""
    return sorted(numbers)[min(int(len(numbers) * share), len(numbers) - 1)]
