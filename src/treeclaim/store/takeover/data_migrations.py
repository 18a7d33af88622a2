# SPDX-License-Identifier: Apache-2.0
"""Data migrations: complete rows that are older than a rule (contract page 05, section 4)."""

from collections.abc import Callable, Sequence

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.schema.tables import resource_providers

_WITHOUT_ROOT = resource_providers.c.root_provider_id.is_(None)

Owner = tuple[str, str]
"""Project and user to record for claims from before consumers had owners."""

Migration = Callable[[WriteTransaction, int, Owner], tuple[int, int]]
"""Completes rows, at most as many as requested; returns how many it found, and how many it completed."""


def set_root_provider_ids(
    transaction: WriteTransaction, most: int, _owner: Owner
) -> tuple[int, int]:
    """Make each provider without a root its own root; at most `most` of them."""
    provider_id = resource_providers.c.id
    first = sa.select(provider_id).where(_WITHOUT_ROOT).order_by(provider_id).limit(most)
    missing = [row.id for row in transaction.rows(first.with_for_update())]
    for ids in chunks(missing):
        transaction.execute(
            sa.update(resource_providers)
            .where(_WITHOUT_ROOT, provider_id.in_(ids))
            .values(root_provider_id=provider_id, updated_at=transaction.now)
        )
    transaction.touch_providers(missing)
    return len(missing), len(missing)


def create_incomplete_consumers(
    transaction: WriteTransaction, most: int, owner: Owner
) -> tuple[int, int]:
    """Insert rows, with the owner, for consumers that have allocations but no row; at most `most`."""
    missing = [row.consumer for row in transaction.rows(CONSUMERS_WITHOUT_RECORD.limit(most))]
    consumers.insert_incomplete(transaction, missing, *owner)
    return len(missing), len(missing)


MIGRATIONS: Sequence[Migration] = (set_root_provider_ids, create_incomplete_consumers)
"""The migrations, in the order in which they run."""


def providers_without_root(transaction: ReadTransaction) -> int:
    """Count the providers that name no root."""
    return int(
        transaction.scalar(
            sa.select(sa.func.count()).select_from(resource_providers).where(_WITHOUT_ROOT)
        )
    )
