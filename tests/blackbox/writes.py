# SPDX-License-Identifier: Apache-2.0
"""A random write: mostly sensible, often refused."""

from __future__ import annotations

from collections.abc import Callable

from tests.blackbox import pools, worlds
from tests.blackbox.allocation_writes import claim, claims, release, reshape
from tests.blackbox.pools import Pool
from tests.blackbox.requests import Body, ProviderGeneration, Request

AGGREGATES_AS_OBJECT = 19
NESTED = 14


def write(pool: Pool) -> Request:
    """Return a random write to the world that `pool` describes."""
    kinds, weights = zip(*KINDS, strict=True)
    request: Request = pool.random.choices(kinds, weights)[0](pool)
    return _spoilt(pool, request) if pool.chance(0.06) else request


def _spoilt(pool: Pool, request: Request) -> Request:
    """The request with a body that no schema allows, or a foreign media type."""
    if not isinstance(request.body, dict) or not request.body:
        return request
    body = dict(request.body)
    key = pool.random.choice(list(body))
    match pool.random.randint(0, 4):
        case 0:
            del body[key]
        case 1:
            body["surplus"] = 1
        case 2:
            body[key] = pool.random.choice((None, -1, "word", [], {}, True))
        case 3:
            return Request(request.method, request.path, request.minor, "{not json")
        case _:
            headers = {"content-type": "text/plain"}
            return Request(request.method, request.path, request.minor, "text", headers)
    return Request(request.method, request.path, request.minor, body, request.headers)


def _generation(pool: Pool, provider: str) -> ProviderGeneration:
    return ProviderGeneration(provider, pool.random.choice((-1, 1)) if pool.chance(0.06) else 0)


def create_provider(pool: Pool) -> Request:
    """A new provider, rarely with a uuid or name that is taken."""
    uuid = pool.new_uuid() if pool.chance(0.9) else pool.provider()
    name = pool.new_name() if pool.chance(0.9) else pool.some_name()
    body: dict[str, Body] = {"name": name, "uuid": uuid}
    minor = pool.version()
    if pool.chance(0.5):
        body["parent_provider_uuid"] = pool.random.choice((None, pool.provider(), pool.provider()))
    if uuid not in pool.providers:
        pool.providers.append(uuid)
    return Request("POST", "/resource_providers", minor, body)


def change_provider(pool: Pool) -> Request:
    """Another name, at times another parent."""
    body: dict[str, Body] = {"name": pool.new_name() if pool.chance(0.8) else pool.some_name()}
    if pool.chance(0.7):
        body["parent_provider_uuid"] = None if pool.chance(0.3) else pool.provider()
    return Request("PUT", f"/resource_providers/{pool.provider()}", pool.version(NESTED), body)


def delete_provider(pool: Pool) -> Request:
    """The end of a provider."""
    return Request("DELETE", f"/resource_providers/{pool.provider()}", pool.version())


def replace_inventories(pool: Pool) -> Request:
    """All inventories of a provider."""
    uuid = pool.provider()
    names = {pool.resource_class() for _ in range(pool.random.randint(0, 4))}
    names |= pool.inventories.get(uuid, set()) if pool.chance(0.7) else set()
    pool.inventories[uuid] = names
    body = {
        "resource_provider_generation": _generation(pool, uuid),
        "inventories": {name: _record(pool) for name in sorted(names)},
    }
    return Request("PUT", f"/resource_providers/{uuid}/inventories", pool.version(), body)


def add_inventory(pool: Pool) -> Request:
    """Return a write of another inventory."""
    uuid, name = pool.provider(), pool.resource_class()
    pool.inventories.setdefault(uuid, set()).add(name)
    body = {"resource_class": name, **_record(pool)}
    return Request("POST", f"/resource_providers/{uuid}/inventories", pool.version(), body)


def replace_inventory(pool: Pool) -> Request:
    """Another amount of a class, mostly one that the provider has."""
    uuid = pool.provider()
    owned = sorted(pool.inventories.get(uuid, ()))
    name = pool.random.choice(owned) if owned and pool.chance(0.8) else pool.resource_class()
    body = {"resource_provider_generation": _generation(pool, uuid), **_record(pool)}
    return Request("PUT", f"/resource_providers/{uuid}/inventories/{name}", pool.version(), body)


def _record(pool: Pool) -> Body:
    record = worlds.inventory(pool)
    if pool.chance(0.03):
        key = pool.random.choice(("total", "reserved", "min_unit", "max_unit", "step_size"))
        record[key] = pool.random.choice((0, -1, 2147483647, 2147483648, 1.5, "1"))
    return record


def delete_inventory(pool: Pool) -> Request:
    """The end of one inventory, or of all."""
    path = f"/resource_providers/{pool.provider()}/inventories"
    if pool.chance(0.4):
        return Request("DELETE", path, pool.version(5))
    return Request("DELETE", f"{path}/{pool.resource_class()}", pool.version())


def replace_aggregates(pool: Pool) -> Request:
    """The aggregates of a provider, mostly in the form of the version."""
    uuid, minor = pool.provider(), pool.version(1)
    aggregates: Body = pool.some(pools.AGGREGATES, 3)
    if pool.chance(0.04):
        aggregates = [*aggregates, pool.random.choice(("word", pools.AGGREGATES[0].upper()))]
    body = aggregates
    if (minor >= AGGREGATES_AS_OBJECT) != pool.chance(0.03):
        body = {
            "aggregates": aggregates,
            "resource_provider_generation": _generation(pool, uuid),
        }
    return Request("PUT", f"/resource_providers/{uuid}/aggregates", minor, body)


def replace_traits(pool: Pool) -> Request:
    """The traits of a provider, at times none."""
    uuid = pool.provider()
    if pool.chance(0.1):
        return Request("DELETE", f"/resource_providers/{uuid}/traits", pool.version(6))
    names = [pool.trait() for _ in range(pool.random.randint(0, 4))]
    body = {"resource_provider_generation": _generation(pool, uuid), "traits": names}
    return Request("PUT", f"/resource_providers/{uuid}/traits", pool.version(6), body)


def change_trait(pool: Pool) -> Request:
    """A custom trait comes or goes."""
    name = pool.random.choice((*pools.CUSTOM_TRAITS, "CUSTOM_SPARE", "HW_CPU_X86_AVX", "CUSTOM_x"))
    return Request(
        pool.random.choice(("PUT", "PUT", "DELETE")), f"/traits/{name}", pool.version(6)
    )


def change_class(pool: Pool) -> Request:
    """A custom resource class comes, goes or is renamed."""
    names = (*pools.CUSTOM_CLASSES, "CUSTOM_SPARE", "CUSTOM_OTHER", "VCPU", "custom")
    name = pool.random.choice(names)
    match pool.random.randint(0, 3):
        case 0:
            body = {"name": name}
            return Request("POST", "/resource_classes", pool.version(2), body)
        case 1:
            return Request("PUT", f"/resource_classes/{name}", pool.version(7))
        case 2:
            body = {"name": pool.random.choice(("CUSTOM_SPARE", "CUSTOM_OTHER", "CUSTOM_ALPHA"))}
            spare = pool.random.choice(("CUSTOM_SPARE", "CUSTOM_OTHER", name))
            return Request("PUT", f"/resource_classes/{spare}", pool.random.randint(2, 6), body)
        case _:
            return Request("DELETE", f"/resource_classes/{name}", pool.version(2))


KINDS: tuple[tuple[Callable[[Pool], Request], int], ...] = (
    (create_provider, 6),
    (change_provider, 10),
    (delete_provider, 5),
    (replace_inventories, 10),
    (add_inventory, 8),
    (replace_inventory, 6),
    (delete_inventory, 5),
    (replace_aggregates, 8),
    (replace_traits, 10),
    (change_trait, 3),
    (change_class, 4),
    (claim, 30),
    (claims, 10),
    (release, 6),
    (reshape, 8),
)
