# SPDX-License-Identifier: Apache-2.0
"""Writes claims, never beyond capacity (contract page 70).

A write locks its consumers, then all providers that it touches in order of their ids, and judges
capacity by what it reads under these locks. So two claims on one provider queue up; neither fails because
of the other.

A consumer without a row is locked by inserting one, so that each consumer is locked before its
allocations are removed, or counted as its own.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    AllocationProviderNotFoundError,
    AllocationsNotFoundError,
    CapacityExceededError,
    InventoryMissingError,
    ResourceClassNotFoundError,
    UnitConstraintError,
)
from treeclaim.model.inventory import Inventory
from treeclaim.model.news import Part
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.allocations import consumers, owners
from treeclaim.store.operations.allocations.consumers import OwnerIds
from treeclaim.store.operations.allocations.lookup import (
    CurrentAllocations,
    Lookup,
    Usage,
    current_allocations,
    look_up,
)
from treeclaim.store.operations.locks.class_ids import require_unchanged_ids
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    lock_providers,
    raise_generation,
)
from treeclaim.store.reading.inventory_columns import INVENTORY_COLUMNS, USED
from treeclaim.store.schema.tables import allocations, inventories, resource_classes

_INVENTORIES = CompiledStatement(
    sa.select(
        inventories.c.resource_provider_id,
        inventories.c.resource_class_id,
        resource_classes.c.name,
        USED,
        *INVENTORY_COLUMNS,
    )
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .where(
        inventories.c.resource_provider_id.in_(sa.bindparam("provider_ids", expanding=True)),
        inventories.c.resource_class_id.in_(sa.bindparam("class_ids", expanding=True)),
    )
)
_REMOVE = sa.delete(allocations).where(
    allocations.c.consumer_id.in_(sa.bindparam("uuids", expanding=True))
)
_INSERT = CompiledStatement(sa.insert(allocations).inline())


@dataclass(frozen=True, slots=True)
class NewAllocation:
    """An allocation to insert.

    Attributes:
        consumer_uuid: The consumer.
        provider: The provider.
        class_id: Id of the class.
        resource_class: Its name.
        used: Amount.
    """

    consumer_uuid: str
    provider: LockedProvider
    class_id: int
    resource_class: str
    used: int

    @property
    def key(self) -> tuple[int, int]:
        """Return the inventory that the allocation uses: (provider id, class id)."""
        return self.provider.id, self.class_id


@dataclass(frozen=True, slots=True)
class LockedClaims:
    """Claims whose consumers are written and whose providers are locked.

    Attributes:
        claims: The new state of the consumers.
        consumers: The consumers that existed, as they were.
        current: The present allocations of all consumers, read while each was locked.
        class_ids: Ids of those named resource classes that exist.
        providers: All locked providers by uuid.
    """

    claims: Sequence[ConsumerClaim]
    consumers: Mapping[str, consumers.Consumer]
    current: CurrentAllocations
    class_ids: Mapping[str, int]
    providers: Mapping[str, LockedProvider] = field(default_factory=dict)


def replace(transaction: WriteTransaction, claims: Sequence[ConsumerClaim]) -> None:
    """Replace all allocations of some consumers (sections 1.3 and 3.3).

    Raises:
        ConsumerGenerationConflictError, AllocationProviderNotFoundError,
        ResourceClassNotFoundError, InventoryMissingError, UnitConstraintError,
        CapacityExceededError: in this order.
    """
    locked = lock(transaction, claims, ())
    require_known(locked)
    write(transaction, locked)


def lock(
    transaction: WriteTransaction, claims: Sequence[ConsumerClaim], also: Iterable[str]
) -> LockedClaims:
    """Write the consumers of claims, then lock the providers that they touch, and others by uuid.

    As much as possible is done before the providers are locked, so that others wait for them as
    short as possible. If the claims are refused, the transaction is rolled back.

    Raises:
        PrerequisiteError: if a project, user or consumer type must be created first.
        RetryTransactionError: if a consumer was created since it was looked up.
    """
    known, found = _locked_consumers(transaction, claims)
    owners.require(transaction, owners.named_by(claims), found.owners)
    consumers.write(transaction, claims, known, OwnerIds(transaction, found.owners))
    current = found.current
    if current.providers.keys() - known.keys():
        # Consumers without a row (old data) were not locked until one was inserted just now.
        current = current_allocations(transaction, [claim.consumer_uuid for claim in claims])
    emptied = [claim.consumer_uuid for claim in claims if not claim.allocations]
    left = set[int]().union(*(current.providers.get(consumer, ()) for consumer in emptied))
    named = {uuid for claim in claims for uuid in claim.allocations}
    rows = lock_providers(transaction, named | set(also), left)
    return LockedClaims(claims, known, current, found.class_ids, {row.uuid: row for row in rows})


def _locked_consumers(
    transaction: WriteTransaction, claims: Sequence[ConsumerClaim]
) -> tuple[Mapping[str, consumers.Consumer], Lookup]:
    """Lock the consumers that have a row, and look up what the claims name.

    If the client says that all are new, they have none as a rule, and no lock is needed. A row is
    inserted next for each consumer not locked here; if another transaction was first, that breaks
    the unique constraint, and this one runs again.

    Raises:
        RetryTransactionError: if a consumer was created after the locking.
    """
    if all(claim.generation is None for claim in claims):
        found = look_up(transaction, claims)
        if not found.consumers:
            return {}, found
    known = consumers.lock(transaction, [claim.consumer_uuid for claim in claims])
    found = look_up(transaction, claims)
    if found.consumers - known.keys():
        raise RetryTransactionError
    return consumers.delete_without_allocations(transaction, known, found.current.providers), found


def require_known(locked: LockedClaims) -> None:
    """Compare consumer generations, then check that all providers of the claims exist.

    Raises:
        ConsumerGenerationConflictError, AllocationProviderNotFoundError.
    """
    consumers.require_generations(locked.claims, locked.consumers)
    for claim in locked.claims:
        for uuid in claim.allocations:
            if uuid not in locked.providers:
                raise AllocationProviderNotFoundError(uuid)


def write(transaction: WriteTransaction, locked: LockedClaims) -> None:
    """Judge claims and write their allocations; see `replace` for what it raises."""
    new = _new_records(transaction, locked)
    _require_room(transaction, new, locked)
    _remove(transaction, locked.current)
    transaction.execute_each(
        _INSERT,
        (
            {
                "resource_provider_id": allocation.provider.id,
                "resource_class_id": allocation.class_id,
                "consumer_id": allocation.consumer_uuid,
                "used": allocation.used,
                "created_at": transaction.now,
            }
            for allocation in new
        ),
    )
    _raise_generations(transaction, locked, new)


def _raise_generations(
    transaction: WriteTransaction, locked: LockedClaims, new: Sequence[NewAllocation]
) -> None:
    """Raise the generations that section 1.2 names; record changed usage for the feed."""
    touched = {allocation.provider.id for allocation in new}
    for claim in locked.claims:
        if not claim.allocations:
            touched |= locked.current.providers.get(claim.consumer_uuid, set())
    by_id = {row.id: row for row in locked.providers.values()}
    for provider_id in sorted(touched & by_id.keys()):
        raise_generation(transaction, by_id[provider_id], Part.ALLOCATIONS)
    transaction.touch_providers(
        {provider_id for provider_id, _ in locked.current.usage}, Part.ALLOCATIONS
    )


def delete(transaction: WriteTransaction, consumer_uuid: str) -> None:
    """Remove all allocations of a consumer, and the consumer (section 5).

    Raises:
        AllocationsNotFoundError.
    """
    known = consumers.lock(transaction, [consumer_uuid])
    current = current_allocations(transaction, [consumer_uuid])
    if current.providers and consumer_uuid not in known:
        # Either it was created after the locking, and this runs again; or it has no row (old data).
        consumers.lock_missing(transaction, [consumer_uuid])
        current = current_allocations(transaction, [consumer_uuid])
    if not current.providers:
        raise AllocationsNotFoundError(consumer_uuid)
    _remove(transaction, current)
    consumers.delete(transaction, consumer_uuid)
    transaction.touch_providers(
        (provider_id for provider_id, _ in current.usage), Part.ALLOCATIONS
    )


def _remove(transaction: WriteTransaction, current: CurrentAllocations) -> None:
    """Delete just the allocations that were read, so that the feed is told of each provider.

    Raises:
        RetryTransactionError: if there are others by now, written without these locks.
    """
    if not current.providers:
        return
    removed = transaction.execute(_REMOVE, uuids=sorted(current.providers))
    if removed.rowcount != current.count:
        raise RetryTransactionError


def _new_records(transaction: ReadTransaction, locked: LockedClaims) -> list[NewAllocation]:
    wanted = [
        (claim, uuid, name, amount)
        for claim in locked.claims
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    ]
    for _, _, name, _ in wanted:
        if name not in locked.class_ids:
            require_unchanged_ids(transaction, locked.class_ids, [name])
            raise ResourceClassNotFoundError(name)
    return [
        NewAllocation(
            claim.consumer_uuid, locked.providers[uuid], locked.class_ids[name], name, amount
        )
        for claim, uuid, name, amount in wanted
    ]


def _require_room(
    transaction: ReadTransaction, new: Sequence[NewAllocation], locked: LockedClaims
) -> None:
    """Judge inventories, units and capacity (section 1.3, points 3 to 5)."""
    if not new:
        return
    inventory_of, used = _locked_inventories(transaction, new)
    if any(allocation.key not in inventory_of for allocation in new):
        require_unchanged_ids(transaction, locked.class_ids, locked.class_ids)
    _require_inventories(new, inventory_of)
    for allocation in new:
        if not inventory_of[allocation.key].admits(allocation.used):
            raise UnitConstraintError(allocation.provider.uuid, allocation.resource_class)
    before = locked.current.usage
    wanted: Usage = Counter()
    for allocation in new:
        wanted[allocation.key] += allocation.used
    for allocation in new:
        after = used[allocation.key] - before[allocation.key] + wanted[allocation.key]
        # An overcommitted inventory may be kept or relieved, not made worse.
        if after > inventory_of[allocation.key].capacity and after > used[allocation.key]:
            raise CapacityExceededError(allocation.provider.uuid, allocation.resource_class)


def _require_inventories(
    new: Sequence[NewAllocation], inventory_of: Mapping[tuple[int, int], Inventory]
) -> None:
    for allocation in new:
        if allocation.key not in inventory_of:
            missing = [
                other.resource_class
                for other in new
                if other.provider is allocation.provider and other.key not in inventory_of
            ]
            raise InventoryMissingError(allocation.provider.uuid, list(dict.fromkeys(missing)))


def _locked_inventories(
    transaction: ReadTransaction, new: Sequence[NewAllocation]
) -> tuple[dict[tuple[int, int], Inventory], Usage]:
    """Return inventories and their usage.

    The providers are locked, so an inventory read here remains, and so does its class: a class is
    not deleted while there is an inventory of it.

    Raises:
        RetryTransactionError: if a class has another name than the one its id was found under.
    """
    inventory_of: dict[tuple[int, int], Inventory] = {}
    used: Usage = Counter()
    names = {allocation.class_id: allocation.resource_class for allocation in new}
    provider_ids = sorted({allocation.provider.id for allocation in new})
    for row in transaction.rows(_INVENTORIES, provider_ids=provider_ids, class_ids=sorted(names)):
        provider_id, class_id, name, sum_of_used, *inventory = row
        if name != names[class_id]:
            raise RetryTransactionError
        inventory_of[provider_id, class_id] = Inventory(*inventory)
        used[provider_id, class_id] = int(sum_of_used)
    return inventory_of, used
