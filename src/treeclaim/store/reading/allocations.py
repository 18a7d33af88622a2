# SPDX-License-Identifier: Apache-2.0
"""Allocations on providers (contract page 70, section 6; page 99, section 1).

The queries skip allocations of consumers without a row, which old databases contain.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.store.database.compiled import CompiledStatement, bind_list
from treeclaim.store.database.transactions import ReadTransaction, seconds
from treeclaim.store.schema.tables import (
    allocations,
    consumers,
    resource_classes,
    resource_providers,
)

Shares = dict[str, dict[str, Any]]
"""The allocations on a provider by consumer, as in the response."""

_COLUMNS = (
    allocations.c.consumer_id,
    consumers.c.generation,
    resource_classes.c.name,
    allocations.c.used,
)
_ON_PROVIDERS = (
    sa.select(allocations.c.resource_provider_id, *_COLUMNS)
    .select_from(allocations)
    .join(consumers, consumers.c.uuid == allocations.c.consumer_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .where(allocations.c.resource_provider_id.in_(bind_list("ids")))
    .order_by(allocations.c.id)
)
_ON_PROVIDER = CompiledStatement(
    sa.select(
        *_COLUMNS,
        consumers.c.uuid.label("recorded_consumer"),
        allocations.c.created_at,
        allocations.c.updated_at,
        resource_providers.c.uuid,
        resource_providers.c.generation.label("provider_generation"),
    )
    .select_from(resource_providers)
    # Not nested: SQLite would compute an inner join within an outer join for all allocations.
    .outerjoin(allocations, allocations.c.resource_provider_id == resource_providers.c.id)
    .outerjoin(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
    .where(resource_providers.c.uuid == sa.bindparam("provider_uuid"))
    .order_by(allocations.c.id)
)


def load_provider_allocations(
    transaction: ReadTransaction, provider_uuid: str
) -> tuple[Shares, int, float | None]:
    """Return the allocations on a provider.

    Returns:
        The allocations by consumer, the generation of the provider, and the time of the newest
        allocation in seconds since the epoch; None without allocations.

    Raises:
        ProviderNotFoundError.
    """
    provider_rows = transaction.rows(_ON_PROVIDER, provider_uuid=provider_uuid)
    # Some collations also match other spellings.
    if not provider_rows or provider_rows[0].uuid != provider_uuid:
        raise ProviderNotFoundError(provider_uuid)
    # A provider without allocations is one row of nulls.
    rows = [
        row for row in provider_rows if row.recorded_consumer is not None and row.name is not None
    ]
    shares: Shares = {}
    for consumer, generation, name, used, *_ in rows:
        _add(shares, consumer, generation, name, used)
    return shares, provider_rows[0].provider_generation or 0, newest(rows)


def load_allocations_by_provider(
    transaction: ReadTransaction, provider_ids: Sequence[int]
) -> dict[int, Shares]:
    """Return the allocations on providers, by provider id."""
    shares_by_provider: dict[int, Shares] = {}
    rows = transaction.rows_in_chunks(_ON_PROVIDERS, ids=provider_ids)
    for provider_id, consumer, generation, name, used in rows:
        _add(shares_by_provider.setdefault(provider_id, {}), consumer, generation, name, used)
    return shares_by_provider


def _add(shares: Shares, consumer: str, generation: int | None, name: str, used: int) -> None:
    new_share = {"resources": {}, "consumer_generation": generation or 0}
    shares.setdefault(consumer, new_share)["resources"][name] = used


def newest(rows: Iterable[Any]) -> float | None:
    """Return the newest time of rows in seconds since the epoch; None for no rows."""
    return max((seconds(row.updated_at, row.created_at) for row in rows), default=None)
