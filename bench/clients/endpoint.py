# SPDX-License-Identifier: Apache-2.0
"""An endpoint under measurement, and the requests that clients send to it."""

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from bench.clients.connection import Connection

PLAIN_VERSION = "placement 1.39"
EXTENDED_VERSION = "placement 1.39, treeclaim latest"
"""Versions of requests without the extension and with it."""

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

    def __init__(
        self, name: str, url: str, *, has_extension: bool = True, version: str = PLAIN_VERSION
    ) -> None:
        self.name = name
        self.url = url
        self.has_extension = has_extension
        self.headers = {
            "X-Auth-Token": "admin",
            "OpenStack-API-Version": version,
            "Accept": "application/json",
        }
        self._local = threading.local()

    def extended(self) -> "Endpoint":
        """Return the same endpoint with the extension in its headers; it has separate connections."""
        return Endpoint(self.name, self.url, version=EXTENDED_VERSION)

    def get(self, path: str) -> Answer:
        """Read a path; time the request.

        Raises:
            SystemExit: if the status is not 200.
        """
        connection = self._connection()
        start = time.perf_counter()
        status, body = connection.get(path)
        seconds = time.perf_counter() - start
        if status != HTTPStatus.OK:
            raise SystemExit(f"{self.name} answered {status}: {body.decode()}")
        return Answer(seconds, body)

    def ask(self, query: str, limit: int | None) -> Answer:
        """Search candidates."""
        end = "" if limit is None else f"&limit={limit}"
        return self.get(f"/allocation_candidates?{query}{end}")

    def claim(self, provider: str, amounts: dict[str, int]) -> bool:
        """Claim amounts of a provider for a new consumer; return whether the claim was accepted."""
        return self.take({"allocations": {provider: {"resources": amounts}}})

    def take(self, candidate: Mapping[str, Any]) -> bool:
        """Claim a candidate for a new consumer; return whether the claim was accepted."""
        body = {**candidate, **_OWNER, "consumer_generation": None}
        status, _ = self.attempt("PUT", f"/allocations/{uuid.uuid4()}", body)
        return status == HTTPStatus.NO_CONTENT

    def place(self, query: str, consumers: int, rules: Sequence[Mapping[str, Any]] = ()) -> bool:
        """Place new consumers in one call; return whether they were placed."""
        uuids = [str(uuid.uuid4()) for _ in range(consumers)]
        request = {"alternatives": [query], "consumers": uuids, **_OWNER}
        body = {"requests": [request], "rules": list(rules)}
        return self.attempt("POST", "/treeclaim/placements", body)[0] == HTTPStatus.CREATED

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Send a write.

        Raises:
            SystemExit: if the status is 400 or more.
        """
        status, answer = self.attempt(method, path, body)
        if status >= HTTPStatus.BAD_REQUEST:
            raise SystemExit(f"{self.name} answered {status}: {answer.decode()}")

    def attempt(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, bytes]:
        """Send a write; return the status and body of the response."""
        return self._connection().send(method, path, b"" if body is None else orjson.dumps(body))

    def close(self) -> None:
        """Close the connection of this thread."""
        self._connection().close()

    def _connection(self) -> Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = Connection(self.url, self.headers, _TIMEOUT)
        connection: Connection = self._local.connection
        return connection


def median(numbers: Sequence[float]) -> float:
    """Return the middle number; of an even count the upper middle."""
    return percentile(numbers, 0.5)


def percentile(numbers: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile; `share` is at least 0 and below 1."""
    return sorted(numbers)[min(int(len(numbers) * share), len(numbers) - 1)]


def median_ms(call: Callable[[], object], times: int) -> float:
    """Return the median duration of some calls, in milliseconds."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return 1000 * median(seconds)
