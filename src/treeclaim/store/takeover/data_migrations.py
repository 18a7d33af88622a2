# SPDX-License-Identifier: Apache-2.0
"""Data migrations complete rows that are older than a rule (contract page 05, section 4)."""

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.schema.tables import resource_providers

PROVIDERS_WITHOUT_ROOT = sa.select(resource_providers.c.id).where(
    resource_providers.c.root_provider_id.is_(None)
)
"""The providers without a root."""

Owner = tuple[str, str]
"""Project and user to record for claims from before consumers had owners."""

Migration = Callable[[WriteTransaction, int, Owner], tuple[int, int]]
"""Completes at most a number of rows; returns the numbers of found and of completed rows."""


def set_root_provider_ids(
    transaction: WriteTransaction, most: int, _owner: Owner
) -> tuple[int, int]:
    """Make each provider without a root its own root, for at most `most` providers."""
    provider_id = resource_providers.c.id
    first = PROVIDERS_WITHOUT_ROOT.order_by(provider_id).limit(most)
    missing = [row.id for row in transaction.rows(first.with_for_update())]
    for ids in chunks(missing):
        transaction.execute(
            sa.update(resource_providers)
            .where(resource_providers.c.root_provider_id.is_(None), provider_id.in_(ids))
            .values(root_provider_id=provider_id, updated_at=transaction.now)
        )
    transaction.touch_providers(missing)
    return len(missing), len(missing)


def create_incomplete_consumers(
    transaction: WriteTransaction, most: int, owner: Owner
) -> tuple[int, int]:
    """Insert rows with the owner for at most `most` consumers with allocations but without a row."""
    missing = [row.consumer for row in transaction.rows(CONSUMERS_WITHOUT_RECORD.limit(most))]
    consumers.insert_incomplete(transaction, missing, *owner)
    return len(missing), len(missing)


MIGRATIONS: Sequence[Migration] = (set_root_provider_ids, create_incomplete_consumers)
"""The migrations, in the order in which they run."""


def count_rows(transaction: ReadTransaction, rows: sa.Select[Any]) -> int:
    """Return the number of rows of a query, such as `PROVIDERS_WITHOUT_ROOT`."""
    return int(transaction.scalar(count(rows)))


def count(rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return the query for the number of rows of a query."""
    return sa.select(sa.func.count()).select_from(rows.order_by(None).subquery())
