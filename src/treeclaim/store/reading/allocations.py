# SPDX-License-Identifier: Apache-2.0
"""Allocations of a consumer, and on a provider (contract page 70, sections 2 and 6)."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.model.claim import (
    AllocationEntry,
    ConsumerAllocations,
    ProviderAllocations,
)
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, seconds
from treeclaim.store.reading.holdings_of_many import OWNED
from treeclaim.store.schema.tables import allocations, resource_classes
from treeclaim.store.schema.tables import consumers as consumer_rows
from treeclaim.store.schema.tables import resource_providers as provider_table

_OF_CONSUMER = CompiledStatement(
    sa.select(
        provider_table.c.uuid,
        provider_table.c.generation,
        resource_classes.c.name,
        allocations.c.used,
        allocations.c.created_at,
        allocations.c.updated_at,
    )
    .select_from(allocations)
    .join(provider_table, provider_table.c.id == allocations.c.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .where(allocations.c.consumer_id == sa.bindparam("consumer_uuid"))
    .order_by(allocations.c.id)
)
_OWNER = CompiledStatement(OWNED.where(consumer_rows.c.uuid == sa.bindparam("consumer_uuid")))
_ON_PROVIDER = CompiledStatement(
    sa.select(
        provider_table.c.uuid,
        provider_table.c.generation.label("provider_generation"),
        allocations.c.consumer_id,
        consumer_rows.c.uuid.label("recorded_consumer"),
        consumer_rows.c.generation,
        resource_classes.c.name,
        allocations.c.used,
        allocations.c.created_at,
        allocations.c.updated_at,
    )
    .select_from(provider_table)
    # Not nested: SQLite would compute a join inside of an outer join for all allocations.
    .outerjoin(allocations, allocations.c.resource_provider_id == provider_table.c.id)
    .outerjoin(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .outerjoin(consumer_rows, consumer_rows.c.uuid == allocations.c.consumer_id)
    .where(provider_table.c.uuid == sa.bindparam("provider_uuid"))
    .order_by(allocations.c.id)
)


def of_consumer(
    transaction: ReadTransaction, consumer_uuid: str, *, may_be_empty: bool = False
) -> ConsumerAllocations | None:
    """Return the allocations of a consumer, None if it has none (section 2).

    A hold may have a record and no allocations (page 100, section 1): `may_be_empty` tells of it.

    Allocations of a consumer without a row, which old databases have, are left out.
    """
    owners = transaction.rows(_OWNER, consumer_uuid=consumer_uuid)
    rows = transaction.rows(_OF_CONSUMER, consumer_uuid=consumer_uuid)
    if not owners or owners[0].uuid != consumer_uuid or not (rows or may_be_empty):
        return None
    owner = owners[0]
    generations = {row.uuid: row.generation or 0 for row in rows}
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        resources[row.uuid][row.name] = row.used
    return ConsumerAllocations(
        by_provider={
            uuid: AllocationEntry(generation, resources[uuid])
            for uuid, generation in generations.items()
        },
        project_id=owner.project,
        user_id=owner.user,
        generation=owner.generation,
        consumer_type=owner.type,
        modified_at=_newest(rows) if rows else seconds(transaction.now),
    )


def of_provider(transaction: ReadTransaction, provider_uuid: str) -> ProviderAllocations:
    """Return the allocations on a provider (section 6).

    Allocations of consumers without a row, which old databases have, are left out.

    Raises:
        ProviderNotFoundError.
    """
    provider_rows = transaction.rows(_ON_PROVIDER, provider_uuid=provider_uuid)
    # Some collations match other spellings too.
    if not provider_rows or provider_rows[0].uuid != provider_uuid:
        raise ProviderNotFoundError(provider_uuid)
    # A provider without allocations is one row of nulls.
    rows = [
        row for row in provider_rows if row.recorded_consumer is not None and row.name is not None
    ]
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    generations: dict[str, int] = {}
    for row in rows:
        resources[row.consumer_id][row.name] = row.used
        generations[row.consumer_id] = row.generation or 0
    return ProviderAllocations(
        provider_generation=provider_rows[0].provider_generation or 0,
        by_consumer={
            uuid: AllocationEntry(generation, resources[uuid])
            for uuid, generation in generations.items()
        },
        modified_at=_newest(rows) if rows else None,
    )


def _newest(rows: Sequence[Any]) -> float:
    return max(seconds(row.updated_at, row.created_at) for row in rows)
