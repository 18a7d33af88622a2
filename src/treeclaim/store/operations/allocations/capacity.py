# SPDX-License-Identifier: Apache-2.0
"""Judges allocations by inventories and capacity (contract page 70, section 1.3, points 3 to 5)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import sqlalchemy as sa

from treeclaim.model.errors import (
    CapacityExceededError,
    InventoryMissingError,
    UnitConstraintError,
)
from treeclaim.model.inventory import Inventory
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    chunks,
)
from treeclaim.store.operations.allocations.lookup import Usage
from treeclaim.store.operations.locks.class_ids import require_unchanged_ids
from treeclaim.store.operations.locks.provider_rows import LockedProvider
from treeclaim.store.reading.inventory_columns import INVENTORY_COLUMNS, USED
from treeclaim.store.schema.tables import conditions, inventories, resource_classes

_CLASS_ID = inventories.c.resource_class_id + sa.literal_column("0")
"""An expression, so that no index of classes is used, neither to select by nor to join by: PostgreSQL,
without statistics, and MariaDB, since there are few classes, would read all inventories of the classes
by it instead of those of the providers."""

INVENTORIES = CompiledStatement(
    sa.select(
        inventories.c.resource_provider_id,
        inventories.c.resource_class_id,
        resource_classes.c.name,
        sa.exists(sa.select(conditions.c.effect)).label("has_conditions"),
        USED,
        *INVENTORY_COLUMNS,
    )
    .select_from(inventories.join(resource_classes, resource_classes.c.id == _CLASS_ID))
    .where(
        inventories.c.resource_provider_id.in_(sa.bindparam("provider_ids", expanding=True)),
        _CLASS_ID.in_(sa.bindparam("class_ids", expanding=True)),
    ),
    is_packed=True,
)


@dataclass(frozen=True, slots=True)
class NewAllocation:
    """An allocation to insert.

    Attributes:
        consumer_uuid: The consumer.
        provider: The provider.
        class_id: Id of the class.
        resource_class: Its name.
        used: Amount.
        is_hold: Whether the consumer is a hold, which no unit concerns (contract page 100).
    """

    consumer_uuid: str
    provider: LockedProvider
    class_id: int
    resource_class: str
    used: int
    is_hold: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """Return the inventory that the allocation uses: (provider id, class id)."""
        return self.provider.id, self.class_id


class Ledger:
    """Inventories of locked providers, and their usage as a transaction changes it.

    Args:
        transaction: It has locked the providers. So an inventory that it reads remains, and so
            does its class: a class is not deleted while there is an inventory of it.
        new: The allocations that will be judged.

    Raises:
        RetryTransactionError: if a class has another name than the one its id was found under.

    Attributes:
        has_conditions: Whether any provider of the cloud has a condition.
    """

    def __init__(self, transaction: ReadTransaction, new: Sequence[NewAllocation]) -> None:
        self._transaction = transaction
        self._inventories: dict[tuple[int, int], Inventory] = {}
        self._used: Usage = Counter()
        self.has_conditions = False
        names = {allocation.class_id: allocation.resource_class for allocation in new}
        provider_ids = {allocation.provider.id for allocation in new}
        for chunk in chunks(sorted(provider_ids)):
            rows = transaction.rows(INVENTORIES, provider_ids=chunk, class_ids=sorted(names))
            for provider_id, class_id, name, has_conditions, used, *inventory in rows:
                if name != names[class_id]:
                    raise RetryTransactionError
                self.has_conditions |= bool(has_conditions)
                self._inventories[provider_id, class_id] = Inventory(*inventory)
                self._used[provider_id, class_id] = int(used)

    def accept(
        self,
        new: Sequence[NewAllocation],
        before: Usage,
        class_ids: Mapping[str, int],
        held: Usage | None = None,
    ) -> None:
        """Judge one request's allocations, and count them as written for those that follow.

        Args:
            new: The allocations.
            before: Those that they replace, and what holds had that the request changes.
            class_ids: Ids of classes by name, as they were found.
            held: What these holds have then; they count as consumers of the request.

        Raises:
            InventoryMissingError, UnitConstraintError, CapacityExceededError: nothing is counted
                then.
        """
        keys = [allocation.key for allocation in new]
        if any(key not in self._inventories for key in keys):
            self._refuse_missing(new, class_ids)
        wanted: dict[tuple[int, int], int] = dict(held or {})
        for key, allocation in zip(keys, new, strict=True):
            inventory = self._inventories[key]
            if not allocation.is_hold and not inventory.admits(allocation.used):
                raise UnitConstraintError(
                    allocation.provider.uuid, allocation.resource_class, allocation.used, inventory
                )
            wanted[key] = wanted.get(key, 0) + allocation.used
        for key, allocation in zip(keys, new, strict=True):
            used = self._used[key]
            others = used - before.get(key, 0)
            after = others + wanted[key]
            # An overcommitted inventory may be kept or relieved, not made worse.
            if after > self._inventories[key].capacity and after > used:
                raise CapacityExceededError(
                    allocation.provider.uuid,
                    allocation.resource_class,
                    requested=wanted[key],
                    free=max(self._inventories[key].whole_capacity, 0) - others,
                )
        for key, amount in before.items():
            self._used[key] -= amount
        for key, amount in wanted.items():
            self._used[key] += amount

    def _refuse_missing(
        self, new: Sequence[NewAllocation], class_ids: Mapping[str, int]
    ) -> NoReturn:
        missing = [allocation for allocation in new if allocation.key not in self._inventories]
        require_unchanged_ids(self._transaction, class_ids, class_ids)
        provider = missing[0].provider
        names = [
            allocation.resource_class for allocation in missing if allocation.provider is provider
        ]
        raise InventoryMissingError(provider.uuid, list(dict.fromkeys(names)))
