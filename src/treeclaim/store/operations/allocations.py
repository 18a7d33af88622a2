# SPDX-License-Identifier: Apache-2.0
"""Claims: what consumers hold on providers (contract page 70).

Never more than there is. A write locks its consumers, then all providers it touches in order of
their ids, and judges capacity by what it reads under these locks. Two claims on one provider thus
queue up; neither fails because of the other.

A consumer that has no row is locked by inserting one, so that each consumer of a write is held
before anything is decided by what it holds. Only with that may its allocations be removed or
counted as its own.
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
from treeclaim.store.database.ready import Ready
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations import consumers, owners
from treeclaim.store.operations.claim_lookup import Held, Lookup, Usage, held_by, look_up
from treeclaim.store.operations.class_ids import require_same_ids
from treeclaim.store.operations.consumers import Owners
from treeclaim.store.operations.provider_rows import ProviderRow, bump, locked_in_order
from treeclaim.store.reading.stock import STOCK, USED
from treeclaim.store.schema.tables import allocations, inventories, resource_classes

_STOCK = Ready(
    sa.select(
        inventories.c.resource_provider_id,
        inventories.c.resource_class_id,
        resource_classes.c.name,
        USED,
        *STOCK,
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
_INSERT = Ready(sa.insert(allocations).inline())


@dataclass(frozen=True, slots=True)
class NewAllocation:
    """One record to write.

    Attributes:
        consumer_uuid: Who.
        provider: Where, locked.
        class_id: Id of the class.
        resource_class: Its name.
        used: How much.
    """

    consumer_uuid: str
    provider: ProviderRow
    class_id: int
    resource_class: str
    used: int

    @property
    def key(self) -> tuple[int, int]:
        """Return what the record counts against: (provider id, class id)."""
        return self.provider.id, self.class_id


@dataclass(frozen=True, slots=True)
class Prepared:
    """A write whose consumers are written and whose providers are locked.

    Attributes:
        claims: What is to be.
        consumers: Those consumers that existed, as they were.
        held: What all consumers of the write hold until now, read while each was locked.
        class_ids: Ids of the resource classes named, if they exist.
        providers: All locked providers by uuid.
    """

    claims: Sequence[ConsumerClaim]
    consumers: Mapping[str, consumers.Consumer]
    held: Held
    class_ids: Mapping[str, int]
    providers: Mapping[str, ProviderRow] = field(default_factory=dict)


def replace(transaction: WriteTransaction, claims: Sequence[ConsumerClaim]) -> None:
    """Replace all that some consumers hold (sections 1.3 and 3.3).

    Raises:
        ConsumerGenerationConflictError, AllocationProviderNotFoundError,
        ResourceClassNotFoundError, InventoryMissingError, UnitConstraintError,
        CapacityExceededError: in this order.
    """
    prepared = prepare(transaction, claims, ())
    require_known(prepared)
    carry_out(transaction, prepared)


def prepare(
    transaction: WriteTransaction, claims: Sequence[ConsumerClaim], also: Iterable[str]
) -> Prepared:
    """Write the consumers of some claims, then lock all providers they touch and some more by uuid.

    Whatever can be done before the providers are locked is, so that those who wait for them wait
    less. What is written too early is undone with the transaction, should the claims be refused.
    """
    known, found = _locked_if_recorded(transaction, claims)
    owners.require(transaction, owners.named_by(claims), found.owners)
    consumers.record(transaction, claims, known, Owners(transaction, found.owners))
    held = found.held
    if held.providers.keys() - known.keys():
        # They have no record (old data), so nobody was kept out until one was inserted just now.
        held = held_by(transaction, [claim.consumer_uuid for claim in claims])
    emptied = [claim.consumer_uuid for claim in claims if not claim.allocations]
    left = set[int]().union(*(held.providers.get(consumer, ()) for consumer in emptied))
    named = {uuid for claim in claims for uuid in claim.allocations}
    rows = locked_in_order(transaction, named | set(also), left)
    return Prepared(claims, known, held, found.class_ids, {row.uuid: row for row in rows})


def _locked_if_recorded(
    transaction: WriteTransaction, claims: Sequence[ConsumerClaim]
) -> tuple[Mapping[str, consumers.Consumer], Lookup]:
    """Lock the consumers that have a record, and look up what the claims name.

    Consumers that the client holds for new are not there as a rule, and nothing is locked then.
    Whoever is not locked here has a row inserted next; if another transaction was first, that
    breaks its uniqueness, and this one runs again.

    Raises:
        RetryTransactionError: if a consumer came into being after the locking.
    """
    if all(claim.generation is None for claim in claims):
        found = look_up(transaction, claims)
        if not found.consumers:
            return {}, found
    known = consumers.locked(transaction, [claim.consumer_uuid for claim in claims])
    found = look_up(transaction, claims)
    if found.consumers - known.keys():
        raise RetryTransactionError
    return consumers.without_left_behind(transaction, known, found.held.providers), found


def require_known(prepared: Prepared) -> None:
    """Compare consumer generations, then check that all providers of the claims exist.

    Raises:
        ConsumerGenerationConflictError, AllocationProviderNotFoundError.
    """
    consumers.require_generations(prepared.claims, prepared.consumers)
    for claim in prepared.claims:
        for uuid in claim.allocations:
            if uuid not in prepared.providers:
                raise AllocationProviderNotFoundError(uuid)


def carry_out(transaction: WriteTransaction, prepared: Prepared) -> None:
    """Write the claims of a prepared write; see `replace` for what it raises."""
    new = _new_records(transaction, prepared)
    _require_room(transaction, new, prepared)
    _remove(transaction, prepared.held)
    transaction.execute_each(
        _INSERT,
        (
            {
                "resource_provider_id": one.provider.id,
                "resource_class_id": one.class_id,
                "consumer_id": one.consumer_uuid,
                "used": one.used,
                "created_at": transaction.now,
            }
            for one in new
        ),
    )
    _bump_providers(transaction, prepared, new)


def _bump_providers(
    transaction: WriteTransaction, prepared: Prepared, new: Sequence[NewAllocation]
) -> None:
    """Raise the generations that section 1.2 names; tell the feed of all whose usage changed."""
    touched = {one.provider.id for one in new}
    for claim in prepared.claims:
        if not claim.allocations:
            touched |= prepared.held.providers.get(claim.consumer_uuid, set())
    by_id = {row.id: row for row in prepared.providers.values()}
    for one in sorted(touched & by_id.keys()):
        bump(transaction, by_id[one])
    transaction.touch_providers({provider_id for provider_id, _ in prepared.held.usage})


def delete(transaction: WriteTransaction, consumer_uuid: str) -> None:
    """Remove all that a consumer holds, and the consumer (section 5).

    Raises:
        AllocationsNotFoundError.
    """
    known = consumers.locked(transaction, [consumer_uuid])
    held = held_by(transaction, [consumer_uuid])
    if held.providers and consumer_uuid not in known:
        # It was born after the locking, and this runs again; or it has no record (old data).
        consumers.hold_unrecorded(transaction, [consumer_uuid])
        held = held_by(transaction, [consumer_uuid])
    if not held.providers:
        raise AllocationsNotFoundError(consumer_uuid)
    _remove(transaction, held)
    consumers.delete(transaction, consumer_uuid)
    transaction.touch_providers(provider_id for provider_id, _ in held.usage)


def _remove(transaction: WriteTransaction, held: Held) -> None:
    """Delete just the records that were read, so that the feed is told of each that goes.

    Raises:
        RetryTransactionError: if there are others by now; who keeps to the locks makes none.
    """
    if not held.providers:
        return
    removed = transaction.execute(_REMOVE, uuids=sorted(held.providers))
    if removed.rowcount != held.records:
        raise RetryTransactionError


def _new_records(transaction: ReadTransaction, prepared: Prepared) -> list[NewAllocation]:
    wanted = [
        (claim, uuid, name, amount)
        for claim in prepared.claims
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    ]
    for _, _, name, _ in wanted:
        if name not in prepared.class_ids:
            require_same_ids(transaction, prepared.class_ids, [name])
            raise ResourceClassNotFoundError(name)
    return [
        NewAllocation(
            claim.consumer_uuid, prepared.providers[uuid], prepared.class_ids[name], name, amount
        )
        for claim, uuid, name, amount in wanted
    ]


def _require_room(
    transaction: ReadTransaction, new: Sequence[NewAllocation], prepared: Prepared
) -> None:
    """Judge inventories, units and capacity (section 1.3, points 3 to 5)."""
    if not new:
        return
    stock, used = _stock(transaction, new)
    if any(one.key not in stock for one in new):
        require_same_ids(transaction, prepared.class_ids, prepared.class_ids)
    _require_inventories(new, stock)
    for one in new:
        if not stock[one.key].admits(one.used):
            raise UnitConstraintError(one.provider.uuid, one.resource_class)
    before = prepared.held.usage
    wanted: Usage = Counter()
    for one in new:
        wanted[one.key] += one.used
    for one in new:
        after = used[one.key] - before[one.key] + wanted[one.key]
        # What is overcommitted already may be kept or relieved, not made worse.
        if after > stock[one.key].capacity and after > used[one.key]:
            raise CapacityExceededError(one.provider.uuid, one.resource_class)


def _require_inventories(
    new: Sequence[NewAllocation], stock: Mapping[tuple[int, int], Inventory]
) -> None:
    for one in new:
        if one.key not in stock:
            missing = [
                other.resource_class
                for other in new
                if other.provider is one.provider and other.key not in stock
            ]
            raise InventoryMissingError(one.provider.uuid, list(dict.fromkeys(missing)))


def _stock(
    transaction: ReadTransaction, new: Sequence[NewAllocation]
) -> tuple[dict[tuple[int, int], Inventory], Usage]:
    """Return what there is and what is used of it, as both are at one moment.

    The providers are locked, so an inventory that is here stays, and with it the class that it is
    of: a class is not deleted while there is an inventory of it.

    Raises:
        RetryTransactionError: if a class has another name than that under which its id was found.
    """
    stock: dict[tuple[int, int], Inventory] = {}
    used: Usage = Counter()
    names = {one.class_id: one.resource_class for one in new}
    provider_ids = sorted({one.provider.id for one in new})
    for row in transaction.rows(_STOCK, provider_ids=provider_ids, class_ids=sorted(names)):
        provider_id, class_id, name, sum_of_used, *inventory = row
        if name != names[class_id]:
            raise RetryTransactionError
        stock[provider_id, class_id] = Inventory(*inventory)
        used[provider_id, class_id] = int(sum_of_used)
    return stock, used
