# SPDX-License-Identifier: Apache-2.0
"""An endpoint of the Placement API, reached over a kept connection."""

from __future__ import annotations

import json
from typing import Any, Self

import httpx

from tests.blackbox.requests import Body, Request
from treeclaim.comparison.comparison import Response

ADMIN = {"x-auth-token": "admin", "accept": "application/json"}
NOT_FOUND = 404
CUSTOM = "CUSTOM_"


class EndpointError(RuntimeError):
    """An endpoint does not let itself be emptied."""


class Endpoint:
    """A running service; it belongs to the comparison alone."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.client.headers.update(ADMIN)

    @classmethod
    def at(cls, url: str, timeout: float = 60.0) -> Self:
        """The endpoint at an address."""
        return cls(httpx.Client(base_url=url.rstrip("/"), timeout=timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def send(self, request: Request, body: Body = None) -> Response:
        """Send a request with its body filled in."""
        headers = {"openstack-api-version": f"placement 1.{request.minor}", **request.headers}
        content = None
        if body is not None:
            headers.setdefault("content-type", "application/json")
            content = body if isinstance(body, str) else json.dumps(body)
        answer = self.client.request(
            request.method, request.path, headers=headers, content=content
        )
        return Response(answer.status_code, dict(answer.headers), answer.text, _document(answer))

    def get(self, path: str) -> Any:
        """The document at `path` at the newest version, None where it is not found."""
        answer = self.send(Request("GET", path))
        return None if answer.status == NOT_FOUND else answer.document

    def clear(self) -> None:
        """Remove every provider, consumer, custom class and custom trait."""
        providers = [
            resource_provider["uuid"]
            for resource_provider in self.get("/resource_providers")["resource_providers"]
        ]
        for uuid in providers:
            for consumer in self.get(f"/resource_providers/{uuid}/allocations")["allocations"]:
                self.send(Request("DELETE", f"/allocations/{consumer}"))
        while providers:
            left = [uuid for uuid in providers if not self._removed(uuid)]
            if left == providers:
                raise EndpointError(f"{self.client.base_url} keeps the providers {left}")
            providers = left
        for entry in self.get("/resource_classes")["resource_classes"]:
            if entry["name"].startswith(CUSTOM):
                self.send(Request("DELETE", f"/resource_classes/{entry['name']}"))
        for name in self.get(f"/traits?name=startswith:{CUSTOM}")["traits"]:
            self.send(Request("DELETE", f"/traits/{name}"))

    def _removed(self, uuid: str) -> bool:
        answer = self.send(Request("DELETE", f"/resource_providers/{uuid}"))
        return answer.status in {204, NOT_FOUND}


def _document(answer: httpx.Response) -> Any:
    if answer.headers.get("content-type", "").startswith("application/json"):
        return json.loads(answer.text)
    return None
