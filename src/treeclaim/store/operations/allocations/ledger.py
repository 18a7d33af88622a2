# SPDX-License-Identifier: Apache-2.0
"""Judges new allocations by inventories and capacity (contract page 70, section 1.3), and inserts them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from treeclaim.model.errors import (
    CapacityExceededError,
    InventoryMissingError,
    UnitConstraintError,
)
from treeclaim.model.provider import AMOUNTS, Inventory
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import (
    Key,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.allocations.lookup import Usage
from treeclaim.store.operations.catalogue.resource_classes import require_unchanged_ids
from treeclaim.store.operations.locks.consumed import ConsumedAmounts, add_consumed
from treeclaim.store.operations.locks.provider_rows import LockedProvider
from treeclaim.store.reading.inventories import (
    INVENTORY_COLUMNS,
    USED,
)
from treeclaim.store.schema.tables import allocations

INVENTORIES = f"""
SELECT inventories.resource_provider_id, inventories.resource_class_id, resource_classes.name,
    EXISTS (SELECT 1 FROM treeclaim_conditions) AS has_conditions,
    EXISTS (SELECT 1 FROM treeclaim_consumption) AS is_consuming, {USED}, {INVENTORY_COLUMNS}
FROM inventories JOIN resource_classes ON resource_classes.id = inventories.resource_class_id + 0
WHERE inventories.resource_provider_id IN :provider_ids
    AND inventories.resource_class_id + 0 IN :class_ids
"""
"""Selects inventories by providers and classes.

`has_conditions` is whether any provider of the cloud has a condition. The class is an expression to avoid the
index of classes: with it, PostgreSQL without statistics, and MariaDB because of the few classes, read all
inventories of the classes.
"""

_AMOUNTS = slice(-len(AMOUNTS), None)
"""Position of the `INVENTORY_COLUMNS` in a row."""

_INSERT = compile_insert(allocations)


@dataclass(frozen=True, slots=True)
class NewAllocation:
    """An allocation to insert; unit constraints do not apply to holds (contract page 100)."""

    consumer_uuid: str
    provider: LockedProvider
    class_id: int
    resource_class: str
    used: int
    is_hold: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """Return the inventory: provider id and class id."""
        return self.provider.id, self.class_id


def insert_allocations(
    transaction: WriteTransaction, new_allocations: Iterable[tuple[str, Key, int]]
) -> None:
    """Insert allocations, given as consumer UUID, inventory and amount."""
    transaction.change_each(
        _INSERT,
        (
            {
                "resource_provider_id": provider_id,
                "resource_class_id": class_id,
                "consumer_id": consumer_uuid,
                "used": used,
                "created_at": transaction.now,
            }
            for consumer_uuid, (provider_id, class_id), used in new_allocations
        ),
    )


class Ledger:
    """Inventories of locked providers, and their usage after the accepted requests of a transaction.

    Usage includes consumption by other inventories (contract page 102, section 2). The locks of the providers
    keep their inventories, and the classes of these, unchanged. `consumption` is that by the inventories of new and
    replaced allocations, None if no inventory consumes another one.

    Raises:
        RetryTransactionError: if a class was renamed, or consumption added, since the lookup.

    Attributes:
        has_conditions: Whether any provider of the cloud has a condition.
    """

    def __init__(
        self,
        transaction: WriteTransaction,
        new_allocations: Sequence[NewAllocation],
        locked_providers: Iterable[LockedProvider],
        consumption: ConsumedAmounts | None,
    ) -> None:
        self._transaction = transaction
        self._consumption: ConsumedAmounts = consumption or {}
        self._inventories: dict[Key, Inventory] = {}
        self._usage: Usage = Counter()
        self.has_conditions = False
        self._names = {
            allocation.class_id: allocation.resource_class for allocation in new_allocations
        }
        self._providers = {provider.id: provider for provider in locked_providers}
        keys = {allocation.key for allocation in new_allocations}
        consumed_keys = {
            consumed_key for key in keys for consumed_key in self._consumption.get(key, ())
        }
        class_ids = sorted({class_id for _, class_id in keys | consumed_keys})
        for chunk in chunks(sorted({provider_id for provider_id, _ in keys | consumed_keys})):
            for row in transaction.rows(INVENTORIES, provider_ids=chunk, class_ids=class_ids):
                key = (row.resource_provider_id, row.resource_class_id)
                is_renamed = row.name != self._names.get(key[1], row.name)
                if is_renamed or (consumption is None and row.is_consuming):
                    raise RetryTransactionError
                if key in keys or key in consumed_keys:
                    self.has_conditions |= bool(row.has_conditions)
                    self._names[key[1]] = row.name
                    self._inventories[key] = Inventory(*row[_AMOUNTS])
                    self._usage[key] = int(row.used)

    def accept(
        self,
        new_allocations: Sequence[NewAllocation],
        usage_before: Usage,
        class_ids: Mapping[str, int],
        held_units: Usage | None = None,
    ) -> None:
        """Count the new allocations of a request as written, or raise its refusal and count nothing.

        `usage_before` is the sum of the replaced allocations and of the former amounts of changed holds; `held_units` the
        sum of the new amounts of these holds.

        Raises:
            InventoryMissingError, UnitConstraintError, CapacityExceededError.
        """
        keys = [allocation.key for allocation in new_allocations]
        if any(key not in self._inventories for key in keys):
            self._refuse_missing(new_allocations, class_ids)
        units_after: Counter[Key] = Counter(held_units or {})
        for key, allocation in zip(keys, new_allocations, strict=True):
            inventory = self._inventories[key]
            if not allocation.is_hold and not inventory.admits(allocation.used):
                raise UnitConstraintError(
                    allocation.provider.uuid, allocation.resource_class, allocation.used, inventory
                )
            units_after[key] += allocation.used
        if self._consumption:
            units_after = add_consumed(units_after, self._consumption)
            usage_before = add_consumed(usage_before, self._consumption)
        for key in keys:
            self._require_room(key, units_after, usage_before)
            for consumed_key in self._consumption.get(key, ()):
                self._require_room(consumed_key, units_after, usage_before, key)
        for key, amount in usage_before.items():
            self._usage[key] -= amount
        for key, amount in units_after.items():
            self._usage[key] += amount

    def _require_room(
        self, key: Key, units_after: Usage, usage_before: Usage, consuming_key: Key | None = None
    ) -> None:
        """Raise `CapacityExceededError` unless an inventory, which another one may consume, has room."""
        inventory = self._inventories.get(key)
        if inventory is None:
            # OpenStack Placement on the same database may have deleted a consumed inventory.
            return
        used_units = self._usage[key]
        used_by_others = used_units - usage_before.get(key, 0)
        usage_after = used_by_others + units_after[key]
        # A request may keep or reduce the usage of an overcommitted inventory, but not raise it.
        if usage_after > inventory.capacity and usage_after > used_units:
            raise CapacityExceededError(
                *self._name_inventory(key),
                requested=units_after[key],
                free=max(inventory.whole_capacity, 0) - used_by_others,
                by=None if consuming_key is None else self._name_inventory(consuming_key),
            )

    def _name_inventory(self, key: Key) -> tuple[str, str]:
        return self._providers[key[0]].uuid, self._names[key[1]]

    def _refuse_missing(
        self, new_allocations: Sequence[NewAllocation], class_ids: Mapping[str, int]
    ) -> NoReturn:
        refused_allocations = [
            allocation for allocation in new_allocations if allocation.key not in self._inventories
        ]
        require_unchanged_ids(self._transaction, class_ids, class_ids)
        provider = refused_allocations[0].provider
        names = [
            allocation.resource_class
            for allocation in refused_allocations
            if allocation.provider is provider
        ]
        raise InventoryMissingError(provider.uuid, list(dict.fromkeys(names)))
