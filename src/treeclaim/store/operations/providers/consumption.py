# SPDX-License-Identifier: Apache-2.0
"""Writes the consumption of inventories, and checks its rules (contract page 102, section 2).

A consumed inventory must exist, belong to the same provider or an ancestor, and not consume another one. The
checks read the final rows, so the order of writes does not matter. No other writer changes these rows meanwhile:
a write of an inventory locks its provider and the consumed providers, and a move locks all moved providers.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from treeclaim.model.errors import ProviderInUseError, TreeclaimError
from treeclaim.model.extension.hierarchy import find_consumption_fault, is_at_or_above
from treeclaim.model.provider import Consumption, Inventory
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import (
    Key,
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.catalogue.resource_classes import find_ids
from treeclaim.store.operations.locks.consumed import (
    ConsumedAmounts,
    list_consumed_providers,
    load_consumption,
    load_consumption_by_uuid,
    record_consumed,
)
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    lock_providers,
)
from treeclaim.store.reading.inventories import CONSUMPTION_BY_NAMES
from treeclaim.store.schema.tables import consumption

_INSERT = compile_insert(consumption)
_DELETE = """
DELETE FROM treeclaim_consumption
WHERE resource_provider_id = :provider_id AND resource_class_id = :class_id
"""
_DELETE_LEFTOVERS = """
DELETE FROM treeclaim_consumption WHERE resource_provider_id IN :ids AND NOT EXISTS (
    SELECT 1 FROM inventories
    WHERE inventories.resource_provider_id = treeclaim_consumption.resource_provider_id
    AND inventories.resource_class_id = treeclaim_consumption.resource_class_id
)
"""
_IDS = "SELECT id, uuid FROM resource_providers WHERE uuid IN :uuids"
_CONSUMPTION_TO_CHECK = CONSUMPTION_BY_NAMES.format(
    further=""", inventories.id IS NULL AS is_missing, EXISTS (
        SELECT 1 FROM treeclaim_consumption further
        WHERE further.resource_provider_id = c.consumed_provider_id
        AND further.resource_class_id = c.consumed_class_id
    ) AS consumes_itself"""
) + (
    "LEFT JOIN inventories ON inventories.resource_provider_id = c.consumed_provider_id "
    "AND inventories.resource_class_id = c.consumed_class_id "
)
_SELECT_FAULTS = [
    f"{_CONSUMPTION_TO_CHECK} WHERE c.resource_provider_id IN :ids",
    f"{_CONSUMPTION_TO_CHECK} WHERE c.consumed_provider_id IN :ids",
]
_PARENTS = "SELECT id, parent_provider_id FROM resource_providers WHERE id IN :ids"
_CONSUMED_BY_OTHERS = (
    f"{CONSUMPTION_BY_NAMES} WHERE c.consumed_provider_id = :provider_id "
    "AND c.resource_provider_id <> :provider_id LIMIT 1"
).format(further="")


LockProviders = Callable[
    [WriteTransaction, Collection[str], Collection[int]], Iterable[LockedProvider]
]
"""Locks providers by UUID and by id."""


def lock_with_consumed(
    transaction: WriteTransaction,
    uuids: Collection[str],
    new_inventories: Collection[Inventory],
    lock: LockProviders = lock_providers,
) -> dict[str, LockedProvider]:
    """Lock providers, and the providers that they consume before and after a write; return the existing ones.

    One call of `lock` locks them all: a second call could lock rows out of order.
    """
    if all(inventory.consumes is None for inventory in new_inventories):
        return {row.uuid: row for row in lock(transaction, uuids, ())}
    consumption_before = load_consumption_by_uuid(transaction, uuids)
    consumed_ids_before = list_consumed_providers(consumption_before, consumption_before)
    consumed_uuids_after = {
        consumes.provider for inventory in new_inventories for consumes in inventory.consumes or ()
    }
    rows = {
        row.uuid: row
        for row in lock(transaction, {*uuids, *consumed_uuids_after}, consumed_ids_before)
    }
    locked_consumption = load_consumption(
        transaction, [rows[uuid].id for uuid in uuids if uuid in rows]
    )
    if not list_consumed_providers(locked_consumption, locked_consumption) <= consumed_ids_before:
        # Another transaction has added consumption before the lock.
        raise RetryTransactionError
    return rows


def resolve(
    transaction: ReadTransaction, consumes_by_key: Mapping[Key, Sequence[Consumption]]
) -> ConsumedAmounts:
    """Return the new consumption of inventories by ids, without unknown providers and classes."""
    consumption_entries = [entry for entries in consumes_by_key.values() for entry in entries]
    uuids = sorted({entry.provider for entry in consumption_entries})
    ids = {row.uuid: row.id for row in transaction.rows_in_chunks(_IDS, uuids=uuids)}
    classes = find_ids(transaction, {entry.resource_class for entry in consumption_entries})
    return {
        key: {
            (ids[entry.provider], classes[entry.resource_class]): entry.amount
            for entry in entries
            if entry.provider in ids and entry.resource_class in classes
        }
        for key, entries in consumes_by_key.items()
    }


def write(
    transaction: WriteTransaction,
    consumption_after: ConsumedAmounts,
    consumption_before: ConsumedAmounts,
) -> None:
    """Replace the consumption by inventories, under the locks of `lock_with_consumed`."""
    if not consumption_after:
        return
    transaction.change_each(
        _DELETE,
        (
            {"provider_id": provider_id, "class_id": class_id}
            for provider_id, class_id in sorted(consumption_after)
            if (provider_id, class_id) in consumption_before
        ),
    )
    transaction.change_each(
        _INSERT,
        (
            {
                "resource_provider_id": provider_id,
                "resource_class_id": class_id,
                "consumed_provider_id": consumed_provider,
                "consumed_class_id": consumed_class,
                "amount": amount,
            }
            for (provider_id, class_id), entries in sorted(consumption_after.items())
            for (consumed_provider, consumed_class), amount in sorted(entries.items())
        ),
    )
    record_consumed(
        transaction,
        list_consumed_providers(consumption_before, consumption_after)
        | list_consumed_providers(consumption_after, consumption_after),
    )


def delete_leftovers(transaction: WriteTransaction, provider_ids: Collection[int]) -> None:
    """Delete the consumption by missing inventories, which other programs leave behind."""
    for ids in chunks(sorted(provider_ids)):
        transaction.execute(_DELETE_LEFTOVERS, ids=ids)


def find_faults(
    transaction: ReadTransaction, provider_ids: Collection[int], written_keys: Collection[Key] = ()
) -> list[tuple[int, TreeclaimError]]:
    """Return provider id and error of each violated rule of the consumption by, or of, locked providers.

    `written_keys` are the inventories with consumption that the call has written.
    """
    rows = [
        row
        for statement in _SELECT_FAULTS
        for row in transaction.rows_in_chunks(statement, ids=sorted(provider_ids))
    ]
    parents = _load_parents(transaction, rows)
    errors = {}
    for row in rows:
        key = (row.resource_provider_id, row.resource_class_id)
        error = find_consumption_fault(
            (row.by_uuid, row.by_class),
            Consumption(row.provider, row.resource_class, 1),
            is_written=key in written_keys,
            is_missing=row.is_missing,
            consumes_itself=row.consumes_itself,
            is_at_or_above=is_at_or_above(parents, row.consumed_provider_id, key[0]),
        )
        if error is not None:
            concerned_id = key[0] if key[0] in provider_ids else row.consumed_provider_id
            errors[(*key, row.provider, row.resource_class)] = concerned_id, error
    return [errors[key] for key in sorted(errors)]


def _load_parents(transaction: ReadTransaction, rows: Iterable[Any]) -> dict[int, int | None]:
    parents: dict[int, int | None] = {row.resource_provider_id: row.parent_id for row in rows}
    while (
        unknown_ids := {parent for parent in parents.values() if parent is not None}
        - parents.keys()
    ):
        parents |= dict.fromkeys(unknown_ids)
        rows = transaction.rows_in_chunks(_PARENTS, ids=sorted(unknown_ids))
        parents |= {row.id: row.parent_provider_id for row in rows}
    return parents


def require_unconsumed(transaction: ReadTransaction, provider: LockedProvider) -> None:
    """Raise `ProviderInUseError` if another provider consumes an inventory of this provider."""
    row = transaction.row(_CONSUMED_BY_OTHERS, provider_id=provider.id)
    if row is not None:
        raise ProviderInUseError(provider.uuid, by=(row.by_uuid, row.by_class))
