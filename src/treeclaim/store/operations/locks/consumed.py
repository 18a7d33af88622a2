# SPDX-License-Identifier: Apache-2.0
"""Consumption of inventories by others (contract page 102, section 2), read under locks.

Both a change of the consumption by an inventory and a claim of the inventory lock its provider and the
consumed providers. Under the lock of a provider, consumption by and of its inventories therefore stays.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from treeclaim.model.changes import UsageChange
from treeclaim.store.database.transactions import (
    Key,
    ReadTransaction,
    WriteTransaction,
    to_timestamp,
)

ConsumedAmounts = Mapping[Key, Mapping[Key, int]]
"""Amounts that a unit of each consuming inventory consumes, by consumed inventory, in order of ids."""


_COLUMNS = (
    "resource_provider_id, resource_class_id, consumed_provider_id, consumed_class_id, amount"
)
_OF_IDS = f"SELECT {_COLUMNS} FROM treeclaim_consumption WHERE resource_provider_id IN :ids"
_OF_UUIDS = f"""
SELECT {_COLUMNS} FROM treeclaim_consumption
JOIN resource_providers ON resource_providers.id = resource_provider_id WHERE uuid IN :uuids
"""


def load_consumption(
    transaction: ReadTransaction, provider_ids: Collection[int]
) -> ConsumedAmounts:
    """Return the consumption by the inventories of providers."""
    return _group_rows(transaction.rows_in_chunks(_OF_IDS, ids=sorted(provider_ids)))


def load_consumption_by_uuid(
    transaction: ReadTransaction, uuids: Collection[str]
) -> ConsumedAmounts:
    """Return the consumption by the inventories of providers, given UUIDs."""
    return _group_rows(transaction.rows_in_chunks(_OF_UUIDS, uuids=sorted(uuids)))


def _group_rows(rows: Iterable[tuple[int, int, int, int, int]]) -> ConsumedAmounts:
    consumption: defaultdict[Key, dict[Key, int]] = defaultdict(dict)
    for provider_id, class_id, consumed_provider, consumed_class, amount in sorted(rows):
        consumption[provider_id, class_id][consumed_provider, consumed_class] = amount
    return dict(consumption)


def list_consumed_providers(consumption: ConsumedAmounts, keys: Iterable[Key]) -> set[int]:
    """Return the ids of the providers with inventories that these inventories consume."""
    return {provider_id for key in keys for provider_id, _ in consumption.get(key, ())}


def add_consumed(amounts: Mapping[Key, int], consumption: ConsumedAmounts) -> Counter[Key]:
    """Return amounts, which may be negative, plus the amounts that they consume."""
    usage = Counter(amounts)
    for key, amount in amounts.items():
        for consumed_key, units in consumption.get(key, {}).items():
            usage[consumed_key] += amount * units
    return usage


def record_consumed(transaction: WriteTransaction, provider_ids: Iterable[int]) -> None:
    """Record changed usage of consumed providers for the feed, from which readers compute the amounts."""
    empty_change = UsageChange({}, 0, 0, to_timestamp(transaction.now))
    for provider_id in sorted(provider_ids):
        transaction.touch_usage(provider_id, empty_change)
