# SPDX-License-Identifier: Apache-2.0
"""Data migrations complete rows that are older than a rule (contract page 05, section 4)."""

from collections.abc import Callable, Sequence

from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction, chunks
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD

PROVIDERS_WITHOUT_ROOT = "SELECT id FROM resource_providers WHERE root_provider_id IS NULL"

_FIRST_WITHOUT_ROOT = f"{PROVIDERS_WITHOUT_ROOT} ORDER BY id LIMIT :most FOR UPDATE"
_SET_ROOT = """
UPDATE resource_providers SET root_provider_id = id, updated_at = :at
WHERE root_provider_id IS NULL AND id IN :ids
"""
_FIRST_WITHOUT_RECORD = f"{CONSUMERS_WITHOUT_RECORD} ORDER BY consumer_id LIMIT :most"

Owner = tuple[str, str]
"""Project and user for consumers whose claims are older than the records of owners."""

Migration = Callable[[WriteTransaction, int, Owner], tuple[int, int]]
"""Completes at most a number of rows; returns the numbers of incomplete and of completed rows."""


def set_root_provider_ids(
    transaction: WriteTransaction, most: int, _owner: Owner
) -> tuple[int, int]:
    """Make each provider without a root its own root, for at most `most` providers."""
    missing_keys = [row.id for row in transaction.rows(_FIRST_WITHOUT_ROOT, most=most)]
    for ids in chunks(missing_keys):
        transaction.change(_SET_ROOT, ids=ids, at=transaction.now)
    transaction.touch_providers(missing_keys)
    return len(missing_keys), len(missing_keys)


def create_incomplete_consumers(
    transaction: WriteTransaction, most: int, owner: Owner
) -> tuple[int, int]:
    """Insert records with the owner for at most `most` consumers with allocations but without a record."""
    missing_keys = [row.consumer for row in transaction.rows(_FIRST_WITHOUT_RECORD, most=most)]
    consumers.insert_incomplete(transaction, missing_keys, *owner)
    return len(missing_keys), len(missing_keys)


MIGRATIONS: Sequence[Migration] = (set_root_provider_ids, create_incomplete_consumers)
"""The migrations, in the order in which they run."""


def count_rows(transaction: ReadTransaction, sql: str) -> int:
    """Return the number of rows of a query."""
    return int(transaction.scalar(f"SELECT COUNT(*) FROM ({sql}) counted_rows"))
