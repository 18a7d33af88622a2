# SPDX-License-Identifier: Apache-2.0
"""Conditions of providers (contract page 102, section 3).

A condition applies to a provider and its descendants. The write of a condition locks the shape of the tree and
then these providers, as claims do. A claim therefore either commits before the condition, or reads it.
"""

import json
from collections.abc import Sequence
from typing import Any

from treeclaim.model.errors import ConflictError, NotFoundError
from treeclaim.model.parts import Part
from treeclaim.model.provider import MOST_CONDITIONS, Condition
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.systems import read_clock
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    lock_provider,
    lock_providers,
    lock_shapes,
)
from treeclaim.store.operations.providers.tree_writer import find_provider
from treeclaim.store.reading.providers.parts import read_condition
from treeclaim.store.schema.tables import conditions

# UNION without ALL: in old data with a cycle, the recursion ends.
_SUBTREE_IDS = """
WITH RECURSIVE subtree (id) AS (
    SELECT id FROM resource_providers WHERE id = :provider_id
    UNION SELECT p.id FROM subtree JOIN resource_providers p ON p.parent_provider_id = subtree.id
)
SELECT id FROM subtree
"""
_SELECT_CONDITIONS = "SELECT * FROM treeclaim_conditions WHERE resource_provider_id = :provider_id"
_DELETE = """
DELETE FROM treeclaim_conditions WHERE resource_provider_id = :provider_id AND name = :key
"""
_DELETE_ENDED = f"{_DELETE} AND ends_at <= :now"
_INSERT = compile_insert(conditions)
_CONSUMERS = """
SELECT consumer_id FROM allocations WHERE resource_provider_id IN :ids
UNION SELECT consumer_id FROM allocations a
JOIN treeclaim_consumption c ON c.resource_provider_id = a.resource_provider_id
    AND c.resource_class_id = a.resource_class_id
WHERE c.consumed_provider_id IN :ids
"""


def put(transaction: WriteTransaction, provider_uuid: str, condition: Condition) -> None:
    """Set a condition of a provider; replace the condition with the same key.

    Raises:
        ProviderNotFoundError: if the provider does not exist.
        ConflictError: if it has `MOST_CONDITIONS` other conditions.
    """
    provider = find_provider(transaction, provider_uuid)
    _lock_subtree(transaction, provider)
    now = read_clock(transaction.connection)
    rows = transaction.rows(_SELECT_CONDITIONS, provider_id=provider.id)
    condition_by_key = {row.name: read_condition(row) for row in rows}
    former_condition = condition_by_key.pop(condition.key, None)
    if former_condition == condition:
        return
    if (
        sum(not other_condition.has_ended(now) for other_condition in condition_by_key.values())
        >= MOST_CONDITIONS
    ):
        raise ConflictError(
            f"Resource provider {provider_uuid} has {MOST_CONDITIONS} conditions already."
        )
    if former_condition is not None:
        transaction.execute(_DELETE, provider_id=provider.id, key=condition.key)
    transaction.execute(
        _INSERT,
        resource_provider_id=provider.id,
        name=condition.key,
        effect=int(condition.effect),
        ends_at=condition.until,
        on_use=condition.on_use,
        began=condition.began,
        reason=json.dumps(condition.reason),
    )
    transaction.touch_providers([provider.id], Part.CONDITIONS)


def _lock_subtree(transaction: WriteTransaction, provider: Any) -> None:
    """Lock a provider, a row of `find_provider`, and its descendants."""
    lock_shapes(transaction, {provider.root})
    locked_providers: dict[int, LockedProvider] = {}
    for batch in chunks(_load_subtree_ids(transaction, provider.id)):
        locked_providers |= {row.id: row for row in lock_providers(transaction, (), batch)}
    row = locked_providers.get(provider.id)
    if row is None or (row.uuid, row.root_id) != (provider.uuid, provider.root):
        # Another transaction has moved or deleted the provider.
        raise RetryTransactionError


def delete(transaction: WriteTransaction, provider_uuid: str, key: str) -> None:
    """Delete a condition of a provider; raise `NotFoundError` if either does not exist."""
    provider = lock_provider(transaction, provider_uuid)
    now = read_clock(transaction.connection)
    rows = transaction.rows(_SELECT_CONDITIONS, provider_id=provider.id)
    if not any(row.name == key and not read_condition(row).has_ended(now) for row in rows):
        raise NotFoundError(f"Resource provider {provider_uuid} has no condition {key}.")
    transaction.execute(_DELETE, provider_id=provider.id, key=key)
    transaction.touch_providers([provider.id], Part.CONDITIONS)


def end_expired(transaction: WriteTransaction, keys: Sequence[tuple[int, str]]) -> None:
    """Delete the expired ones of these conditions, given by provider id and key."""
    now = read_clock(transaction.connection)
    for provider_id, key in sorted(keys):
        deletion = transaction.execute(_DELETE_ENDED, provider_id=provider_id, key=key, now=now)
        if deletion.rowcount:
            transaction.touch_providers([provider_id], Part.CONDITIONS)


def count_affected(transaction: ReadTransaction, provider_uuid: str) -> dict[str, int]:
    """Count the providers that a condition of a provider affects, and the consumers with allocations there."""
    ids = _load_subtree_ids(transaction, find_provider(transaction, provider_uuid).id)
    rows = transaction.rows_in_chunks(_CONSUMERS, ids=ids)
    consumers = {row.consumer_id for row in rows}
    return {"consumers": len(consumers), "providers": len(ids)}


def _load_subtree_ids(transaction: ReadTransaction, provider_id: int) -> list[int]:
    return sorted(row.id for row in transaction.rows(_SUBTREE_IDS, provider_id=provider_id))
