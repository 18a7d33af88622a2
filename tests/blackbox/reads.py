# SPDX-License-Identifier: Apache-2.0
"""A random read of a world."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from tests.blackbox import pools
from tests.blackbox.candidate_queries import (
    candidate_query,
    member_of,
    required,
    resources,
)
from tests.blackbox.pools import Pool
from tests.blackbox.requests import Request

MALFORMED = ("", "word", "in:", "!", "VCPU", "VCPU:", "%ff", "a,,b")


def read(pool: Pool) -> Request:
    """Return a random read of the world that `pool` describes."""
    kinds, weights = zip(*KINDS, strict=True)
    request: Request = pool.random.choices(kinds, weights)[0](pool)
    if pool.chance(0.01):
        accept = pool.random.choice(
            ("text/plain", "text/html", "application/*", "image/png;q=0.5")
        )
        return Request("GET", request.path, request.minor, headers={"accept": accept})
    return request


def with_query(path: str, parameters: list[tuple[str, str]]) -> str:
    """A path with its parameters."""
    return f"{path}?{urlencode(parameters)}" if parameters else path


def provider_list(pool: Pool) -> Request:
    """The list of providers, with up to three filters."""
    minor = pool.version()
    filters: dict[str, Callable[[], str]] = {
        "name": pool.some_name,
        "uuid": pool.provider,
        "member_of": lambda: member_of(pool, minor),
        "resources": lambda: resources(pool),
        "in_tree": pool.provider,
        "required": lambda: required(pool, minor),
    }
    since = {"member_of": 3, "resources": 4, "in_tree": 14, "required": 18}
    known = [name for name in filters if since.get(name, 0) <= minor or pool.chance(0.02)]
    chosen = [pool.random.choice(known) for _ in range(pool.random.choice((0, 1, 1, 2, 3)))]
    parameters = [(name, filters[name]()) for name in chosen]
    if parameters and pool.chance(0.05):
        name = pool.random.choice((*chosen, "colour"))
        parameters.append((name, pool.random.choice(MALFORMED)))
    return Request("GET", with_query("/resource_providers", parameters), minor)


def provider_part(pool: Pool) -> Request:
    """A provider, or something that belongs to it."""
    parts = ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations")
    part = pool.random.choice(parts)
    since = {"/aggregates": 1, "/traits": 6}.get(part, 0)
    return Request("GET", f"/resource_providers/{pool.provider()}{part}", pool.version(since))


def one_inventory(pool: Pool) -> Request:
    """The inventory of one class."""
    path = f"/resource_providers/{pool.provider()}/inventories/{pool.resource_class()}"
    return Request("GET", path, pool.version())


def consumer_allocations(pool: Pool) -> Request:
    """Return a read of the allocations of a consumer."""
    return Request("GET", f"/allocations/{pool.consumer()}", pool.version())


def project_usages(pool: Pool) -> Request:
    """Return a read of the usages of a project, at times by user or consumer type."""
    minor = pool.version(9)
    parameters = [("project_id", pool.random.choice((*pools.PROJECTS, "nobody")))]
    if pool.chance(0.4):
        parameters.append(("user_id", pool.random.choice(pools.USERS)))
    if pool.chance(0.4):
        kinds = (*pools.TYPES, "all", "unknown", "ALL", "allies", "pony", "")
        parameters.append(("consumer_type", pool.random.choice(kinds)))
    if pool.chance(0.04):
        del parameters[0]
    return Request("GET", with_query("/usages", parameters), minor)


def catalogue(pool: Pool) -> Request:
    """Resource classes or traits."""
    if pool.chance(0.5):
        names = ("", "/VCPU", "/CUSTOM_ALPHA", "/CUSTOM_SPARE", "/custom")
        return Request("GET", f"/resource_classes{pool.random.choice(names)}", pool.version(2))
    parameters = []
    if pool.chance(0.6):
        values = ("in:CUSTOM_GOLD,CUSTOM_LEAD,X", "startswith:CUSTOM_", "foo:bar", "word", "in:")
        parameters.append(("name", pool.random.choice(values)))
    if pool.chance(0.4):
        parameters.append(("associated", pool.random.choice(("true", "False", "maybe"))))
    path = with_query("/traits", parameters) if parameters else f"/traits/{pool.trait()}"
    return Request("GET", path, pool.version(6))


def candidates(pool: Pool) -> Request:
    """Candidates for a random question."""
    minor = pool.version(10)
    return Request(
        "GET", with_query("/allocation_candidates", candidate_query(pool, minor)), minor
    )


def oddity(pool: Pool) -> Request:
    """Methods and paths that are not there."""
    paths = ("/", "/nowhere", "/resource_providers/", "/allocations", "/reshaper", "/traits/a/b")
    return Request("GET", pool.random.choice(paths), pool.version())


KINDS: tuple[tuple[Callable[[Pool], Request], int], ...] = (
    (candidates, 50),
    (provider_list, 18),
    (provider_part, 14),
    (one_inventory, 3),
    (consumer_allocations, 6),
    (project_usages, 5),
    (catalogue, 4),
    (oddity, 1),
)
