# SPDX-License-Identifier: Apache-2.0
"""Consumption of inventories, read under locks (contract page 102, section 2).

A write that changes the consumption of an inventory locks its provider, and the former and new consumed
providers. A claim of a consuming inventory locks the same providers. Under the lock of a provider, the
consumption by and of its inventories therefore does not change.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from treeclaim.model.changes import UsageChange
from treeclaim.store.database.transactions import (
    Key,
    ReadTransaction,
    WriteTransaction,
    seconds,
)

Entries = Mapping[Key, Mapping[Key, int]]
"""The consumption of each unit of consuming inventories: amounts by consumed inventory, in order of ids."""

NOTHING: Entries = {}

_COLUMNS = (
    "resource_provider_id, resource_class_id, consumed_provider_id, consumed_class_id, amount"
)
_OF_IDS = f"SELECT {_COLUMNS} FROM treeclaim_consumption WHERE resource_provider_id IN :ids"
_OF_UUIDS = f"""
SELECT {_COLUMNS} FROM treeclaim_consumption
JOIN resource_providers ON resource_providers.id = resource_provider_id WHERE uuid IN :uuids
"""


def load_consumption(transaction: ReadTransaction, provider_ids: Collection[int]) -> Entries:
    """Return the consumption of the inventories of providers."""
    return _entries(transaction.rows_in_chunks(_OF_IDS, ids=sorted(provider_ids)))


def load_consumption_by_uuid(transaction: ReadTransaction, uuids: Collection[str]) -> Entries:
    """Return the consumption of the inventories of providers, by their UUIDs."""
    return _entries(transaction.rows_in_chunks(_OF_UUIDS, uuids=sorted(uuids)))


def _entries(rows: Iterable[tuple[int, int, int, int, int]]) -> Entries:
    entries: defaultdict[Key, dict[Key, int]] = defaultdict(dict)
    for provider_id, class_id, consumed, consumed_class, amount in sorted(rows):
        entries[provider_id, class_id][consumed, consumed_class] = amount
    return dict(entries)


def list_consumed_providers(entries: Entries, keys: Iterable[Key]) -> set[int]:
    """Return the ids of the providers that these inventories consume."""
    return {provider_id for key in keys for provider_id, _ in entries.get(key, ())}


def add_consumed(amounts: Mapping[Key, int], entries: Entries) -> Counter[Key]:
    """Return amounts by inventory, which may be negative, plus the amounts that they consume."""
    used = Counter(amounts)
    for key, amount in amounts.items():
        for consumed, units in entries.get(key, {}).items():
            used[consumed] += amount * units
    return used


def record_consumed(transaction: WriteTransaction, provider_ids: Iterable[int]) -> None:
    """Record for the feed that the usage of consumed providers has changed.

    A reader computes the amounts from the changes of the consuming inventories.
    """
    nothing = UsageChange({}, 0, 0, seconds(transaction.now))
    for provider_id in sorted(provider_ids):
        transaction.touch_usage(provider_id, nothing)
