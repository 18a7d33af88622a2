# SPDX-License-Identifier: Apache-2.0
"""Rows of consumers: their owners and generations (contract page 70, section 1.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim, ConsumerType, Generation
from treeclaim.model.errors import ConsumerGenerationConflictError
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.allocations import owners
from treeclaim.store.schema.tables import allocations, consumer_types, consumers, projects, users

_LOCK = (
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
_INSERT = CompiledStatement(sa.insert(consumers).inline())
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
_COUNT_WITH_ALLOCATIONS = sa.select(sa.func.count(sa.distinct(allocations.c.consumer_id))).where(
    allocations.c.consumer_id.in_(sa.bindparam("uuids", expanding=True))
)


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer whose row this transaction has locked.

    Attributes:
        id: Its row.
        generation: As it is now.
        type_id: Id of its type, None if it has none.
    """

    id: int
    generation: int
    type_id: int | None


def lock(transaction: WriteTransaction, uuids: Sequence[str]) -> Mapping[str, Consumer]:
    """Lock the rows of those consumers that exist, in ascending order of ids, as all writes do."""
    if not uuids:
        return {}
    return {
        row.uuid: Consumer(row.id, row.generation, row.consumer_type_id)
        for row in transaction.rows(_LOCK, uuids=list(uuids))
    }


def delete_without_allocations(
    transaction: WriteTransaction, known: Mapping[str, Consumer], with_allocations: Collection[str]
) -> Mapping[str, Consumer]:
    """Delete the rows of locked consumers that have no allocations; return the others.

    Existing deployments leave such rows; they count as no consumer (page 70, section 3.3, note).
    """
    stale = sorted(known.keys() - with_allocations)
    if stale:
        transaction.execute(_DELETE, uuids=stale)
    return {uuid: consumer for uuid, consumer in known.items() if uuid in with_allocations}


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


def write(
    transaction: WriteTransaction,
    claims: Sequence[ConsumerClaim],
    known: Mapping[str, Consumer],
    ids: "OwnerIds",
) -> None:
    """Insert, update or delete the rows of the consumers of claims.

    Afterwards this transaction has locked all of them, those without a row too.

    Raises:
        RetryTransactionError: if the generation of one has changed since its row was locked.
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
    if deleted := sorted(known.keys() & emptied):
        transaction.execute(_DELETE, uuids=deleted)
    lock_missing(transaction, sorted(emptied - known.keys()))


def lock_missing(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """Lock consumers that have no row, so that nobody else inserts one until this one ends.

    A row that one transaction inserts and deletes is never visible, but reserves its unique uuid
    until the commit. If another transaction has inserted it, this one breaks the unique constraint
    and runs again.
    """
    if not uuids:
        return
    no_owner = {"project_id": 0, "user_id": 0, "generation": 0, "created_at": transaction.now}
    transaction.execute_each(_INSERT, ({"uuid": uuid, **no_owner} for uuid in uuids))
    transaction.execute(_DELETE, uuids=uuids)


def delete(transaction: WriteTransaction, uuid: str) -> None:
    """Delete a consumer's row, if it has one."""
    transaction.execute(_DELETE, uuids=[uuid])


class OwnerIds:
    """Ids of projects, users and consumer types by name; unknown ones are created first."""

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
            PrerequisiteError: if it does not exist; it is created then, and the write begins anew.
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
        """Return the id of a claim's consumer type, the present one if the claim names none."""
        if isinstance(claim.consumer_type, ConsumerType):
            return present
        return self.of(consumer_types, claim.consumer_type)


def _insert(transaction: WriteTransaction, claim: ConsumerClaim, ids: OwnerIds) -> None:
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
    transaction: WriteTransaction, claim: ConsumerClaim, consumer: Consumer, ids: OwnerIds
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


def insert_incomplete(
    transaction: WriteTransaction, uuids: Sequence[str], project_id: str, user_id: str
) -> None:
    """Insert rows for consumers that have allocations, with generation 0 and the given owners.

    Raises:
        RetryTransactionError: if the allocations of one were removed before its row was inserted.
    """
    if not uuids:
        return
    ids = OwnerIds(transaction)
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
    found = sum(
        transaction.scalar(_COUNT_WITH_ALLOCATIONS, uuids=chunk) for chunk in chunks(uuids)
    )
    if found != len(uuids):
        raise RetryTransactionError


def count_without_row(transaction: ReadTransaction) -> int:
    """Count the consumers that have allocations but no row."""
    missing = (
        sa.select(sa.func.count(sa.distinct(allocations.c.consumer_id)))
        .select_from(
            allocations.outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
        )
        .where(consumers.c.id.is_(None))
    )
    return int(transaction.scalar(missing) or 0)
