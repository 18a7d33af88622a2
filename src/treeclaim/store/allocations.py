# SPDX-License-Identifier: Apache-2.0
"""Claims: what consumers hold on providers (contract page 70).

Never more than there is. A write locks its consumers, then all providers it touches in order of
their ids, and judges capacity by what it reads under these locks. Two claims on one provider thus
queue up; neither fails because of the other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from treeclaim.model.claim import (
    ConsumerAllocations,
    ConsumerClaim,
    ConsumerShare,
    ProviderAllocations,
    ProviderShare,
)
from treeclaim.model.errors import (
    AllocationProviderNotFoundError,
    AllocationsNotFoundError,
    CapacityExceededError,
    InventoryMissingError,
    ProviderNotFoundError,
    UnitConstraintError,
)
from treeclaim.model.inventory import Inventory
from treeclaim.store import consumers
from treeclaim.store.class_ids import ids_of
from treeclaim.store.provider_rows import ProviderRow, bump, locked_in_order
from treeclaim.store.tables import allocations, inventories, projects, resource_classes, users
from treeclaim.store.tables import consumer_types as types
from treeclaim.store.tables import consumers as consumer_rows
from treeclaim.store.tables import resource_providers as provider_table
from treeclaim.store.transactions import ReadTransaction, WriteTransaction, seconds

_HELD = sa.select(
    allocations.c.consumer_id,
    allocations.c.resource_provider_id,
    allocations.c.resource_class_id,
    allocations.c.used,
).where(allocations.c.consumer_id.in_(sa.bindparam("uuids", expanding=True)))
_STOCK = sa.select(
    inventories.c.resource_provider_id,
    inventories.c.resource_class_id,
    inventories.c.total,
    inventories.c.reserved,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
    inventories.c.allocation_ratio,
).where(
    inventories.c.resource_provider_id.in_(sa.bindparam("provider_ids", expanding=True)),
    inventories.c.resource_class_id.in_(sa.bindparam("class_ids", expanding=True)),
)
_USAGE = (
    sa.select(
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        sa.func.sum(allocations.c.used).label("used"),
    )
    .where(
        allocations.c.resource_provider_id.in_(sa.bindparam("provider_ids", expanding=True)),
        allocations.c.resource_class_id.in_(sa.bindparam("class_ids", expanding=True)),
    )
    .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
)
_REMOVE = sa.delete(allocations).where(
    allocations.c.consumer_id.in_(sa.bindparam("uuids", expanding=True))
)
_INSERT = sa.insert(allocations)

_OF_CONSUMER = (
    sa.select(
        provider_table.c.uuid,
        provider_table.c.generation,
        resource_classes.c.name,
        allocations.c.used,
        allocations.c.created_at,
        allocations.c.updated_at,
    )
    .select_from(allocations)
    .join(provider_table, provider_table.c.id == allocations.c.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .where(allocations.c.consumer_id == sa.bindparam("consumer_uuid"))
    .order_by(allocations.c.id)
)
_OWNER = (
    sa.select(
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_rows.c.uuid,
        consumer_rows.c.generation,
        types.c.name.label("type"),
    )
    .select_from(consumer_rows)
    .join(projects, projects.c.id == consumer_rows.c.project_id)
    .join(users, users.c.id == consumer_rows.c.user_id)
    .outerjoin(types, types.c.id == consumer_rows.c.consumer_type_id)
    .where(consumer_rows.c.uuid == sa.bindparam("consumer_uuid"))
)
_PROVIDER = sa.select(
    provider_table.c.id, provider_table.c.uuid, provider_table.c.generation
).where(provider_table.c.uuid == sa.bindparam("provider_uuid"))
_ON_PROVIDER = (
    sa.select(
        allocations.c.consumer_id,
        consumer_rows.c.generation,
        resource_classes.c.name,
        allocations.c.used,
        allocations.c.created_at,
        allocations.c.updated_at,
    )
    .select_from(allocations)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .outerjoin(consumer_rows, consumer_rows.c.uuid == allocations.c.consumer_id)
    .where(allocations.c.resource_provider_id == sa.bindparam("provider_id"))
    .order_by(allocations.c.id)
)

Usage = Counter[tuple[int, int]]
"""Units by (provider id, class id)."""


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
class Held:
    """What the consumers of a write held before it.

    Attributes:
        usage: Sum of their records.
        providers: Ids of the providers by consumer.
    """

    usage: Usage
    providers: Mapping[str, set[int]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A write whose consumers and providers are locked.

    Attributes:
        claims: What is to be.
        consumers: Those consumers that exist.
        held: What they hold until now.
        providers: All locked providers by uuid.
    """

    claims: Sequence[ConsumerClaim]
    consumers: Mapping[str, consumers.Consumer]
    held: Held
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
    """Lock the consumers of some claims, then all providers they touch and some more by uuid."""
    uuids = [claim.consumer_uuid for claim in claims]
    known = consumers.locked(transaction, uuids)
    held = _held(transaction, uuids)
    emptied = [claim.consumer_uuid for claim in claims if not claim.allocations]
    left = set[int]().union(*(held.providers.get(one, ()) for one in emptied))
    named = {uuid for claim in claims for uuid in claim.allocations}
    rows = locked_in_order(transaction, named | set(also), left)
    return Prepared(claims, known, held, {row.uuid: row for row in rows})


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
    _require_room(transaction, new, prepared.held.usage)
    uuids = [claim.consumer_uuid for claim in prepared.claims]
    if prepared.held.providers:
        transaction.execute(_REMOVE, uuids=uuids)
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
    consumers.record(transaction, prepared.claims, prepared.consumers)
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
    consumers.locked(transaction, [consumer_uuid])
    held = _held(transaction, [consumer_uuid])
    if not held.providers:
        raise AllocationsNotFoundError(consumer_uuid)
    transaction.execute(_REMOVE, uuids=[consumer_uuid])
    consumers.delete(transaction, consumer_uuid)
    transaction.touch_providers(provider_id for provider_id, _ in held.usage)


def _held(transaction: ReadTransaction, uuids: Sequence[str]) -> Held:
    usage: Usage = Counter()
    providers: dict[str, set[int]] = defaultdict(set)
    for row in transaction.rows(_HELD, uuids=list(uuids)) if uuids else ():
        # Some collations find other spellings too.
        if row.consumer_id in uuids:
            usage[row.resource_provider_id, row.resource_class_id] += row.used
            providers[row.consumer_id].add(row.resource_provider_id)
    return Held(usage, dict(providers))


def _new_records(transaction: ReadTransaction, prepared: Prepared) -> list[NewAllocation]:
    class_ids = ids_of(
        transaction,
        (
            name
            for claim in prepared.claims
            for resources in claim.allocations.values()
            for name in resources
        ),
    )
    return [
        NewAllocation(claim.consumer_uuid, prepared.providers[uuid], class_ids[name], name, amount)
        for claim in prepared.claims
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    ]


def _require_room(
    transaction: ReadTransaction, new: Sequence[NewAllocation], before: Usage
) -> None:
    """Judge inventories, units and capacity (section 1.3, points 3 to 5)."""
    if not new:
        return
    provider_ids = sorted({one.provider.id for one in new})
    class_ids = sorted({one.class_id for one in new})
    stock = _stock(transaction, provider_ids, class_ids)
    _require_inventories(new, stock)
    for one in new:
        if not stock[one.key].admits(one.used):
            raise UnitConstraintError(one.provider.uuid, one.resource_class)
    used: Usage = Counter()
    for row in transaction.rows(_USAGE, provider_ids=provider_ids, class_ids=class_ids):
        used[row.resource_provider_id, row.resource_class_id] = int(row.used)
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
    transaction: ReadTransaction, provider_ids: list[int], class_ids: list[int]
) -> dict[tuple[int, int], Inventory]:
    return {
        (row[0], row[1]): Inventory(*row[2:])
        for row in transaction.rows(_STOCK, provider_ids=provider_ids, class_ids=class_ids)
    }


def of_consumer(transaction: ReadTransaction, consumer_uuid: str) -> ConsumerAllocations | None:
    """Return what a consumer holds, None if nothing (section 2).

    A consumer without a row of its own, which old databases have, shows nothing either.
    """
    owner = transaction.row(_OWNER, consumer_uuid=consumer_uuid)
    rows = transaction.rows(_OF_CONSUMER, consumer_uuid=consumer_uuid)
    if owner is None or owner.uuid != consumer_uuid or not rows:
        return None
    generations = {row.uuid: row.generation or 0 for row in rows}
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        resources[row.uuid][row.name] = row.used
    return ConsumerAllocations(
        shares={
            uuid: ProviderShare(generation, resources[uuid])
            for uuid, generation in generations.items()
        },
        project_id=owner.project,
        user_id=owner.user,
        generation=owner.generation,
        consumer_type=owner.type,
        modified_at=_newest(rows),
    )


def of_provider(transaction: ReadTransaction, provider_uuid: str) -> ProviderAllocations:
    """Return what consumers hold on a provider (section 6).

    Raises:
        ProviderNotFoundError.
    """
    provider = transaction.row(_PROVIDER, provider_uuid=provider_uuid)
    if provider is None or provider.uuid != provider_uuid:
        raise ProviderNotFoundError(provider_uuid)
    rows = transaction.rows(_ON_PROVIDER, provider_id=provider.id)
    resources: dict[str, dict[str, int]] = defaultdict(dict)
    generations: dict[str, int] = {}
    for row in rows:
        resources[row.consumer_id][row.name] = row.used
        generations[row.consumer_id] = row.generation or 0
    return ProviderAllocations(
        provider_generation=provider.generation or 0,
        shares={
            uuid: ConsumerShare(generation, resources[uuid])
            for uuid, generation in generations.items()
        },
        modified_at=_newest(rows) if rows else None,
    )


def _newest(rows: Sequence[Any]) -> float:
    return max(seconds(row.updated_at, row.created_at) for row in rows)
