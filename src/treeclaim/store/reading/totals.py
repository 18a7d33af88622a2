# SPDX-License-Identifier: Apache-2.0
"""Sums by resource class: over the whole cloud, and over each aggregate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
)


@dataclass(frozen=True, slots=True)
class Total:
    """The sums of one resource class.

    Attributes:
        aggregate: Uuid; empty for the whole cloud.
        resource_class: Name.
        capacity: (total - reserved) x allocation_ratio, summed up.
        reserved: Summed up.
        used: By all claims.
    """

    aggregate: str
    resource_class: str
    capacity: float
    reserved: float
    used: float


_CAPACITY = (inventories.c.total - inventories.c.reserved) * inventories.c.allocation_ratio


def of_cloud(transaction: ReadTransaction) -> list[Total]:
    """Return the sums over all providers, by resource class."""
    return _sums(transaction, [sa.literal("").label("aggregate")], None)


def of_aggregates(transaction: ReadTransaction) -> list[Total]:
    """Return the sums over the providers of each aggregate, by resource class."""
    members = resource_provider_aggregates.join(
        placement_aggregates,
        placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
    )
    return _sums(transaction, [placement_aggregates.c.uuid.label("aggregate")], members)


def _sums(
    transaction: ReadTransaction, columns: Sequence[Any], members: sa.Join | None
) -> list[Total]:
    # The sums read whole tables.
    transaction.extend_timeouts()
    reserved = sa.func.sum(inventories.c.reserved).label("reserved")
    supply = _by_class(inventories, columns, members, [sa.func.sum(_CAPACITY), reserved])
    demand = _by_class(allocations, columns, members, [sa.func.sum(allocations.c.used)])
    used = {(row[0], row[1]): float(row[2]) for row in transaction.rows(demand)}
    return [
        Total(row[0], row[1], float(row[2]), float(row[3]), used.get((row[0], row[1]), 0.0))
        for row in transaction.rows(supply)
    ]


def _by_class(
    table: sa.Table, columns: Sequence[Any], members: sa.Join | None, sums: Sequence[Any]
) -> sa.Select[Any]:
    source = table.join(resource_classes, resource_classes.c.id == table.c.resource_class_id)
    if members is not None:
        source = source.join(
            members,
            resource_provider_aggregates.c.resource_provider_id == table.c.resource_provider_id,
        )
    groups = [resource_classes.c.name]
    if members is not None:
        groups.append(placement_aggregates.c.uuid)
    return (
        sa.select(*columns, resource_classes.c.name, *sums)
        .select_from(source)
        .group_by(*groups)
        .order_by(*groups)
    )
