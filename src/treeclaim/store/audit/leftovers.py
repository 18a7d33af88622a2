# SPDX-License-Identifier: Apache-2.0
"""Findings about rows of nothing, and about what nothing refers to."""

from typing import Any

import sqlalchemy as sa

from treeclaim.model.extension.audit import Findings
from treeclaim.model.names import CUSTOM_PREFIX, FIRST_CUSTOM_CLASS_ID
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import (
    ROWS_OF_PROVIDERS,
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

PARTS = {str(table.name): table for table in ROWS_OF_PROVIDERS}
"""Tables whose rows belong to a provider, by name."""


def without_provider(transaction: ReadTransaction, limit: int) -> Findings:
    """Find rows of providers that do not exist, one finding for each table and provider."""
    found = [
        {"table": name, "provider_id": row[0]}
        for name, table in PARTS.items()
        for row in transaction.rows(_of_nothing(table))
    ]
    return Findings.of(found, limit)


def _of_nothing(table: sa.Table) -> sa.Select[Any]:
    provider_id = table.c.resource_provider_id
    return (
        sa.select(provider_id)
        .select_from(table.outerjoin(resource_providers, resource_providers.c.id == provider_id))
        .where(resource_providers.c.id.is_(None))
        .distinct()
        .order_by(provider_id)
    )


def unused_aggregate(transaction: ReadTransaction, limit: int) -> Findings:
    """Find aggregates that no provider is in."""
    members = sa.select(resource_provider_aggregates.c.aggregate_id)
    found = (
        sa.select(placement_aggregates.c.uuid)
        .where(placement_aggregates.c.id.not_in(members))
        .order_by(placement_aggregates.c.uuid)
    )
    rows = transaction.rows(found)
    return Findings.of([{"uuid": uuid} for (uuid,) in rows], limit)


def unused_trait(transaction: ReadTransaction, limit: int) -> Findings:
    """Find custom traits that no provider has."""
    used = sa.select(resource_provider_traits.c.trait_id)
    rows = transaction.rows(
        sa.select(traits.c.name).where(traits.c.id.not_in(used)).order_by(traits.c.name)
    )
    return Findings.of(
        [{"name": name} for (name,) in rows if name.startswith(CUSTOM_PREFIX)], limit
    )


def unused_class(transaction: ReadTransaction, limit: int) -> Findings:
    """Find custom resource classes without inventory and without allocation."""
    used = [sa.select(table.c.resource_class_id) for table in (inventories, allocations)]
    rows = transaction.rows(
        sa.select(resource_classes.c.name)
        .where(
            resource_classes.c.id >= FIRST_CUSTOM_CLASS_ID,
            *(resource_classes.c.id.not_in(some) for some in used),
        )
        .order_by(resource_classes.c.name)
    )
    return Findings.of([{"name": name} for (name,) in rows], limit)
