# SPDX-License-Identifier: Apache-2.0
"""Inventories of providers (contract page 30)."""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import (
    CapacityTooSmallError,
    InventoryExistsError,
    InventoryInUseError,
    InventoryNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.inventory import AMOUNTS, Inventory
from treeclaim.model.parts import Part
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import Key, ReadTransaction, WriteTransaction
from treeclaim.store.operations.locks.class_ids import ids_of, locked_ids_of, names_of
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    lock_provider,
    raise_generation,
    require_generation,
)
from treeclaim.store.operations.providers import consumption
from treeclaim.store.reading.inventories import INVENTORY_COLUMNS
from treeclaim.store.schema.tables import allocations, inventories

_OF_PROVIDER = inventories.c.resource_provider_id == sa.bindparam("provider_id")
_OF_CLASSES = inventories.c.resource_class_id.in_(sa.bindparam("class_ids", expanding=True))

_AMOUNTS = CompiledStatement(
    sa.select(inventories.c.resource_class_id, *INVENTORY_COLUMNS).where(_OF_PROVIDER)
)
_IN_USE = CompiledStatement(
    sa.select(allocations.c.resource_class_id, sa.func.sum(allocations.c.used))
    .where(
        allocations.c.resource_provider_id == sa.bindparam("provider_id"),
        allocations.c.resource_class_id.in_(sa.bindparam("class_ids", expanding=True)),
    )
    .group_by(allocations.c.resource_class_id)
)
_INSERT = CompiledStatement(sa.insert(inventories).inline())
_UPDATE = CompiledStatement(
    sa.update(inventories)
    .where(_OF_PROVIDER, inventories.c.resource_class_id == sa.bindparam("class_id"))
    .values({name: sa.bindparam(f"new_{name}") for name in (*AMOUNTS, "updated_at")})
)
_WRITE_AGAIN = CompiledStatement(
    sa.update(inventories).where(_OF_PROVIDER, _OF_CLASSES).values(updated_at=sa.bindparam("at"))
)
"""Writes inventories that stay as they are: of them only the time changes."""
_DELETE = CompiledStatement(sa.delete(inventories).where(_OF_PROVIDER, _OF_CLASSES))

Present = Mapping[int, tuple[Any, ...]]
"""The amounts of a provider's inventories, in the order of `AMOUNTS`, by class id."""


def add(
    transaction: WriteTransaction,
    provider_uuid: str,
    resource_class: str,
    inventory: Inventory,
    *,
    zero_capacity_allowed: bool,
) -> int:
    """Add an inventory (section 3); return the provider's new generation.

    Raises:
        ProviderNotFoundError, CapacityTooSmallError, ResourceClassNotFoundError,
        InventoryExistsError, ConsumptionError.
    """
    provider = consumption.lock_with_consumed(transaction, provider_uuid, [inventory])
    _require_capacity(provider, {resource_class: inventory}, zero_allowed=zero_capacity_allowed)
    class_id = locked_ids_of(transaction, [resource_class])[resource_class]
    if class_id in present_of(transaction, provider):
        raise InventoryExistsError(provider_uuid, resource_class)
    _insert(transaction, provider, {class_id: inventory})
    _write_soundly(transaction, provider, {class_id: inventory})
    return raise_generation(transaction, provider, Part.INVENTORIES)


def replace_all(
    transaction: WriteTransaction,
    provider_uuid: str,
    generation: int,
    new: Mapping[str, Inventory],
    *,
    zero_capacity_allowed: bool,
) -> int:
    """Replace all inventories of a provider (section 4); return its new generation.

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError, CapacityTooSmallError,
        ResourceClassNotFoundError, InventoryInUseError, ConsumptionError.
    """
    provider = consumption.lock_with_consumed(transaction, provider_uuid, new.values())
    require_generation(provider, generation)
    _require_capacity(provider, new, zero_allowed=zero_capacity_allowed)
    ids = locked_ids_of(transaction, new)
    by_id = {ids[name]: inventory for name, inventory in new.items()}
    gone = set_all(transaction, provider, by_id)
    written = write_consumption(transaction, provider, by_id)
    if gone or written:
        consumption.require_sound(transaction, [provider.id], written)
    return raise_generation(transaction, provider, Part.INVENTORIES)


def replace_one(
    transaction: WriteTransaction,
    provider_uuid: str,
    generation: int,
    resource_class: str,
    inventory: Inventory,
    *,
    zero_capacity_allowed: bool,
) -> int:
    """Replace one inventory that exists (section 7); return the provider's new generation.

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError, CapacityTooSmallError,
        ResourceClassNotFoundError, InventoryNotFoundError, ConsumptionError.
    """
    provider = consumption.lock_with_consumed(transaction, provider_uuid, [inventory])
    require_generation(provider, generation)
    _require_capacity(provider, {resource_class: inventory}, zero_allowed=zero_capacity_allowed)
    class_id = ids_of(transaction, [resource_class])[resource_class]
    present = present_of(transaction, provider)
    if class_id not in present:
        raise InventoryNotFoundError(provider_uuid, resource_class)
    _update(transaction, provider, {class_id: inventory}, present)
    _write_soundly(transaction, provider, {class_id: inventory})
    return raise_generation(transaction, provider, Part.INVENTORIES)


def delete_one(transaction: WriteTransaction, provider_uuid: str, resource_class: str) -> None:
    """Delete one inventory (section 8).

    Raises:
        ProviderNotFoundError, InventoryNotFoundError, InventoryInUseError.
    """
    provider = lock_provider(transaction, provider_uuid)
    try:
        class_id = ids_of(transaction, [resource_class])[resource_class]
    except ResourceClassNotFoundError as error:
        raise InventoryNotFoundError(provider_uuid, resource_class) from error
    if class_id not in present_of(transaction, provider):
        raise InventoryNotFoundError(provider_uuid, resource_class)
    _delete(transaction, provider, [class_id])
    consumption.require_sound(transaction, [provider.id])
    raise_generation(transaction, provider, Part.INVENTORIES)


def delete_all(transaction: WriteTransaction, provider_uuid: str) -> None:
    """Delete all inventories of a provider (section 5).

    Raises:
        ProviderNotFoundError, InventoryInUseError.
    """
    provider = lock_provider(transaction, provider_uuid)
    set_all(transaction, provider, {})
    consumption.require_sound(transaction, [provider.id])
    raise_generation(transaction, provider, Part.INVENTORIES)


def present_of(transaction: ReadTransaction, provider: LockedProvider) -> Present:
    """Return the inventories that a provider has."""
    rows = transaction.rows(_AMOUNTS, provider_id=provider.id)
    return {class_id: tuple(amounts) for class_id, *amounts in rows}


def set_all(
    transaction: WriteTransaction, provider: LockedProvider, new: Mapping[int, Inventory]
) -> Collection[int]:
    """Make these a provider's inventories; the caller raises its generation.

    What they consume is for `write_consumption`, once all inventories of a write are there.

    Args:
        transaction: The one that writes.
        provider: The provider.
        new: By class id, of classes that are locked (`locked_ids_of`).

    Returns:
        The ids of the classes whose inventories are gone.

    Raises:
        InventoryInUseError: if an inventory to delete has allocations.
    """
    present = present_of(transaction, provider)
    gone = present.keys() - new.keys()
    _delete(transaction, provider, gone)
    add_or_update(transaction, provider, new, present)
    return gone


def add_or_update(
    transaction: WriteTransaction,
    provider: LockedProvider,
    new: Mapping[int, Inventory],
    present: Present,
) -> None:
    """Update the inventories of classes in `present`, insert the others; by class id.

    The classes are locked (`locked_ids_of`).
    """
    kept = {class_id: new[class_id] for class_id in new if class_id in present}
    _update(transaction, provider, kept, present)
    _insert(
        transaction,
        provider,
        {class_id: new[class_id] for class_id in new if class_id not in present},
    )


def write_consumption(
    transaction: WriteTransaction, provider: LockedProvider, new: Mapping[int, Inventory]
) -> set[Key]:
    """Write what inventories consume, for those that say so; return these.

    Raises:
        ConsumptionError: if one consumes what does not exist; the rest is for the caller to check.
    """
    given = {
        (provider.id, class_id): inventory.consumes
        for class_id, inventory in new.items()
        if inventory.consumes is not None
    }
    consumption.write(transaction, given)
    return set(given)


def _write_soundly(
    transaction: WriteTransaction, provider: LockedProvider, new: Mapping[int, Inventory]
) -> None:
    """Write what inventories consume, for those that say so, if nothing else is written.

    Raises:
        ConsumptionError: if one consumes what it must not.
    """
    written = write_consumption(transaction, provider, new)
    if written:
        consumption.require_sound(transaction, [provider.id], written)


def _require_capacity(
    provider: LockedProvider, new: Mapping[str, Inventory], *, zero_allowed: bool
) -> None:
    for name, inventory in new.items():
        capacity = inventory.whole_capacity
        if capacity < 0 or (capacity == 0 and not zero_allowed):
            raise CapacityTooSmallError(name, provider.uuid, zero_allowed=zero_allowed)


def _insert(
    transaction: WriteTransaction, provider: LockedProvider, new: Mapping[int, Inventory]
) -> None:
    if not new:
        return
    consumption.forget(transaction, [provider.id])
    transaction.change_each(
        _INSERT,
        (
            {
                "resource_provider_id": provider.id,
                "resource_class_id": class_id,
                "created_at": transaction.now,
                **inventory.amounts,
            }
            for class_id, inventory in sorted(new.items())
        ),
    )


def _update(
    transaction: WriteTransaction,
    provider: LockedProvider,
    new: Mapping[int, Inventory],
    present: Present,
) -> None:
    """Update inventories; those that stay as they are by one statement."""
    amounts = {class_id: inventory.amounts for class_id, inventory in sorted(new.items())}
    same = [
        class_id
        for class_id, given in amounts.items()
        if tuple(given.values()) == present[class_id]
    ]
    if same:
        transaction.change(
            _WRITE_AGAIN, provider_id=provider.id, class_ids=same, at=transaction.now
        )
    for class_id in sorted(amounts.keys() - same):
        transaction.change(
            _UPDATE,
            provider_id=provider.id,
            class_id=class_id,
            new_updated_at=transaction.now,
            **{f"new_{name}": value for name, value in amounts[class_id].items()},
        )


def _delete(
    transaction: WriteTransaction, provider: LockedProvider, class_ids: Collection[int]
) -> None:
    """Delete inventories.

    Raises:
        InventoryInUseError: if some have allocations.
    """
    if not class_ids:
        return
    ids = sorted(class_ids)
    found = transaction.rows(_IN_USE, provider_id=provider.id, class_ids=ids)
    if found:
        used = {row[0]: int(row[1]) for row in found}
        names = names_of(transaction, list(used))
        classes = [names[class_id] for class_id in sorted(used)]
        raise InventoryInUseError(provider.uuid, classes, used[min(used)])
    transaction.change(_DELETE, provider_id=provider.id, class_ids=ids)
    consumption.forget(transaction, [provider.id])
