# SPDX-License-Identifier: Apache-2.0
"""Rows of consumers, with owners and generations (contract page 70, section 1.1)."""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from treeclaim.model.claim import ConsumerClaim, Omission
from treeclaim.model.errors import ConsumerGenerationConflictError
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.systems import get_system
from treeclaim.store.database.transactions import (
    PrerequisiteError,
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
)
from treeclaim.store.operations.allocations.lookup import (
    NAME_COLUMNS,
    CurrentAllocations,
    OwnerName,
)
from treeclaim.store.schema.tables import consumers

_COLUMNS = "consumers.id, consumers.uuid, consumers.generation, consumers.consumer_type_id"
_ORDER = "EXISTS (SELECT 1 FROM treeclaim_holds WHERE treeclaim_holds.uuid = consumers.uuid), id"
"""Holds come last, because a write locks them after it has read the draws of its consumers."""
_LOCK = f"SELECT {_COLUMNS} FROM consumers WHERE uuid IN :uuids ORDER BY {_ORDER} FOR UPDATE"
_LOCK_IN_ORDER = f"""
SELECT STRAIGHT_JOIN {_COLUMNS} FROM (
    SELECT uuid FROM consumers WHERE uuid IN :uuids ORDER BY {_ORDER} LIMIT {2**31 - 1}
) named JOIN consumers FORCE INDEX (uniq_consumers0uuid) ON consumers.uuid = named.uuid FOR UPDATE
"""
"""`_LOCK` for MariaDB, which locks rows when it reads them, before it sorts. The subquery therefore reads and
sorts UUIDs without locks. Without the limit MariaDB ignores the order; without the hint it scans, and locks, all
of a small table."""
_INSERT = compile_insert(consumers)
_UPDATE = """
UPDATE consumers SET project_id = :project, user_id = :user, consumer_type_id = :type,
    generation = :next, updated_at = :at
WHERE id IN :ids AND generation = :known
"""
_RAISE_GENERATION = """
UPDATE consumers SET generation = :next, updated_at = :at
WHERE id = :consumer_id AND generation = :known
"""
_DELETE = "DELETE FROM consumers WHERE uuid IN :uuids"
_COUNT_WITH_ALLOCATIONS = """
SELECT COUNT(DISTINCT consumer_id) FROM allocations WHERE consumer_id IN :uuids
"""
_FIND = {
    table: f"SELECT id FROM {table} WHERE {name} = :wanted" for table, name in NAME_COLUMNS.items()
}
_INSERT_OWNER = {
    table: f"INSERT INTO {table} ({name}, created_at) VALUES (:new_name, :at)"
    for table, name in NAME_COLUMNS.items()
}


@dataclass(frozen=True, slots=True)
class Consumer:
    """A locked row of a consumer."""

    id: int
    generation: int
    type_id: int | None


def lock(transaction: WriteTransaction, uuids: Sequence[str]) -> Mapping[str, Consumer]:
    """Lock the rows of existing consumers, in ascending order of ids and holds last, as all writes do."""
    if not uuids:
        return {}
    is_ordered = len(uuids) == 1 or get_system(transaction.connection).locks_in_order
    statement = _LOCK if is_ordered else _LOCK_IN_ORDER
    return {
        row.uuid: Consumer(row.id, row.generation, row.consumer_type_id)
        for row in transaction.rows(statement, uuids=list(uuids))
    }


class OwnerIds:
    """Ids of projects, users and consumer types by name.

    A short transaction commits a new name before the claim (contract page 70, section 1.1), also if the claim is
    then refused. If the claim inserted the unique name itself, all other claims of the project would wait for it.
    """

    def __init__(
        self,
        transaction: WriteTransaction,
        known_ids: Mapping[OwnerName, int] = MappingProxyType({}),
    ) -> None:
        self._transaction = transaction
        self._known_ids = dict(known_ids)

    def require(self, names: Iterable[OwnerName]) -> None:
        """Raise a `PrerequisiteError` that creates missing names, before any row is locked."""
        missing_names = []
        for key in names:
            if key not in self._known_ids:
                # Some collations also match other spellings.
                owner_id = _find_owner(self._transaction, *key)
                if owner_id is None:
                    missing_names.append(key)
                else:
                    self._known_ids[key] = owner_id
        if missing_names:
            raise PrerequisiteError(
                lambda later_transaction: _insert_owners(later_transaction, missing_names)
            )

    def require_id(self, table: str, name: str) -> int:
        """Return the id of a name; raise as `require`."""
        self.require([(table, name)])
        return self._known_ids[table, name]

    def require_type(self, claim: ConsumerClaim, current_type: int | None) -> int | None:
        """Return the id of the consumer type of a claim, or the `current_type` for a claim without a type."""
        if isinstance(claim.consumer_type, Omission):
            return current_type
        return self.require_id("consumer_types", claim.consumer_type)


def _find_owner(transaction: ReadTransaction, table: str, name: str) -> int | None:
    row_id = transaction.scalar(_FIND[table], wanted=name)
    return None if row_id is None else int(row_id)


def _insert_owners(transaction: WriteTransaction, missing_names: Sequence[OwnerName]) -> None:
    # If a concurrent transaction inserts a name, this one is retried, and finds it.
    for table, name in sorted(missing_names):
        if _find_owner(transaction, table, name) is None:
            transaction.execute(_INSERT_OWNER[table], new_name=name, at=transaction.now)


def require_generations(
    claims: Sequence[ConsumerClaim],
    locked_consumers: Mapping[str, Consumer],
    current_allocations: CurrentAllocations,
    holds: Container[str],
) -> None:
    """Compare the generations of consumers with those of the claims.

    A row without allocations, which old deployments leave behind, counts as no consumer (page 70, section 3.3,
    note). A fully drawn hold is a consumer, but a claim for a new consumer may replace it (page 100, section 1).

    Raises:
        ConsumerGenerationConflictError: for the first difference.
    """
    for claim in claims:
        consumer = locked_consumers.get(claim.consumer_uuid)
        has_allocations = claim.consumer_uuid in current_allocations.by_consumer
        if consumer is None or not (has_allocations or claim.consumer_uuid in holds):
            actual_generation = None
        else:
            actual_generation = consumer.generation
        if isinstance(claim.generation, Omission) or claim.generation == actual_generation:
            continue
        if claim.generation is None and not has_allocations:
            continue
        raise ConsumerGenerationConflictError(
            claim.consumer_uuid, expected=actual_generation, given=claim.generation
        )


def insert(
    transaction: WriteTransaction,
    claims: Sequence[ConsumerClaim],
    ids: OwnerIds,
    generation: int = 1,
) -> None:
    """Insert rows for the consumers of claims, which locks them."""
    transaction.change_each(
        _INSERT,
        (
            {
                "uuid": claim.consumer_uuid,
                "project_id": ids.require_id("projects", claim.project_id),
                "user_id": ids.require_id("users", claim.user_id),
                "consumer_type_id": ids.require_type(claim, None),
                "generation": generation,
                "created_at": transaction.now,
            }
            for claim in sorted(claims, key=lambda claim: claim.consumer_uuid)
        ),
    )


def lock_missing(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """Lock consumers without a row, so that no other transaction inserts one.

    A row that a transaction inserts and deletes is never visible, but reserves its unique UUID until the commit.
    If another transaction has inserted a row, this one violates the unique constraint and is retried.
    """
    if not uuids:
        return
    no_owner = {"project_id": 0, "user_id": 0, "generation": 0, "created_at": transaction.now}
    transaction.change_each(_INSERT, ({"uuid": uuid, **no_owner} for uuid in sorted(uuids)))
    transaction.change(_DELETE, uuids=sorted(uuids))


def update(
    transaction: WriteTransaction,
    claims: Sequence[ConsumerClaim],
    locked_consumers: Mapping[str, Consumer],
    current_allocations: CurrentAllocations,
    ids: OwnerIds,
    *,
    holds: Container[str],
) -> None:
    """Write the owners and next generations of locked consumers; holds keep their type."""
    rows: dict[tuple[int, int, int, int | None, int], list[int]] = defaultdict(list)
    for claim in claims:
        consumer = locked_consumers[claim.consumer_uuid]
        is_hold = claim.consumer_uuid in holds
        is_stale = claim.consumer_uuid not in current_allocations.by_consumer and not is_hold
        current_type = None if is_stale else consumer.type_id
        key = (
            consumer.generation,
            ids.require_id("projects", claim.project_id),
            ids.require_id("users", claim.user_id),
            current_type if is_hold else ids.require_type(claim, current_type),
            1 if is_stale else consumer.generation + 1,
        )
        rows[key].append(consumer.id)
    for (generation, project, user, type_id, next_generation), consumer_ids in rows.items():
        transaction.change(
            _UPDATE,
            rows=len(consumer_ids),
            ids=sorted(consumer_ids),
            known=generation,
            project=project,
            user=user,
            type=type_id,
            next=next_generation,
            at=transaction.now,
        )


def raise_generation(transaction: WriteTransaction, consumer: Consumer, steps: int) -> None:
    """Raise the generation of a locked consumer."""
    transaction.change(
        _RAISE_GENERATION,
        rows=1,
        consumer_id=consumer.id,
        known=consumer.generation,
        next=consumer.generation + steps,
        at=transaction.now,
    )


def delete(transaction: WriteTransaction, uuids: Collection[str]) -> None:
    """Delete the rows of consumers, if they exist."""
    if uuids:
        transaction.change(_DELETE, uuids=sorted(uuids))


def insert_incomplete(
    transaction: WriteTransaction, uuids: Sequence[str], project_id: str, user_id: str
) -> None:
    """Insert rows for consumers with allocations, with generation 0 and these owners."""
    claims = [ConsumerClaim(uuid, {}, project_id, user_id) for uuid in uuids]
    insert(transaction, claims, OwnerIds(transaction), generation=0)
    existing_count = sum(
        transaction.scalar(_COUNT_WITH_ALLOCATIONS, uuids=chunk) for chunk in chunks(uuids)
    )
    if existing_count != len(uuids):
        # Another transaction has removed allocations before the insertion.
        raise RetryTransactionError
