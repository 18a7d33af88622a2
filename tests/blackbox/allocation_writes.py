# SPDX-License-Identifier: Apache-2.0
"""Random claims, releases and reshapings, in the form that each microversion wants."""

from __future__ import annotations

from tests.blackbox import pools, worlds
from tests.blackbox.pools import Pool
from tests.blackbox.requests import Body, ConsumerGeneration, ProviderGeneration, Request

WITH_OWNER = 8
AS_OBJECT = 12
SEVERAL = 13
WITH_GENERATION = 28
RESHAPER = 30
WITH_MAPPINGS = 34
WITH_TYPE = 38
AMOUNTS = (1, 1, 1, 1, 2, 2, 3, 4, 8)


def claim(pool: Pool) -> Request:
    """A claim for one consumer, in the form of the version."""
    consumer, minor = pool.consumer(), pool.version()
    body = consumer_body(pool, consumer, minor)
    return Request("PUT", f"/allocations/{consumer}", minor, body)


def claims(pool: Pool) -> Request:
    """Claims for up to three consumers in one request."""
    minor = pool.version(SEVERAL)
    chosen = pool.random.sample(pools.CONSUMERS, pool.random.randint(1, 3))
    body = {consumer: consumer_body(pool, consumer, max(minor, SEVERAL)) for consumer in chosen}
    return Request("POST", "/allocations", minor, body)


def release(pool: Pool) -> Request:
    """The end of all that a consumer holds."""
    return Request("DELETE", f"/allocations/{pool.consumer()}", pool.version())


def reshape(pool: Pool) -> Request:
    """Inventories of one or two providers, and claims of up to two consumers, at once."""
    minor = pool.version(RESHAPER)
    chosen = {pool.provider() for _ in range(pool.random.randint(1, 2))}
    inventories = {uuid: _reshaped(pool, uuid) for uuid in sorted(chosen)}
    consumers = pool.random.sample(pools.CONSUMERS, pool.random.randint(0, 2))
    body = {
        "inventories": inventories,
        "allocations": {
            uuid: consumer_body(pool, uuid, max(minor, RESHAPER)) for uuid in consumers
        },
    }
    return Request("POST", "/reshaper", minor, body, {"x-roles": "admin,service"})


def _reshaped(pool: Pool, uuid: str) -> Body:
    names = set(pool.inventories.get(uuid, set()))
    if names and pool.chance(0.3):
        names.discard(pool.random.choice(sorted(names)))
    if pool.chance(0.4):
        names.add(pool.resource_class())
    pool.inventories[uuid] = names
    offset = -1 if pool.chance(0.05) else 0
    return {
        "resource_provider_generation": ProviderGeneration(uuid, offset),
        "inventories": {name: worlds.inventory(pool) for name in sorted(names)},
    }


def consumer_body(pool: Pool, consumer: str, minor: int) -> dict[str, Body]:
    """Return the claim of one consumer, in the form of `minor`."""
    wanted = _wanted(pool)
    if minor >= AS_OBJECT:
        body: dict[str, Body] = {
            "allocations": {uuid: {"resources": amounts} for uuid, amounts in wanted.items()}
        }
    else:
        items = [
            {"resource_provider": {"uuid": uuid}, "resources": amounts}
            for uuid, amounts in wanted.items()
        ]
        body = {"allocations": items}
    return body | _attributes(pool, consumer, minor)


def _attributes(pool: Pool, consumer: str, minor: int) -> dict[str, Body]:
    attributes: dict[str, Body] = {}
    if minor >= WITH_OWNER:
        attributes["project_id"] = pool.random.choice(pools.PROJECTS)
        attributes["user_id"] = pool.random.choice(pools.USERS)
    if minor >= WITH_GENERATION:
        attributes["consumer_generation"] = ConsumerGeneration(consumer, pool.chance(0.05))
    if minor >= WITH_MAPPINGS and pool.chance(0.2):
        attributes["mappings"] = {"": [pool.provider()]}
    if minor >= WITH_TYPE:
        attributes["consumer_type"] = pool.random.choice(pools.TYPES)
    return attributes


def _wanted(pool: Pool) -> dict[str, dict[str, int]]:
    if pool.chance(0.08):
        return {}
    wanted = {}
    for _ in range(pool.random.choice((1, 1, 2, 3))):
        uuid = pool.provider()
        owned = sorted(pool.inventories.get(uuid, ()))
        names = {
            pool.random.choice(owned) if owned and pool.chance(0.92) else pool.resource_class()
            for _ in range(pool.random.choice((1, 1, 2)))
        }
        wanted[uuid] = {name: pool.random.choice(AMOUNTS) for name in sorted(names)}
    return wanted
