# SPDX-License-Identifier: Apache-2.0
"""Placements: claims of many new consumers at once, found by a search (contract page 98, section 4).

The same locks in the same order as for any claim (`allocations`), and the same judgement of room
under them; but each statement is for all consumers, and a refusal names the consumer with which
the search has to begin again.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.inventory import Inventory
from treeclaim.model.news import Part
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.allocations import owners
from treeclaim.store.operations.allocations.consumers import OwnerIds, delete, lock
from treeclaim.store.operations.locks.provider_rows import LockedProvider, lock_providers
from treeclaim.store.reading.inventory_columns import INVENTORY_COLUMNS, USED
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    projects,
    resource_classes,
    resource_providers,
    users,
)


class PlacementRefusedError(TreeclaimError):
    """A provider is gone by now, or has no room, for a consumer of a call.

    Attributes:
        consumer: The first that is refused.
    """

    def __init__(self, consumer: str) -> None:
        super().__init__(f"There is no room any more for consumer {consumer}.")
        self.consumer = consumer


class PlacedMeanwhileError(TreeclaimError):
    """A consumer of a call that held nothing does by now."""


@dataclass(frozen=True, slots=True)
class StoredHolder:
    """A consumer that holds something.

    Attributes:
        allocations: Amounts by provider uuid and resource class.
        project_id, user_id: Owners; None for a consumer without a record (old data).
        consumer_type: Type name, None if it never got one.
        generation: Its generation; 0 without a record.
    """

    allocations: Mapping[str, Mapping[str, int]]
    project_id: str | None
    user_id: str | None
    consumer_type: str | None
    generation: int


_UUIDS: sa.BindParameter[str] = sa.bindparam("uuids", expanding=True)
_HELD = (
    sa.select(
        allocations.c.consumer_id,
        resource_providers.c.uuid,
        resource_classes.c.name,
        allocations.c.used,
    )
    .select_from(allocations)
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .where(allocations.c.consumer_id.in_(_UUIDS))
    .order_by(allocations.c.id)
)
_OWNERS = (
    sa.select(
        consumers.c.uuid,
        consumers.c.generation,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("type"),
    )
    .select_from(consumers)
    .join(projects, projects.c.id == consumers.c.project_id)
    .join(users, users.c.id == consumers.c.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .where(consumers.c.uuid.in_(_UUIDS))
)
_RECORDED = sa.select(consumers.c.uuid).where(consumers.c.uuid.in_(_UUIDS))
_HOLDING = (
    sa.select(allocations.c.consumer_id).distinct().where(allocations.c.consumer_id.in_(_UUIDS))
)
_CLASSES = sa.select(resource_classes.c.id, resource_classes.c.name).where(
    resource_classes.c.name.in_(sa.bindparam("names", expanding=True))
)
_STOCK = (
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
_BUMP = (
    sa.update(resource_providers)
    .where(
        resource_providers.c.id.in_(sa.bindparam("provider_ids", expanding=True)),
        sa.func.coalesce(resource_providers.c.generation, 0) == sa.bindparam("known"),
    )
    .values(generation=sa.bindparam("next"), updated_at=sa.bindparam("at"))
)
_INSERT_CONSUMERS = CompiledStatement(sa.insert(consumers).inline())
_INSERT = CompiledStatement(sa.insert(allocations).inline())


def holders(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, StoredHolder]:
    """Return those of some consumers that hold something, all as they are at one moment."""
    held: dict[str, dict[str, dict[str, int]]] = {}
    recorded = {}
    for some in chunks(uuids):
        for row in transaction.rows(_HELD, uuids=list(some)):
            amounts = held.setdefault(row.consumer_id, {}).setdefault(row.uuid, {})
            amounts[row.name] = amounts.get(row.name, 0) + int(row.used)
        for row in transaction.rows(_OWNERS, uuids=list(some)):
            recorded[row.uuid] = row
    found = {}
    # Some collations find other spellings too.
    for uuid in held.keys() & set(uuids):
        row = recorded.get(uuid)
        found[uuid] = StoredHolder(
            allocations=held[uuid],
            project_id=None if row is None else row.project,
            user_id=None if row is None else row.user,
            consumer_type=None if row is None else row.type,
            generation=0 if row is None else int(row.generation),
        )
    return found


def place(transaction: WriteTransaction, claims: Sequence[ConsumerClaim]) -> None:
    """Let new consumers hold what was found for them, all or nothing.

    Raises:
        PlacedMeanwhileError: if one of them holds something by now.
        PlacementRefusedError: for the first whose provider is gone, or refuses.
    """
    _require_new(transaction, [claim.consumer_uuid for claim in claims])
    wanted = owners.named_by(claims)
    owners.require(transaction, wanted, ())
    _record(transaction, claims)
    rows = _locked(transaction, {uuid for claim in claims for uuid in claim.allocations})
    new = list(_records(claims, rows))
    _require_room(transaction, new)
    transaction.execute_each(
        _INSERT,
        (
            {
                "resource_provider_id": record.provider_id,
                "resource_class_id": record.class_id,
                "consumer_id": record.consumer,
                "used": record.used,
                "created_at": transaction.now,
            }
            for record in _numbered(transaction, new)
        ),
    )
    _bump(transaction, rows.values())


def _require_new(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """See to it that consumers hold nothing; rows that were left behind without anything go.

    Nobody else can give them anything once their rows are inserted: that breaks the uniqueness of
    one of the two, and it runs again.
    """
    wanted = set(uuids)
    recorded = [row.uuid for row in _each(transaction, _RECORDED, uuids) if row.uuid in wanted]
    known = lock(transaction, recorded)
    holding = {row.consumer_id for row in _each(transaction, _HOLDING, uuids)} & wanted
    if holding:
        raise PlacedMeanwhileError
    delete(transaction, known)


def _each(
    transaction: ReadTransaction, statement: sa.Select[tuple[str]], uuids: Sequence[str]
) -> Iterator[sa.Row[tuple[str]]]:
    for some in chunks(uuids):
        yield from transaction.rows(statement, uuids=list(some))


def _record(transaction: WriteTransaction, claims: Sequence[ConsumerClaim]) -> None:
    ids = OwnerIds(transaction)
    transaction.execute_each(
        _INSERT_CONSUMERS,
        (
            {
                "uuid": claim.consumer_uuid,
                "project_id": ids.of(projects, claim.project_id),
                "user_id": ids.of(users, claim.user_id),
                "consumer_type_id": ids.type_of(claim, None),
                "generation": 1,
                "created_at": transaction.now,
            }
            for claim in sorted(claims, key=lambda claim: claim.consumer_uuid)
        ),
    )


def _locked(transaction: WriteTransaction, uuids: Collection[str]) -> dict[str, LockedProvider]:
    """Lock providers in order of their ids, which takes one statement."""
    some = sorted(uuids)
    # Statements are kept by the length of their lists: let there be few of these.
    length = 1 << max(len(some) - 1, 0).bit_length()
    padded = some + some[-1:] * (length - len(some))
    rows = lock_providers(transaction, padded)
    return {row.uuid: row for row in rows if row.uuid in uuids}


@dataclass(frozen=True, slots=True)
class _Record:
    """One allocation to write; the class's id is 0 as long as it is not known."""

    consumer: str
    provider_id: int
    resource_class: str
    used: int
    class_id: int = 0


def _records(
    claims: Sequence[ConsumerClaim], rows: Mapping[str, LockedProvider]
) -> Iterator[_Record]:
    for claim in claims:
        for uuid, resources in claim.allocations.items():
            if uuid not in rows:
                raise PlacementRefusedError(claim.consumer_uuid)
            for name, amount in resources.items():
                yield _Record(claim.consumer_uuid, rows[uuid].id, name, amount)


def _numbered(transaction: ReadTransaction, new: Sequence[_Record]) -> Iterator[_Record]:
    """Put in the ids of classes; each has inventories that are locked, so none goes or is renamed."""
    ids = _class_ids(transaction, new)
    for record in new:
        yield _Record(
            record.consumer,
            record.provider_id,
            record.resource_class,
            record.used,
            ids[record.resource_class],
        )


def _class_ids(transaction: ReadTransaction, new: Sequence[_Record]) -> dict[str, int]:
    names = {record.resource_class for record in new}
    rows = transaction.rows(_CLASSES, names=sorted(names))
    return {row.name: int(row.id) for row in rows if row.name in names}


def _require_room(transaction: ReadTransaction, new: Sequence[_Record]) -> None:
    """Judge inventories, units and capacity, consumer by consumer.

    Raises:
        PlacementRefusedError: for the first consumer that is refused.
        RetryTransactionError: if a class was renamed meanwhile.
    """
    ids = _class_ids(transaction, new)
    stock: dict[tuple[int, str], Inventory] = {}
    used: Counter[tuple[int, str]] = Counter()
    provider_ids = sorted({record.provider_id for record in new})
    for some in chunks(provider_ids):
        for row in transaction.rows(
            _STOCK, provider_ids=list(some), class_ids=sorted(ids.values())
        ):
            provider_id, class_id, name, sum_of_used, *inventory = row
            if ids.get(name) != class_id:
                raise RetryTransactionError
            stock[provider_id, name] = Inventory(*inventory)
            used[provider_id, name] = int(sum_of_used)
    for record in new:
        key = record.provider_id, record.resource_class
        inventory = stock.get(key)
        if inventory is None or not inventory.admits(record.used):
            raise PlacementRefusedError(record.consumer)
        used[key] += record.used
        if used[key] > inventory.capacity:
            raise PlacementRefusedError(record.consumer)


def _bump(transaction: WriteTransaction, rows: Collection[LockedProvider]) -> None:
    """Raise the generation of each provider by one; those with the same one together.

    The update is conditional, as `provider_rows.raise_generation` says.
    """
    by_generation: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows:
        by_generation[row.generation].append(row.id)
    for known, ids in sorted(by_generation.items()):
        for some in chunks(sorted(ids)):
            result = transaction.execute(
                _BUMP, provider_ids=list(some), known=known, next=known + 1, at=transaction.now
            )
            if result.rowcount != len(some):
                raise RetryTransactionError
    transaction.touch_providers([row.id for row in rows], Part.ALLOCATIONS)
