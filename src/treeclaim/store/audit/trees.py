# SPDX-License-Identifier: Apache-2.0
"""Findings about trees: roots, parents, hosts that exist twice, consumers in several trees."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from treeclaim.model.extension.audit import Findings
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import EXISTING
from treeclaim.store.schema.tables import (
    allocations,
    holds,
    inventories,
    resource_provider_traits,
    resource_providers,
    traits,
)

HOLDS = sa.select(holds.c.uuid).select_from(EXISTING)
"""The uuids of holds that exist."""

_PROVIDERS = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    resource_providers.c.name,
    resource_providers.c.parent_provider_id,
    resource_providers.c.root_provider_id,
).order_by(resource_providers.c.id)
_SHARING = (
    sa.select(resource_provider_traits.c.resource_provider_id)
    .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    .where(traits.c.name == SHARING_TRAIT)
)
_ROOT = sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id)
_IN_MANY = (
    sa.select(allocations.c.consumer_id)
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .group_by(allocations.c.consumer_id)
    .having(sa.func.count(sa.distinct(_ROOT)) > 1)
    .subquery()
)
_GIVING = (
    sa.select(allocations.c.consumer_id, allocations.c.resource_provider_id)
    .join(_IN_MANY, _IN_MANY.c.consumer_id == allocations.c.consumer_id)
    .where(allocations.c.consumer_id.not_in(HOLDS))
    .distinct()
    .order_by(allocations.c.consumer_id, allocations.c.resource_provider_id)
)
_STOCKED = sa.select(inventories.c.resource_provider_id).distinct()


@dataclass(frozen=True, slots=True)
class Shape:
    """The hierarchy of all providers.

    Attributes:
        rows: Rows of providers by id, in order of ids.
        top: Id of the topmost ancestor by id; None where the path upwards has no end.
    """

    rows: Mapping[int, Any]
    top: Mapping[int, int | None]

    def root(self, provider_id: int) -> int:
        """Return the root as it is stored, which is the provider itself where none is."""
        stored = self.rows[provider_id].root_provider_id
        return provider_id if stored is None or stored not in self.rows else int(stored)

    def roots_shown(self, ids: Iterable[int]) -> list[dict[str, str]]:
        """Return roots as clients see them, in order of creation."""
        return [
            {"uuid": self.rows[provider_id].uuid, "name": self.rows[provider_id].name or ""}
            for provider_id in sorted(ids)
        ]


def shape(transaction: ReadTransaction) -> Shape:
    """Load how all providers hang together."""
    rows = {row.id: row for row in transaction.each(_PROVIDERS)}
    return Shape(
        rows, tops({provider_id: row.parent_provider_id for provider_id, row in rows.items()})
    )


def tops(parents: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the topmost ancestor of each provider; None where one is missing, or in a circle."""
    top_by_id: dict[int, int | None] = {}
    for start in parents:
        way: dict[int, None] = {}
        at: int | None = start
        while at is not None and at not in top_by_id and at not in way and at in parents:
            way[at] = None
            last, at = at, parents[at]
        if at is None:
            top: int | None = last
        else:
            # Known already, or else a circle or a gap.
            top = top_by_id.get(at)
        top_by_id.update(dict.fromkeys(way, top))
    return top_by_id


def broken_root(transaction: ReadTransaction, limit: int) -> Findings:
    """Find providers whose root is not the top of their parents."""
    found_shape = shape(transaction)
    return Findings.of(
        [
            {"provider": row.uuid}
            for provider_id, row in found_shape.rows.items()
            if found_shape.top[provider_id] is not None
            and row.root_provider_id != found_shape.top[provider_id]
        ],
        limit,
    )


def broken_parent(transaction: ReadTransaction, limit: int) -> Findings:
    """Find providers whose parent does not exist, or that are in a circle of parents."""
    found_shape = shape(transaction)
    parents = {
        provider_id: row.parent_provider_id for provider_id, row in found_shape.rows.items()
    }
    return Findings.of(
        [
            {"provider": found_shape.rows[provider_id].uuid}
            for provider_id, parent in parents.items()
            if parent is not None
            and (parent not in parents or _is_in_circle(provider_id, parents))
        ],
        limit,
    )


def _is_in_circle(provider_id: int, parents: Mapping[int, int | None]) -> bool:
    visited: set[int] = set()
    at: int | None = provider_id
    while at is not None and at not in visited:
        visited.add(at)
        at = parents.get(at)
    return at == provider_id


def in_many_trees(transaction: ReadTransaction, limit: int) -> Findings:
    """Find consumers with several trees; sharing providers count only if all are (page 98)."""
    givers: dict[str, list[int]] = defaultdict(list)
    for consumer, provider_id in transaction.each(_GIVING):
        givers[consumer].append(provider_id)
    if not givers:
        return Findings(0, [])
    found_shape = shape(transaction)
    sharing = {row[0] for row in transaction.rows(_SHARING)}
    findings = []
    for consumer, provider_ids in givers.items():
        trees = _trees(
            [provider_id for provider_id in provider_ids if provider_id in found_shape.rows],
            sharing,
            found_shape,
        )
        if len(trees) > 1:
            findings.append(
                {"consumer": consumer, "root_providers": found_shape.roots_shown(trees)}
            )
    return Findings.of(findings, limit)


def _trees(givers: list[int], sharing: Collection[int], known_shape: Shape) -> set[int]:
    counted = [provider_id for provider_id in givers if provider_id not in sharing] or givers
    return {known_shape.root(provider_id) for provider_id in counted}


def same_host(transaction: ReadTransaction, limit: int) -> Findings:
    """Find roots whose names, in lower case, are equal but perhaps for a domain behind one."""
    found_shape = shape(transaction)
    names = {
        provider_id: (row.name or "").lower()
        for provider_id, row in found_shape.rows.items()
        if row.parent_provider_id is None
    }
    all_names = set(names.values())
    hosts: dict[str, list[int]] = defaultdict(list)
    for provider_id, name in names.items():
        hosts[_host(name, all_names)].append(provider_id)
    return Findings.of(
        [
            {"root_providers": found_shape.roots_shown(provider_ids)}
            for _, provider_ids in sorted(hosts.items())
            if len(provider_ids) > 1
        ],
        limit,
    )


def _host(name: str, all_names: Collection[str]) -> str:
    """Return the shortest known name of which this is that name, or it with a domain behind."""
    end = name.find(".", 1)
    while end > 0:
        if name[:end] in all_names:
            return name[:end]
        end = name.find(".", end + 1)
    return name


def empty_tree(transaction: ReadTransaction, limit: int) -> Findings:
    """Find trees without any inventory."""
    found_shape = shape(transaction)
    stocked = {
        found_shape.root(row[0])
        for row in transaction.rows(_STOCKED)
        if row[0] in found_shape.rows
    }
    roots = dict.fromkeys(found_shape.root(provider_id) for provider_id in found_shape.rows)
    return Findings.of(
        [
            {"uuid": found_shape.rows[provider_id].uuid}
            for provider_id in roots
            if provider_id not in stocked
        ],
        limit,
    )
