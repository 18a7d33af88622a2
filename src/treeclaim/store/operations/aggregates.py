# SPDX-License-Identifier: Apache-2.0
"""Aggregates of providers (contract page 40)."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.marks import PARTS, mark
from treeclaim.store.operations.provider_rows import bump, locked, require_generation
from treeclaim.store.schema.tables import placement_aggregates, resource_provider_aggregates

_KNOWN = sa.select(placement_aggregates.c.id, placement_aggregates.c.uuid).where(
    placement_aggregates.c.uuid.in_(sa.bindparam("uuids", expanding=True))
)
_OF_PROVIDER = sa.select(resource_provider_aggregates.c.aggregate_id).where(
    resource_provider_aggregates.c.resource_provider_id == sa.bindparam("provider_id")
)
_NEW = sa.insert(placement_aggregates)
_JOIN = sa.insert(resource_provider_aggregates)
_LEAVE = sa.delete(resource_provider_aggregates).where(
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
        transaction: Where it happens.
        provider_uuid: The provider.
        aggregates: Uuids as the client spells them; each once.
        generation: What the client knows; None below 1.19: neither compared nor raised.

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError.
    """
    provider = locked(transaction, provider_uuid)
    if generation is None:
        mark(transaction, PARTS, [provider.id])
    else:
        require_generation(provider, generation)
    wanted = _ids(transaction, aggregates)
    present = {row[0] for row in transaction.rows(_OF_PROVIDER, provider_id=provider.id)}
    if present - wanted:
        transaction.execute(_LEAVE, provider_id=provider.id, ids=sorted(present - wanted))
    transaction.execute_each(
        _JOIN,
        (
            {
                "resource_provider_id": provider.id,
                "aggregate_id": one,
                "created_at": transaction.now,
            }
            for one in sorted(wanted - present)
        ),
    )
    if generation is not None:
        return bump(transaction, provider)
    transaction.touch_providers([provider.id])
    return provider.generation


def _ids(transaction: WriteTransaction, uuids: Sequence[str]) -> set[int]:
    """Return the ids of aggregates; those nobody used before come into being."""
    known = {row.uuid: row.id for row in _known(transaction, uuids)}
    return {known[one] if one in known else _found_or_made(transaction, one) for one in uuids}


def _known(transaction: ReadTransaction, uuids: Sequence[str]) -> Sequence[Any]:
    return transaction.rows(_KNOWN, uuids=list(uuids)) if uuids else ()


def _found_or_made(transaction: WriteTransaction, uuid: str) -> int:
    """Return the id of an aggregate that does not exist in exactly this spelling.

    Where the database's collation takes two spellings for the same, they are one aggregate.
    """
    for row in _known(transaction, [uuid]):
        return int(row.id)
    result = transaction.execute(_NEW, uuid=uuid, created_at=transaction.now)
    if not result.inserted_primary_key:
        raise RetryTransactionError
    return int(result.inserted_primary_key[0])
