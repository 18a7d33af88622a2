# SPDX-License-Identifier: Apache-2.0
"""Looks up the objects that claims name, and the current allocations of their consumers, in one round trip."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from treeclaim.model.claim import ConsumerClaim, Omission
from treeclaim.store.database.transactions import ReadTransaction

Usage = Counter[tuple[int, int]]
"""Units by (provider id, class id)."""

NAME_COLUMNS = {"projects": "external_id", "users": "external_id", "consumer_types": "name"}
"""The name column of each table of owners."""

OwnerName = tuple[str, str]
"""The table of a project, user or consumer type, and its name."""

_ALLOCATIONS = """
SELECT 'allocation' AS kind, resource_provider_id AS id, PLAIN(consumer_id) AS name,
    resource_class_id AS class_id, used FROM allocations WHERE consumer_id IN :names_allocation
"""


def _select_part(
    kind: str, table: str, name: str, number: str = "id", filter_column: str | None = None
) -> str:
    """Return the query for the rows of a table with the names `:names_KIND`, or with these values of `filter_column`."""
    columns = f"'{kind}', {number}, PLAIN({name}), 0, 0"
    return f"SELECT {columns} FROM {table} WHERE {filter_column or name} IN :names_{kind}"


_ALL_PARTS = " UNION ALL ".join(
    (
        _ALLOCATIONS,
        _select_part("consumer", "consumers", "uuid"),
        *(_select_part(table, table, name) for table, name in NAME_COLUMNS.items()),
        _select_part("class", "resource_classes", "name"),
        _select_part("hold", "treeclaim_holds", "uuid", "0"),
        _select_part("draw", "treeclaim_draws", "hold_uuid", "0", "consumer_uuid"),
        _select_part(
            "request",
            "treeclaim_requests",
            "consumer_uuid",
            "CASE WHEN gone_at IS NULL THEN 0 ELSE 1 END",
        ),
        "SELECT 'consumption', 0, NULL, 0, 0 WHERE EXISTS (SELECT 1 FROM treeclaim_consumption)",
    )
)


@dataclass(frozen=True, slots=True)
class CurrentAllocation:
    """An allocation before a write."""

    provider_id: int
    class_id: int
    used: int


@dataclass(frozen=True, slots=True)
class CurrentAllocations:
    """The allocations of consumers before a write, by UUID; consumers without allocations are omitted."""

    by_consumer: Mapping[str, Sequence[CurrentAllocation]]

    def list_allocations(self, consumer_uuids: Iterable[str]) -> list[CurrentAllocation]:
        """Return the allocations of these consumers."""
        return [
            allocation
            for consumer_uuid in consumer_uuids
            for allocation in self.by_consumer.get(consumer_uuid, ())
        ]

    def list_providers(self, consumer_uuids: Iterable[str]) -> set[int]:
        """Return the ids of the providers of the allocations of these consumers."""
        return {allocation.provider_id for allocation in self.list_allocations(consumer_uuids)}

    def sum_usage(self, consumer_uuids: Iterable[str]) -> Usage:
        """Return the sum of the allocations of these consumers."""
        usage: Usage = Counter()
        for allocation in self.list_allocations(consumer_uuids):
            usage[allocation.provider_id, allocation.class_id] += allocation.used
        return usage


@dataclass(frozen=True, slots=True)
class Lookup:
    """The existing objects that claims name.

    Attributes:
        consumers: UUIDs of the consumers with a row.
        terms: UUIDs of the consumers and sources with terms of a hold.
        drawn_hold_uuids: UUIDs of the holds from which the consumers have drawn.
        kept_requests: The consumers with a kept request, and whether it is marked as without a record.
        is_consuming: Whether any inventory of the cloud consumes another one.
    """

    current_allocations: CurrentAllocations
    consumers: AbstractSet[str]
    owners: Mapping[OwnerName, int]
    class_ids: Mapping[str, int]
    terms: AbstractSet[str]
    drawn_hold_uuids: AbstractSet[str]
    kept_requests: Mapping[str, bool]
    is_consuming: bool


def look_up_names(transaction: ReadTransaction, claims: Sequence[ConsumerClaim]) -> Lookup:
    """Look up the objects that claims name, by exact names."""
    uuids = [claim.consumer_uuid for claim in claims]
    # Without claims, an empty name lets the query still read whether any inventory consumes another one.
    names = {"allocation": set(uuids), "consumer": set(uuids) or {""}}
    owners = list_owner_names(claims)
    for owner_table in NAME_COLUMNS:
        names[owner_table] = {name for table, name in owners if table == owner_table}
    names["class"] = {
        name for claim in claims for resources in claim.allocations.values() for name in resources
    }
    names["hold"] = set(uuids).union(*(claim.from_holds for claim in claims))
    names["draw"] = names["request"] = set(uuids)
    parameters = {f"names_{kind}": sorted(kind_names) for kind, kind_names in names.items()}
    rows_by_kind: dict[str, list[Any]] = defaultdict(list)
    for row in transaction.rows_in_chunks(_ALL_PARTS, **parameters):
        # Some collations also match other spellings. The name in a row of a draw is its hold.
        if row.kind in {"draw", "consumption"} or row.name in names[row.kind]:
            rows_by_kind[row.kind].append(row)
    return Lookup(
        current_allocations=_group_by_consumer(rows_by_kind["allocation"]),
        consumers={row.name for row in rows_by_kind["consumer"]},
        owners={
            (table, row.name): row.id for table in NAME_COLUMNS for row in rows_by_kind[table]
        },
        class_ids={row.name: row.id for row in rows_by_kind["class"]},
        terms={row.name for row in rows_by_kind["hold"]},
        drawn_hold_uuids={row.name for row in rows_by_kind["draw"]},
        kept_requests={row.name: bool(row.id) for row in rows_by_kind["request"]},
        is_consuming=bool(rows_by_kind["consumption"]),
    )


def load_current_allocations(
    transaction: ReadTransaction, uuids: Sequence[str]
) -> CurrentAllocations:
    """Load the allocations of consumers."""
    sorted_uuids = sorted(uuids)
    rows = transaction.rows_in_chunks(_ALLOCATIONS, names_allocation=sorted_uuids)
    exact_uuids = set(sorted_uuids)
    return _group_by_consumer([row for row in rows if row.name in exact_uuids])


def list_owner_names(claims: Sequence[ConsumerClaim]) -> list[OwnerName]:
    """Return the owners of claims; a claim without allocations needs none."""
    names: dict[OwnerName, None] = {}
    for claim in claims:
        if not claim.allocations:
            continue
        names["projects", claim.project_id] = None
        names["users", claim.user_id] = None
        if not isinstance(claim.consumer_type, Omission):
            names["consumer_types", claim.consumer_type] = None
    return list(names)


def _group_by_consumer(rows: Sequence[Any]) -> CurrentAllocations:
    by_consumer: dict[str, list[CurrentAllocation]] = defaultdict(list)
    for row in rows:
        by_consumer[row.name].append(CurrentAllocation(row.id, row.class_id, row.used))
    return CurrentAllocations(dict(by_consumer))
