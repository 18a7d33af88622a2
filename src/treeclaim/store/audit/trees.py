# SPDX-License-Identifier: Apache-2.0
"""Findings about trees: roots, parents, duplicate hosts, consumers in several trees."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.model.claim import HOLD_TYPE
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.store.database.transactions import ReadTransaction

HOLD_UUIDS = f"""
SELECT treeclaim_holds.uuid FROM treeclaim_holds
JOIN consumers holders ON holders.uuid = treeclaim_holds.uuid
JOIN consumer_types t ON t.id = holders.consumer_type_id AND t.name = '{HOLD_TYPE}'
"""
"""The uuids of existing holds."""

Item = Mapping[str, Any]
"""A finding, as in the response."""

_PROVIDERS = """
SELECT id, uuid, name, parent_provider_id, root_provider_id FROM resource_providers ORDER BY id
"""
_SHARING = f"""
SELECT resource_provider_id FROM resource_provider_traits JOIN traits ON traits.id = trait_id
WHERE traits.name = '{SHARING_TRAIT}'
"""
_IN_MANY_TREES = f"""
SELECT DISTINCT allocations.consumer_id, allocations.resource_provider_id FROM allocations
JOIN (
    SELECT consumer_id FROM allocations
    JOIN resource_providers p ON p.id = allocations.resource_provider_id
    GROUP BY consumer_id HAVING COUNT(DISTINCT COALESCE(p.root_provider_id, p.id)) > 1
) in_many ON in_many.consumer_id = allocations.consumer_id
WHERE allocations.consumer_id NOT IN ({HOLD_UUIDS})
ORDER BY allocations.consumer_id, allocations.resource_provider_id
"""
_STOCKED = "SELECT DISTINCT resource_provider_id FROM inventories"


@dataclass(frozen=True, slots=True)
class TreeShape:
    """The hierarchy of all providers.

    Attributes:
        rows: Rows of providers by id, in order of ids.
        top: Id of the topmost ancestor by id; None where the path upwards has no end.
    """

    rows: Mapping[int, Any]
    top: Mapping[int, int | None]

    def root(self, provider_id: int) -> int:
        """Return the id of the stored root, or of the provider itself if the root does not exist."""
        stored = self.rows[provider_id].root_provider_id
        return provider_id if stored is None or stored not in self.rows else int(stored)

    def roots_shown(self, ids: Iterable[int]) -> list[dict[str, str]]:
        """Return roots as in the response, in order of creation."""
        return [
            {"uuid": self.rows[provider_id].uuid, "name": self.rows[provider_id].name or ""}
            for provider_id in sorted(ids)
        ]


def load_shape(transaction: ReadTransaction) -> TreeShape:
    """Load the hierarchy of all providers."""
    rows = {row.id: row for row in transaction.each(_PROVIDERS)}
    return TreeShape(
        rows, tops({provider_id: row.parent_provider_id for provider_id, row in rows.items()})
    )


def tops(parents: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the topmost ancestor of each provider; None if an ancestor is missing or the parents form a cycle."""
    top_by_id: dict[int, int | None] = {}
    for start in parents:
        path: dict[int, None] = {}
        current_id: int | None = start
        while (
            current_id is not None
            and current_id not in top_by_id
            and current_id not in path
            and current_id in parents
        ):
            path[current_id] = None
            last, current_id = current_id, parents[current_id]
        if current_id is None:
            top: int | None = last
        else:
            # Computed already, or None for a cycle or a missing ancestor.
            top = top_by_id.get(current_id)
        top_by_id.update(dict.fromkeys(path, top))
    return top_by_id


def find_broken_roots(_transaction: ReadTransaction, shape: TreeShape) -> Iterator[Item]:
    """Yield providers with a stored root other than their topmost ancestor."""
    for provider_id, row in shape.rows.items():
        if shape.top[provider_id] not in {None, row.root_provider_id}:
            yield {"provider": row.uuid}


def find_broken_parents(_transaction: ReadTransaction, shape: TreeShape) -> Iterator[Item]:
    """Yield providers with a missing parent, or in a cycle of parents."""
    for provider_id, row in shape.rows.items():
        parent = row.parent_provider_id
        if parent is not None and (parent not in shape.rows or _is_in_cycle(provider_id, shape)):
            yield {"provider": row.uuid}


def _is_in_cycle(provider_id: int, shape: TreeShape) -> bool:
    visited: set[int] = set()
    at: int | None = provider_id
    while at is not None and at in shape.rows and at not in visited:
        visited.add(at)
        at = shape.rows[at].parent_provider_id
    return at == provider_id


def find_split_consumers(transaction: ReadTransaction, shape: TreeShape) -> Iterator[Item]:
    """Yield consumers in several trees; sharing providers count only if all providers are (page 98)."""
    list_providers: dict[str, list[int]] = defaultdict(list)
    for consumer, provider_id in transaction.each(_IN_MANY_TREES):
        if provider_id in shape.rows:
            list_providers[consumer].append(provider_id)
    sharing = {row[0] for row in transaction.rows(_SHARING)} if list_providers else set()
    for consumer, provider_ids in list_providers.items():
        counted = [provider_id for provider_id in provider_ids if provider_id not in sharing]
        trees = {shape.root(provider_id) for provider_id in counted or provider_ids}
        if len(trees) > 1:
            yield {"consumer": consumer, "root_providers": shape.roots_shown(trees)}


def find_same_hosts(_transaction: ReadTransaction, shape: TreeShape) -> Iterator[Item]:
    """Yield roots with equal names, ignoring case and a domain after the shorter name."""
    names = {
        provider_id: (row.name or "").lower()
        for provider_id, row in shape.rows.items()
        if row.parent_provider_id is None
    }
    all_names = set(names.values())
    hosts: dict[str, list[int]] = defaultdict(list)
    for provider_id, name in names.items():
        hosts[_host(name, all_names)].append(provider_id)
    for _, provider_ids in sorted(hosts.items()):
        if len(provider_ids) > 1:
            yield {"root_providers": shape.roots_shown(provider_ids)}


def _host(name: str, all_names: Collection[str]) -> str:
    """Return the shortest existing name that equals this name without its domain or a part of it."""
    end = name.find(".", 1)
    while end > 0:
        if name[:end] in all_names:
            return name[:end]
        end = name.find(".", end + 1)
    return name


def find_empty_trees(transaction: ReadTransaction, shape: TreeShape) -> Iterator[Item]:
    """Yield the roots of trees without any inventory."""
    stocked = {shape.root(row[0]) for row in transaction.rows(_STOCKED) if row[0] in shape.rows}
    for root in dict.fromkeys(map(shape.root, shape.rows)):
        if root not in stocked:
            yield {"uuid": shape.rows[root].uuid}
