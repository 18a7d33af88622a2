# SPDX-License-Identifier: Apache-2.0
"""Aggregates of providers (contract page 40)."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.model.parts import Part
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.locks.lock_rows import (
    AGGREGATE,
    PARTS,
    share_row_locks,
    take_lock_rows,
)
from treeclaim.store.operations.locks.provider_rows import (
    lock_provider,
    raise_generation,
    require_generation,
)
from treeclaim.store.schema.tables import placement_aggregates, resource_provider_aggregates

# Locked, because a repair of an audit may delete one that no provider is in.
_NAMED = share_row_locks(
    sa.select(placement_aggregates.c.id, placement_aggregates.c.uuid)
    .where(placement_aggregates.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
    .order_by(placement_aggregates.c.id)
)
_PRESENT = CompiledStatement(
    sa.select(resource_provider_aggregates.c.aggregate_id).where(
        resource_provider_aggregates.c.resource_provider_id == sa.bindparam("provider_id")
    )
)
_INSERT = sa.insert(placement_aggregates)
_INSERT_MEMBER = sa.insert(resource_provider_aggregates)
_DELETE_MEMBERS = sa.delete(resource_provider_aggregates).where(
    resource_provider_aggregates.c.resource_provider_id == sa.bindparam("provider_id"),
    resource_provider_aggregates.c.aggregate_id.in_(sa.bindparam("ids", expanding=True)),
)


def replace(
    transaction: WriteTransaction,
    provider_uuid: str,
    aggregates: Sequence[str],
    generation: int | None,
) -> int:
    """Replace the aggregates of a provider (section 2); return its generation afterwards.

    Args:
        transaction: The one that writes.
        provider_uuid: The provider.
        aggregates: Distinct uuids as the client spells them.
        generation: The one the client knows; None below 1.19: neither compared nor raised.

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError.
    """
    provider = lock_provider(transaction, provider_uuid)
    if generation is None:
        take_lock_rows(transaction, PARTS, [provider.id])
    else:
        require_generation(provider, generation)
    wanted = set(ids_by_uuid(transaction, aggregates).values())
    present = {row[0] for row in transaction.rows(_PRESENT, provider_id=provider.id)}
    if present - wanted:
        transaction.execute(_DELETE_MEMBERS, provider_id=provider.id, ids=sorted(present - wanted))
    transaction.execute_each(
        _INSERT_MEMBER,
        (
            {
                "resource_provider_id": provider.id,
                "aggregate_id": aggregate_id,
                "created_at": transaction.now,
            }
            for aggregate_id in sorted(wanted - present)
        ),
    )
    if generation is not None:
        return raise_generation(transaction, provider, Part.AGGREGATES)
    transaction.touch_providers([provider.id], Part.AGGREGATES)
    return provider.generation


def ids_by_uuid(transaction: WriteTransaction, uuids: Sequence[str]) -> dict[str, int]:
    """Return the ids of aggregates, locked; create those that do not exist."""
    known = {row.uuid: row.id for row in _named(transaction, uuids)}
    take_lock_rows(transaction, AGGREGATE, known.values())
    return {uuid: known[uuid] if uuid in known else _ensured(transaction, uuid) for uuid in uuids}


def _named(transaction: ReadTransaction, uuids: Sequence[str]) -> Sequence[Any]:
    found = transaction.rows_in_chunks(_NAMED, uuids=list(uuids)) if uuids else ()
    return list(found)


def _ensured(transaction: WriteTransaction, uuid: str) -> int:
    """Return the id of an aggregate that does not exist in exactly this spelling.

    Where the collation of the database equates two spellings, they name the same aggregate.

    Raises:
        RetryTransactionError: if the database returned no id.
    """
    for row in _named(transaction, [uuid]):
        return int(row.id)
    result = transaction.execute(_INSERT, uuid=uuid, created_at=transaction.now)
    if not result.inserted_primary_key:
        raise RetryTransactionError
    return int(result.inserted_primary_key[0])
