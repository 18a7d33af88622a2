# SPDX-License-Identifier: Apache-2.0
"""Writes that plant a small random world: flat hosts, trees, sharing providers, or all of them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.blackbox import pools
from tests.blackbox.pools import Pool
from tests.blackbox.requests import Body, ProviderGeneration, Request

TOTALS = (1, 2, 4, 8, 16, 100)


def plant(pool: Pool) -> Iterator[Request]:
    """Create classes, traits, and up to four trees and two sharing providers."""
    for name in pools.CUSTOM_CLASSES:
        yield Request("PUT", f"/resource_classes/{name}")
    for name in pools.CUSTOM_TRAITS:
        yield Request("PUT", f"/traits/{name}")
    for _ in range(pool.random.randint(1, 4)):
        yield from _tree(pool, depth=pool.random.choice((1, 1, 2, 3)))
    for _ in range(pool.random.choice((0, 0, 1, 2))):
        yield from _sharing(pool)


def _tree(pool: Pool, depth: int, parent: str | None = None) -> Iterator[Request]:
    uuid = pool.new_uuid()
    yield from _provider(pool, uuid, parent)
    yield from furnish(pool, uuid)
    if depth > 1:
        for _ in range(pool.random.randint(1, 2)):
            yield from _tree(pool, depth - 1, uuid)


def _sharing(pool: Pool) -> Iterator[Request]:
    uuid = pool.new_uuid()
    parent = pool.random.choice(pool.providers) if pool.chance(0.2) else None
    yield from _provider(pool, uuid, parent)
    yield _inventories(pool, uuid, {"DISK_GB": inventory(pool)})
    yield _traits(uuid, [pools.SHARING, *pool.some(pools.STANDARD_TRAITS, 1)])
    yield _aggregates(uuid, [pool.aggregate() for _ in range(1)])


def _provider(pool: Pool, uuid: str, parent: str | None) -> Iterator[Request]:
    pool.providers.append(uuid)
    body = {"name": pool.new_name(), "uuid": uuid, "parent_provider_uuid": parent}
    yield Request("POST", "/resource_providers", body=body)


def furnish(pool: Pool, uuid: str) -> Iterator[Request]:
    """Give a provider inventories, traits and aggregates."""
    classes = pool.some(pools.STANDARD_CLASSES + pools.CUSTOM_CLASSES, 3)
    yield _inventories(pool, uuid, {name: inventory(pool) for name in classes})
    traits = pool.some(pools.STANDARD_TRAITS + pools.CUSTOM_TRAITS, 3)
    if traits:
        yield _traits(uuid, traits)
    aggregates = pool.some(pools.AGGREGATES, 2)
    if aggregates:
        yield _aggregates(uuid, aggregates)


def inventory(pool: Pool) -> Body:
    """A random inventory, mostly a plain one."""
    record: dict[str, int | float] = {"total": pool.random.choice(TOTALS)}
    if pool.chance(0.2):
        record["reserved"] = pool.random.choice((0, 1, 2))
    if pool.chance(0.2):
        record["allocation_ratio"] = pool.random.choice((0.5, 1.5, 2.0, 16.0))
    if pool.chance(0.15):
        record["min_unit"] = pool.random.choice((1, 2, 4))
    if pool.chance(0.15):
        record["max_unit"] = pool.random.choice((1, 2, 4, 8))
    if pool.chance(0.15):
        record["step_size"] = pool.random.choice((1, 2, 3))
    return record


def _inventories(pool: Pool, uuid: str, records: Body) -> Request:
    pool.inventories[uuid] = set(records)
    body = {"resource_provider_generation": ProviderGeneration(uuid), "inventories": records}
    return Request("PUT", f"/resource_providers/{uuid}/inventories", body=body)


def _traits(uuid: str, names: list[str]) -> Request:
    body = {"resource_provider_generation": ProviderGeneration(uuid), "traits": names}
    return Request("PUT", f"/resource_providers/{uuid}/traits", body=body)


def _aggregates(uuid: str, aggregates: list[str]) -> Request:
    body = {"resource_provider_generation": ProviderGeneration(uuid), "aggregates": aggregates}
    return Request("PUT", f"/resource_providers/{uuid}/aggregates", body=body)
