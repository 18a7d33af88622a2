# SPDX-License-Identifier: Apache-2.0
"""Conditions of providers: set, delete, end (contract page 102, section 3).

A condition applies to a provider and its descendants. A write that sets one locks the shape of the tree and then
these providers, as claims do. Claims that have not read the condition therefore commit before it, and later
claims read it.
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
_PRESENT = "SELECT * FROM treeclaim_conditions WHERE resource_provider_id = :provider_id"
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
    """Set a condition of a provider, and replace the one with its key; later claims read it.

    Raises:
        ProviderNotFoundError.
        ConflictError: if the provider has `MOST_CONDITIONS` other conditions.
    """
    place = find_provider(transaction, provider_uuid)
    _lock_below(transaction, place)
    now = read_clock(transaction.connection)
    rows = transaction.rows(_PRESENT, provider_id=place.id)
    present = {row.name: read_condition(row) for row in rows}
    if present.get(condition.key) == condition:
        return
    other_conditions = [
        other
        for other in present.values()
        if other.key != condition.key and not other.has_ended(now)
    ]
    if len(other_conditions) >= MOST_CONDITIONS:
        raise ConflictError(
            f"Resource provider {provider_uuid} has {MOST_CONDITIONS} conditions already."
        )
    if condition.key in present:
        transaction.execute(_DELETE, provider_id=place.id, key=condition.key)
    transaction.execute(
        _INSERT,
        resource_provider_id=place.id,
        name=condition.key,
        effect=int(condition.effect),
        ends_at=condition.until,
        on_use=condition.on_use,
        began=condition.began,
        reason=json.dumps(condition.reason),
    )
    transaction.touch_providers([place.id], Part.CONDITIONS)


def _lock_below(transaction: WriteTransaction, place: Any) -> None:
    """Lock a provider, as `find_provider` returns it, and its descendants; retry if it was moved or deleted."""
    lock_shapes(transaction, {place.root})
    ids = _load_subtree_ids(transaction, place)
    locked: dict[int, LockedProvider] = {}
    for batch in chunks(ids):
        locked |= {row.id: row for row in lock_providers(transaction, (), batch)}
    provider = locked.get(place.id)
    if provider is None or (provider.uuid, provider.root_id) != (place.uuid, place.root):
        raise RetryTransactionError


def delete(transaction: WriteTransaction, provider_uuid: str, key: str) -> None:
    """Delete a condition of a provider.

    Raises:
        ProviderNotFoundError: if the provider does not exist.
        NotFoundError: if it has no such condition.
    """
    provider = lock_provider(transaction, provider_uuid)
    now = read_clock(transaction.connection)
    rows = transaction.rows(_PRESENT, provider_id=provider.id)
    if not any(row.name == key and not read_condition(row).has_ended(now) for row in rows):
        raise NotFoundError(f"Resource provider {provider_uuid} has no condition {key}.")
    transaction.execute(_DELETE, provider_id=provider.id, key=key)
    transaction.touch_providers([provider.id], Part.CONDITIONS)


def end(transaction: WriteTransaction, ended: Sequence[tuple[int, str]]) -> None:
    """Remove the ended ones of these conditions, given by provider id and key."""
    now = read_clock(transaction.connection)
    for provider_id, key in sorted(ended):
        done = transaction.execute(_DELETE_ENDED, provider_id=provider_id, key=key, now=now)
        if done.rowcount:
            transaction.touch_providers([provider_id], Part.CONDITIONS)


def count_affected(transaction: ReadTransaction, provider_uuid: str) -> dict[str, int]:
    """Count the providers that a condition of a provider affects, and the consumers with allocations there.

    Raises:
        ProviderNotFoundError.
    """
    place = find_provider(transaction, provider_uuid)
    ids = _load_subtree_ids(transaction, place)
    rows = transaction.rows_in_chunks(_CONSUMERS, ids=ids)
    consumers = {row.consumer_id for row in rows}
    return {"consumers": len(consumers), "providers": len(ids)}


def _load_subtree_ids(transaction: ReadTransaction, place: Any) -> list[int]:
    """Return the ids of a provider, as `find_provider` returns it, and of its descendants."""
    return sorted(row.id for row in transaction.rows(_SUBTREE_IDS, provider_id=place.id))
