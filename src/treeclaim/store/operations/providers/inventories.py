# SPDX-License-Identifier: Apache-2.0
"""Writes inventories of providers (contract page 30), and their consumption (page 102, section 2)."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from treeclaim.model.errors import (
    CapacityTooSmallError,
    InventoryExistsError,
    InventoryInUseError,
    InventoryNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.extension.batch import EntryFault
from treeclaim.model.extension.errors import ConsumptionError
from treeclaim.model.names import is_custom_name
from treeclaim.model.parts import INVENTORIES
from treeclaim.model.provider import AMOUNTS, Consumption, Inventory
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import (
    NAMES_PER_STATEMENT,
    Key,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.catalogue import resource_classes
from treeclaim.store.operations.catalogue.resource_classes import load_class_names, lock_classes
from treeclaim.store.operations.locks.consumed import ConsumedAmounts, load_consumption
from treeclaim.store.operations.providers import consumption
from treeclaim.store.operations.providers.part_writer import (
    PROVIDERS_PER_STATEMENT,
    InventoryScope,
    PartWriter,
    Target,
    WriteRules,
)
from treeclaim.store.reading.inventories import INVENTORY_COLUMNS
from treeclaim.store.schema.tables import inventories

_SELECT_INVENTORIES = f"""
SELECT resource_provider_id, resource_class_id, {INVENTORY_COLUMNS} FROM inventories
WHERE resource_provider_id IN :provider_ids
"""
_SUM_ALLOCATIONS = """
SELECT resource_provider_id, resource_class_id, SUM(used) FROM allocations
WHERE resource_provider_id IN :provider_ids AND resource_class_id IN :class_ids
GROUP BY resource_provider_id, resource_class_id
"""
_INSERT = compile_insert(inventories)
_NEW_VALUES = ", ".join(f"{name} = :new_{name}" for name in (*AMOUNTS, "updated_at"))
_UPDATE = f"""
UPDATE inventories SET {_NEW_VALUES}
WHERE resource_provider_id = :provider_id AND resource_class_id = :class_id
"""
_OF_CLASSES = "WHERE resource_provider_id = :provider_id AND resource_class_id IN :class_ids"
_SET_UPDATED = f"UPDATE inventories SET updated_at = :at {_OF_CLASSES}"
_DELETE = f"DELETE FROM inventories {_OF_CLASSES}"

StoredAmounts = dict[int, tuple[float, ...]]
"""The amounts of the inventories of a provider, by class id, in the order of `INVENTORY_COLUMNS`."""


class InventoryWriter(PartWriter):
    """Writes inventories; a class with the value None loses its inventory.

    `reshape` calls the steps of `judge` and `write` separately, and moves claims between them.
    """

    part = INVENTORIES

    def __init__(
        self, transaction: WriteTransaction, targets: Sequence[Target], rules: WriteRules
    ) -> None:
        super().__init__(transaction, targets, rules)
        self._class_ids: Mapping[str, int] = {}
        self._inserted_rows: list[dict[str, Any]] = []
        self._updated_rows: list[dict[str, Any]] = []
        self._equal_class_ids: dict[int, list[int]] = {}
        self._deleted_class_ids: dict[int, set[int]] = {}
        self._consumes: dict[Key, Sequence[Consumption]] = {}
        self._consumption_before: ConsumedAmounts = {}
        self._new_consumption: dict[Key, Mapping[Key, int]] = {}

    @property
    def has_consumption(self) -> bool:
        """Return whether an entry has consumption of an inventory, even an empty list."""
        return bool(self._consumes)

    def create_names(self) -> None:
        """Create missing custom classes."""
        for name in sorted(filter(is_custom_name, self._names)):
            resource_classes.ensure(self._transaction, name)

    def look_up(self, problems: list[EntryFault]) -> None:
        """Add a problem for each capacity below the minimum, and each unknown class; lock the classes."""
        for target in self._targets:
            self._transaction.check_deadline()
            problems += self._find_small_capacities(target)
        self._class_ids = lock_classes(self._transaction, sorted(self._names))
        for target in self._targets:
            self._transaction.check_deadline()
            problems += [
                EntryFault(target.index, ResourceClassNotFoundError(name))
                for name in self._value(target)
                if name not in self._class_ids
            ]

    def _find_small_capacities(self, target: Target) -> list[EntryFault]:
        least_capacity = self._rules.least_capacity
        return [
            EntryFault(
                target.index,
                CapacityTooSmallError(name, target.uuid, zero_allowed=least_capacity == 0),
            )
            for name, inventory in self._value(target).items()
            if least_capacity is not None
            and inventory is not None
            and inventory.whole_capacity < least_capacity
        ]

    def judge(self, problems: list[EntryFault]) -> None:
        """Add a problem for each deletion of a used inventory, and each consumption of an unknown one.

        Raises:
            InventoryExistsError, InventoryNotFoundError: by `WriteRules.scope`.
        """
        self.plan()
        self.judge_deletions(problems)
        if not problems:
            # After a problem, the new providers do not exist.
            self.judge_consumption(problems)

    def plan(self) -> None:
        """Find the rows to insert, update and delete; raise as `judge`."""
        stored_amounts = self._load()
        for target in self._targets:
            self._transaction.check_deadline()
            if target.provider is not None:
                self._plan_target(target, stored_amounts.get(target.row.id, {}))

    def _plan_target(self, target: Target, amounts_before: StoredAmounts) -> None:
        provider_id, now = target.row.id, self._transaction.now
        new_by_class = self._index_by_class(target, amounts_before)
        new_inventories = {
            class_id: inventory
            for class_id, inventory in new_by_class.items()
            if inventory is not None
        }
        scope_ids = amounts_before if self._rules.scope is InventoryScope.ALL else new_by_class
        if deleted_ids := scope_ids.keys() - new_inventories.keys():
            self._deleted_class_ids[provider_id] = deleted_ids
        equal_ids = []
        for class_id, inventory in sorted(new_inventories.items()):
            amounts = inventory.amounts
            if inventory.consumes is not None:
                self._consumes[provider_id, class_id] = inventory.consumes
            if class_id not in amounts_before:
                key = {"resource_provider_id": provider_id, "resource_class_id": class_id}
                self._inserted_rows.append({**key, "created_at": now, **amounts})
            elif amounts_before[class_id] != tuple(amounts.values()):
                values = {f"new_{name}": value for name, value in amounts.items()}
                key = {"provider_id": provider_id, "class_id": class_id}
                self._updated_rows.append({**key, "new_updated_at": now, **values})
            else:
                equal_ids.append(class_id)
        if deleted_ids or len(equal_ids) < len(new_inventories):
            target.changed.append(self.part.name)
        if equal_ids and self._rules.rewrites_equal:
            self._equal_class_ids[provider_id] = equal_ids

    def _index_by_class(
        self, target: Target, amounts_before: StoredAmounts
    ) -> Mapping[int, Inventory | None]:
        scope, new_by_class = self._rules.scope, {}
        for name, inventory in self._value(target).items():
            if name in self._class_ids:
                class_id = self._class_ids[name]
                new_by_class[class_id] = inventory
                if scope is InventoryScope.MISSING and class_id in amounts_before:
                    raise InventoryExistsError(target.uuid, name)
                if scope is InventoryScope.PRESENT and class_id not in amounts_before:
                    raise InventoryNotFoundError(target.uuid, name)
        return new_by_class

    def _load(self) -> Mapping[int, StoredAmounts]:
        stored_amounts: defaultdict[int, StoredAmounts] = defaultdict(dict)
        existing_ids = [target.row.id for target in self._targets if not target.is_new]
        for ids in chunks(existing_ids, PROVIDERS_PER_STATEMENT):
            for provider_id, class_id, *amounts in self._transaction.rows(
                _SELECT_INVENTORIES, provider_ids=ids
            ):
                stored_amounts[provider_id][class_id] = tuple(amounts)
        return stored_amounts

    def judge_deletions(self, problems: list[EntryFault]) -> None:
        """Add a problem for each provider that loses used inventories."""
        if not self._deleted_class_ids:
            return
        used_amounts: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for ids in chunks(sorted(self._deleted_class_ids), PROVIDERS_PER_STATEMENT):
            deleted_ids = set().union(
                *(self._deleted_class_ids[provider_id] for provider_id in ids)
            )
            for class_ids in chunks(sorted(deleted_ids), NAMES_PER_STATEMENT):
                for provider_id, class_id, amount in self._transaction.rows(
                    _SUM_ALLOCATIONS, provider_ids=ids, class_ids=class_ids
                ):
                    if class_id in self._deleted_class_ids[provider_id]:
                        used_amounts[provider_id][class_id] = int(amount)
        if not used_amounts:
            return
        names = load_class_names(self._transaction, set().union(*used_amounts.values()))
        for target in self._targets:
            if target.provider is not None and (amounts := used_amounts.get(target.row.id)):
                classes = [names.get(class_id, str(class_id)) for class_id in sorted(amounts)]
                error = InventoryInUseError(target.uuid, classes, amounts[min(amounts)])
                problems.append(EntryFault(target.index, error))

    def judge_consumption(self, problems: list[EntryFault]) -> None:
        """Add a problem for each inventory that consumes an unknown provider or class."""
        if not self._consumes:
            return
        new_consumption = consumption.resolve(self._transaction, self._consumes)
        self._consumption_before = load_consumption(
            self._transaction, {key[0] for key in self._consumes}
        )
        target_by_id = {target.row.id: target for target in self._targets if target.provider}
        for key, entries in self._consumes.items():
            target = target_by_id[key[0]]
            if len(new_consumption[key]) != len(entries):
                error = ConsumptionError("names what does not exist", entries)
                problems.append(EntryFault(target.index, error))
            elif new_consumption[key] != self._consumption_before.get(key, {}):
                self._new_consumption[key] = new_consumption[key]
                if self.part.name not in target.changed:
                    target.changed.append(self.part.name)

    def write(self) -> None:
        """Write the differences."""
        self.delete()
        self.insert_and_update()

    def delete(self) -> None:
        """Delete inventories, and consumption by them."""
        for provider_id, class_ids in sorted(self._deleted_class_ids.items()):
            self._transaction.change(_DELETE, provider_id=provider_id, class_ids=sorted(class_ids))
        consumption.delete_leftovers(self._transaction, self._deleted_class_ids)

    def insert_and_update(self) -> None:
        """Insert and update inventories, and write their consumption."""
        for provider_id, class_ids in sorted(self._equal_class_ids.items()):
            self._transaction.change(
                _SET_UPDATED,
                provider_id=provider_id,
                class_ids=class_ids,
                at=self._transaction.now,
            )
        for values in self._updated_rows:
            self._transaction.change(_UPDATE, **values)
        # Other programs may have left consumption behind.
        consumption.delete_leftovers(
            self._transaction, {values["resource_provider_id"] for values in self._inserted_rows}
        )
        self._transaction.change_each(_INSERT, self._inserted_rows)
        consumption.write(self._transaction, self._new_consumption, self._consumption_before)

    def check(self, problems: list[EntryFault], moved_ids: Collection[int]) -> None:
        """Add a problem for each violated rule of consumption."""
        provider_ids = {*moved_ids, *self._deleted_class_ids, *(key[0] for key in self._consumes)}
        if not provider_ids:
            return
        faults = consumption.find_faults(self._transaction, provider_ids, self._consumes)
        indices = {target.row.id: target.index for target in self._all_targets}
        # A provider that moves with its parent has no entry; the first entry gets its problem.
        problems += [
            EntryFault(indices.get(provider_id, self._all_targets[0].index), error)
            for provider_id, error in faults
        ]
