# SPDX-License-Identifier: Apache-2.0
"""Calls to a Placement API endpoint, whoever serves it."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import httpx

_VERSION = "placement 1.39"
_TIMEOUT = 60.0
_ATTEMPTS = 5
_CONCURRENT = "placement.concurrent_update"


class ClientError(Exception):
    """A call was refused or failed; the message says which and why."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A connection to one endpoint, by plain URL and token."""

    def __init__(self, endpoint: str, token: str) -> None:
        headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": _VERSION,
            "Accept": "application/json",
        }
        self._http = httpx.Client(base_url=endpoint.rstrip("/"), headers=headers, timeout=_TIMEOUT)

    def __enter__(self) -> Self:
        """Use the client in a with statement."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self._http.close()

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Make a call.

        Raises:
            ClientError: if the endpoint cannot be reached or answers with an error.
        """
        try:
            response = self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise ClientError(f"{method} {path}: {error}") from error
        if response.is_error:
            raise ClientError(
                f"{method} {path}: {response.status_code} {_detail(response)}",
                response.status_code,
            )
        return response

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON of a GET."""
        return self.call("GET", path, params=parameters or None).json()

    def providers(self, **filters: str) -> list[dict[str, Any]]:
        """List providers."""
        found: list[dict[str, Any]] = self.get("/resource_providers", **filters)[
            "resource_providers"
        ]
        return found

    def ensure_names(self, traits: Sequence[str], resource_classes: Sequence[str]) -> None:
        """Create custom traits and resource classes that do not exist."""
        for name in traits:
            self.call("PUT", f"/traits/{name}")
        for name in resource_classes:
            self.call("PUT", f"/resource_classes/{name}")

    def candidates(self, query: str) -> dict[str, Any]:
        """Ask for allocation candidates with a query string."""
        found: dict[str, Any] = self.call("GET", f"/allocation_candidates?{query}").json()
        return found

    def claim(
        self,
        consumer_uuid: str,
        allocation_request: Mapping[str, Any],
        *,
        project_id: str,
        user_id: str,
        consumer_type: str,
    ) -> None:
        """Claim a candidate for a consumer; whatever it held before is replaced.

        A claim that met another one is tried again with the consumer's present generation.

        Raises:
            ClientError: if the resources are gone, or the claim is refused for another reason.
        """

        def attempt() -> None:
            present = self.get(f"/allocations/{consumer_uuid}")
            body = dict(allocation_request) | {
                "project_id": project_id,
                "user_id": user_id,
                "consumer_type": consumer_type,
                "consumer_generation": present.get("consumer_generation"),
            }
            self.call("PUT", f"/allocations/{consumer_uuid}", json=body)

        retried(attempt)


def retried(attempt: Callable[[], None]) -> None:
    """Try again what fails because another one changed the same thing meanwhile."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            attempt()
        except ClientError as error:
            met_another = error.status == HTTPStatus.CONFLICT and _CONCURRENT in str(error)
            if not met_another or not left:
                raise
        else:
            return


def _detail(response: httpx.Response) -> str:
    try:
        error = response.json()["errors"][0]
        return f"{error['detail']} ({error.get('code', 'no code')})"
    except (ValueError, KeyError, IndexError, TypeError):
        return response.text[:200]
