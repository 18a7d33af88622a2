# SPDX-License-Identifier: Apache-2.0
"""Consumers: who owns claims, and the generation that protects them (page 70, section 1.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim, ConsumerType, Generation
from treeclaim.model.errors import ConsumerGenerationConflictError
from treeclaim.store.database.ready import Ready
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations import owners
from treeclaim.store.schema.tables import allocations, consumer_types, consumers, projects, users

_LOCKED = (
    sa.select(
        consumers.c.id,
        consumers.c.uuid,
        consumers.c.generation,
        consumers.c.consumer_type_id,
    )
    .where(consumers.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
    .order_by(consumers.c.id)
    .with_for_update()
)
_INSERT = Ready(sa.insert(consumers).inline())
_UPDATE = (
    sa.update(consumers)
    .where(
        consumers.c.id == sa.bindparam("consumer_id"),
        consumers.c.generation == sa.bindparam("known"),
    )
    .values(
        project_id=sa.bindparam("project"),
        user_id=sa.bindparam("user"),
        consumer_type_id=sa.bindparam("type"),
        generation=sa.bindparam("next"),
        updated_at=sa.bindparam("at"),
    )
)
_DELETE = sa.delete(consumers).where(consumers.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
_HOLDING = sa.select(sa.func.count(sa.distinct(allocations.c.consumer_id))).where(
    allocations.c.consumer_id.in_(sa.bindparam("uuids", expanding=True))
)


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer that this transaction holds locked.

    Attributes:
        id: Its row.
        generation: As it is now.
        type_id: Its type, None if it never got one.
    """

    id: int
    generation: int
    type_id: int | None


def locked(transaction: WriteTransaction, uuids: Sequence[str]) -> Mapping[str, Consumer]:
    """Lock those of some consumers that exist, in the one order that all writers use."""
    if not uuids:
        return {}
    return {
        row.uuid: Consumer(row.id, row.generation, row.consumer_type_id)
        for row in transaction.rows(_LOCKED, uuids=list(uuids))
    }


def without_left_behind(
    transaction: WriteTransaction, known: Mapping[str, Consumer], holding: Collection[str]
) -> Mapping[str, Consumer]:
    """Delete the rows of those locked consumers that hold nothing; return the others.

    A consumer's row that was left behind without allocations (existing deployments do that)
    counts as no consumer; see the note of page 70, section 3.3.
    """
    left_behind = sorted(known.keys() - holding)
    if left_behind:
        transaction.execute(_DELETE, uuids=left_behind)
    return {uuid: one for uuid, one in known.items() if uuid in holding}


def require_generations(claims: Sequence[ConsumerClaim], known: Mapping[str, Consumer]) -> None:
    """Compare consumer generations with those the client knows, in the order of the claims.

    Raises:
        ConsumerGenerationConflictError: for the first that differs.
    """
    for claim in claims:
        consumer = known.get(claim.consumer_uuid)
        actual = None if consumer is None else consumer.generation
        if isinstance(claim.generation, Generation) or claim.generation == actual:
            continue
        raise ConsumerGenerationConflictError(
            claim.consumer_uuid, expected=actual, given=claim.generation
        )


def record(
    transaction: WriteTransaction,
    claims: Sequence[ConsumerClaim],
    known: Mapping[str, Consumer],
    ids: "Owners",
) -> None:
    """Write the consumers of some claims: new ones, next generations, and those that go.

    Afterwards this transaction holds all of them, those without a record too.
    """
    for claim in sorted(claims, key=lambda claim: claim.consumer_uuid):
        consumer = known.get(claim.consumer_uuid)
        if not claim.allocations:
            continue
        if consumer is None:
            _insert(transaction, claim, ids)
        else:
            _update(transaction, claim, consumer, ids)
    emptied = {claim.consumer_uuid for claim in claims if not claim.allocations}
    if gone := sorted(known.keys() & emptied):
        transaction.execute(_DELETE, uuids=gone)
    hold_unrecorded(transaction, sorted(emptied - known.keys()))


def hold_unrecorded(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """Lock consumers that have no record: nobody else can insert one before this one ends.

    A row that was inserted and deleted again in one transaction is never seen, but it holds its
    unique name until the commit. If another transaction has inserted it, its uniqueness breaks,
    and this transaction runs again.
    """
    if not uuids:
        return
    nobody = {"project_id": 0, "user_id": 0, "generation": 0, "created_at": transaction.now}
    transaction.execute_each(_INSERT, ({"uuid": uuid, **nobody} for uuid in uuids))
    transaction.execute(_DELETE, uuids=uuids)


def delete(transaction: WriteTransaction, uuid: str) -> None:
    """Delete a consumer's row, if it has one."""
    transaction.execute(_DELETE, uuids=[uuid])


class Owners:
    """Ids of projects, users and consumer types by name; unknown ones are made first."""

    def __init__(
        self,
        transaction: WriteTransaction,
        known: Mapping[tuple[sa.Table, str], int] = MappingProxyType({}),
    ) -> None:
        self._transaction = transaction
        self._known: dict[tuple[sa.Table, str], int] = dict(known)

    def of(self, table: sa.Table, name: str) -> int:
        """Return the id of a name.

        Raises:
            PrepareFirstError: if it is new; it is made then, and the write begins anew.
        """
        key = (table, name)
        if key not in self._known:
            owners.require(self._transaction, [key], ())
            found = owners.find(self._transaction, table, name)
            if found is None:
                raise RetryTransactionError
            self._known[key] = found
        return self._known[key]

    def type_of(self, claim: ConsumerClaim, present: int | None) -> int | None:
        """Return the id of a claim's consumer type; what it has now where the claim says none."""
        if isinstance(claim.consumer_type, ConsumerType):
            return present
        return self.of(consumer_types, claim.consumer_type)


def _insert(transaction: WriteTransaction, claim: ConsumerClaim, ids: Owners) -> None:
    transaction.execute(
        _INSERT,
        uuid=claim.consumer_uuid,
        project_id=ids.of(projects, claim.project_id),
        user_id=ids.of(users, claim.user_id),
        consumer_type_id=ids.type_of(claim, None),
        generation=1,
        created_at=transaction.now,
    )


def _update(
    transaction: WriteTransaction, claim: ConsumerClaim, consumer: Consumer, ids: Owners
) -> None:
    result = transaction.execute(
        _UPDATE,
        consumer_id=consumer.id,
        known=consumer.generation,
        next=consumer.generation + 1,
        project=ids.of(projects, claim.project_id),
        user=ids.of(users, claim.user_id),
        type=ids.type_of(claim, consumer.type_id),
        at=transaction.now,
    )
    if result.rowcount != 1:
        raise RetryTransactionError


def record_incomplete(
    transaction: WriteTransaction, uuids: Sequence[str], project_id: str, user_id: str
) -> None:
    """Insert consumers that hold allocations already, with generation 0 and the owners given.

    Raises:
        RetryTransactionError: if one was emptied before its row was inserted, and locked by that.
    """
    if not uuids:
        return
    ids = Owners(transaction)
    project, user = ids.of(projects, project_id), ids.of(users, user_id)
    transaction.execute_each(
        _INSERT,
        (
            {
                "uuid": uuid,
                "project_id": project,
                "user_id": user,
                "generation": 0,
                "created_at": transaction.now,
            }
            for uuid in uuids
        ),
    )
    if sum(transaction.scalar(_HOLDING, uuids=some) for some in chunks(uuids)) != len(uuids):
        raise RetryTransactionError


def rows_without_owner(transaction: ReadTransaction) -> int:
    """Count the consumers that hold allocations but have no row."""
    missing = (
        sa.select(sa.func.count(sa.distinct(allocations.c.consumer_id)))
        .select_from(
            allocations.outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
        )
        .where(consumers.c.id.is_(None))
    )
    return int(transaction.scalar(missing) or 0)
