# SPDX-License-Identifier: Apache-2.0
"""Conditions of providers: version 1.4 of the extension (contract page 102, section 3)."""

from collections.abc import Iterator
from typing import Any

from treeclaim.client.client import Client
from treeclaim.client.reports import BATCH, Reports
from treeclaim.client.states import need_of
from treeclaim.client.transport import escaped
from treeclaim.model.parts import CONDITIONS


class ConditionCalls:
    """Conditions of providers, over a client's connection."""

    def __init__(self, client: Client) -> None:
        """Use a client.

        Raises:
            UnsupportedFeatureError: if the server knows of no conditions.
        """
        client.versions.require(need_of(CONDITIONS))
        self._client = client

    def every(self, *, limit: int = BATCH, **filters: str) -> Iterator[dict[str, Any]]:
        """Yield the providers with conditions among those that pass some filters, and their conditions.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        reports = Reports(self._client)
        for row in reports.providers(include=[CONDITIONS.name], limit=limit, **filters):
            if row[CONDITIONS.name]:
                yield row

    def put(self, provider: str, key: str, **members: Any) -> None:
        """Give a provider a condition, which replaces one with the same key.

        Args:
            provider: Its uuid.
            key: The key of the condition.
            members: As the service has them: `effect`, `until`, `reason`, `on_use`, `began`.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        self._client.call("PUT", _path(provider, key), json=members, extended=True)

    def affected(self, provider: str, key: str, **members: Any) -> dict[str, int]:
        """Return how many consumers and providers the same call would affect; nothing is changed.

        Raises:
            ClientError: if the endpoint refuses, or does not answer.
        """
        path = f"{_path(provider, key)}?dry_run=true"
        touched: dict[str, int] = self._client.call(
            "PUT", path, json=members, extended=True
        ).json()
        return touched

    def delete(self, provider: str, key: str) -> None:
        """Remove a condition from a provider.

        Raises:
            ClientError: if it has none with this key, or the endpoint does not answer.
        """
        self._client.call("DELETE", _path(provider, key), extended=True)


def _path(provider: str, key: str) -> str:
    return f"/treeclaim/providers/{provider}/conditions/{escaped(key)}"
