# SPDX-License-Identifier: Apache-2.0
"""Loads a world over HTTP, into an endpoint whose database nobody here can reach."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.clouds import BenchProvider, World

_THREADS = 4
_TIMEOUT = 300.0
_ATTEMPTS = 20


def load_world(url: str, world: World, token: str = "admin") -> None:
    """Create a world's providers, level by level."""
    headers = {"X-Auth-Token": token, "OpenStack-API-Version": "placement 1.39"}
    with (
        httpx.Client(base_url=url, timeout=_TIMEOUT, headers=headers) as client,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        waiting = list(world.providers)
        known: set[str | None] = {None}
        while waiting:
            level = [provider for provider in waiting if provider.parent in known]
            list(pool.map(lambda one: _create(client, one), level))
            known.update(provider.uuid for provider in level)
            waiting = [provider for provider in waiting if provider.uuid not in known]


def _create(client: httpx.Client, one: BenchProvider) -> None:
    body: dict[str, object] = {
        "name": one.name,
        "uuid": one.uuid,
        "parent_provider_uuid": one.parent,
    }
    _insist(client, "POST", "/resource_providers", body)
    generation = 0
    parts: dict[str, object] = {
        "inventories": {name: {"total": total} for name, total in one.inventories.items()},
        "traits": one.traits,
        "aggregates": one.aggregates,
    }
    for name in one.traits:
        if name.startswith("CUSTOM_"):
            _insist(client, "PUT", f"/traits/{name}", None)
    for name, value in parts.items():
        if value:
            body = {name: value, "resource_provider_generation": generation}
            _insist(client, "PUT", f"/resource_providers/{one.uuid}/{name}", body)
            generation += 1


def _insist(client: httpx.Client, method: str, path: str, body: object) -> None:
    """Make a write that must succeed; some services answer 5xx when two writers meet."""
    for _ in range(_ATTEMPTS):
        response = client.request(method, path, json=body)
        if not response.is_server_error:
            break
    response.raise_for_status()
