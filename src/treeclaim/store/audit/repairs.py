# SPDX-License-Identifier: Apache-2.0
"""Repairs of findings with a unique solution (contract page 99, section 5).

Each repair is one transaction. It acquires the locks that other writers of these rows acquire, checks that the
finding still exists, and writes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from treeclaim.model.errors import ConcurrentChangeError
from treeclaim.model.extension.audit import FindingKind, RepairOutcome, RepairResult
from treeclaim.model.timing import WAIT, Stages
from treeclaim.store.audit.findings import PROVIDER_TABLES
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.allocations import claims, consumers, holds
from treeclaim.store.operations.allocations.lookup import load_current_allocations
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.locks.provider_rows import lock_providers
from treeclaim.store.operations.providers.tree_writer import set_root
from treeclaim.store.reading.holds import load_hold_terms
from treeclaim.store.store import Store

_DONE_OUTCOME = RepairOutcome(RepairResult.DONE)
_GONE_OUTCOME = RepairOutcome(RepairResult.GONE)

_PROVIDER = "SELECT id, uuid, parent_provider_id, root_provider_id FROM resource_providers"
_BY_ID = f"{_PROVIDER} WHERE id = :provider_id"
_DELETE_ROWS = """
DELETE FROM {table} WHERE resource_provider_id = :provider_id
AND NOT EXISTS (SELECT 1 FROM resource_providers WHERE id = :provider_id)
"""
_BY_UUID = f"{_PROVIDER} WHERE uuid = :uuid"
_ALLOCATION = "SELECT id FROM allocations WHERE consumer_id = :uuid LIMIT 1"
_RECORD = "SELECT uuid FROM consumers WHERE uuid = :uuid"
_TERMS = "SELECT uuid FROM treeclaim_holds WHERE uuid = :uuid"
_DRAWN_FROM = "SELECT hold_uuid FROM treeclaim_draws WHERE hold_uuid = :uuid LIMIT 1"
_LOCK_AGGREGATE = "SELECT id, uuid FROM placement_aggregates WHERE uuid = :uuid FOR UPDATE"
_MEMBER = "SELECT aggregate_id FROM resource_provider_aggregates WHERE aggregate_id = :aggregate_id LIMIT 1"
_DELETE_AGGREGATE = "DELETE FROM placement_aggregates WHERE id = :aggregate_id"


class _DryRunError(Exception):
    """Rolls back a dry run, and carries its outcome."""

    def __init__(self, outcome: RepairOutcome) -> None:
        super().__init__()
        self.outcome = outcome


def repair(
    store: Store,
    kind: FindingKind,
    item: Mapping[str, Any],
    owner: tuple[str, str],
    *,
    until: float,
    dry_run: bool = False,
) -> RepairOutcome:
    """Repair a finding of a `REPAIRABLE` kind in one transaction; `item` is the finding, as in the audit's response.

    Created records get the project and user of `owner`. No statement begins after `until`, of the monotonic clock.
    A `dry_run` is rolled back.

    Raises:
        StoreUnavailableError: as `Store.write`.
    """

    def operation(transaction: WriteTransaction) -> RepairOutcome:
        if kind is FindingKind.WITHOUT_CONSUMER:
            outcome = _record_consumer(transaction, item["consumer"], owner)
        else:
            outcome = _REPAIRS[kind](transaction, item)
        if dry_run:
            raise _DryRunError(outcome)
        return outcome

    try:
        return store.write_until(until, Stages(WAIT), operation)
    except _DryRunError as dry_run_error:
        return dry_run_error.outcome
    except ConcurrentChangeError:
        # Not raised: the response must also report the earlier repairs of the same call.
        return RepairOutcome(
            RepairResult.REFUSED, "Concurrent writes prevented the repair. Try again."
        )


def _delete_rows(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    provider_id = int(item["provider_id"])
    if transaction.row(_BY_ID, provider_id=provider_id) is not None:
        return _GONE_OUTCOME
    delete = _DELETE_ROWS.format(table=PROVIDER_TABLES[item["table"]].name)
    if not transaction.execute(delete, provider_id=provider_id).rowcount:
        return _GONE_OUTCOME
    transaction.touch_providers([provider_id])
    return _DONE_OUTCOME


def _record_consumer(
    transaction: WriteTransaction, uuid: str, owner: tuple[str, str]
) -> RepairOutcome:
    has_record = transaction.row(_RECORD, uuid=uuid) is not None
    if has_record or transaction.row(_ALLOCATION, uuid=uuid) is None:
        return _GONE_OUTCOME
    consumers.insert_incomplete(transaction, [uuid], *owner)
    return _DONE_OUTCOME


def _delete_empty(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    uuid = item["consumer"]
    locked_consumers = consumers.lock(transaction, [uuid])
    if uuid not in locked_consumers or transaction.row(_ALLOCATION, uuid=uuid) is not None:
        return _GONE_OUTCOME
    if (
        load_hold_terms(transaction, [uuid])
        and transaction.row(_DRAWN_FROM, uuid=uuid) is not None
    ):
        return _GONE_OUTCOME
    consumers.delete(transaction, [uuid])
    return _DONE_OUTCOME


def _set_root(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    row = transaction.row(_BY_UUID, uuid=item["provider"])
    if row is None or row.uuid != item["provider"]:
        return _GONE_OUTCOME
    path = _load_path(transaction, row.id)
    roots = {root for _, root in path.values() if root is not None}
    # A write that changes the shape of a tree locks its root and the moved provider.
    lock_providers(transaction, (), path.keys() | roots)
    if _load_path(transaction, row.id) != path:
        raise RetryTransactionError
    top, (parent, _) = list(path.items())[-1]
    if parent is not None:
        return RepairOutcome(RepairResult.REFUSED, "Its parents end nowhere: see broken_parent.")
    if path[row.id][1] == top:
        return _GONE_OUTCOME
    former_root = transaction.row(_BY_ID, provider_id=path[row.id][1])
    set_root(transaction, [row.id], top)
    transaction.touch_providers([row.id], tree=None if former_root is None else former_root.uuid)
    return _DONE_OUTCOME


def _load_path(
    transaction: ReadTransaction, provider_id: int
) -> dict[int, tuple[int | None, int | None]]:
    """Return the parent and root of a provider and of its existing ancestors, by id, from the provider upwards."""
    links_by_id: dict[int, tuple[int | None, int | None]] = {}
    next_id: int | None = provider_id
    while next_id is not None and next_id not in links_by_id:
        row = transaction.row(_BY_ID, provider_id=next_id)
        if row is None:
            break
        links_by_id[next_id] = (row.parent_provider_id, row.root_provider_id)
        next_id = row.parent_provider_id
    return links_by_id


def _delete_aggregate(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    row = transaction.row(_LOCK_AGGREGATE, uuid=item["uuid"])
    if row is None or row.uuid != item["uuid"]:
        return _GONE_OUTCOME
    if transaction.row(_MEMBER, aggregate_id=row.id) is not None:
        return _GONE_OUTCOME
    transaction.execute(_DELETE_AGGREGATE, aggregate_id=row.id)
    return _DONE_OUTCOME


def _release_orphan(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    uuid = item["consumer"]
    locked_consumer = consumers.lock(transaction, [uuid]).get(uuid)
    if locked_consumer is None or not load_current_allocations(transaction, [uuid]).by_consumer:
        return _GONE_OUTCOME
    if locked_consumer.generation != item["consumer_generation"]:
        return RepairOutcome(
            RepairResult.REFUSED,
            f"It has changed: its generation is {locked_consumer.generation}, not "
            f"{item['consumer_generation']}.",
        )
    claims.write_request(transaction, ClaimRequest.release(uuid))
    return _DONE_OUTCOME


def _end_hold(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    uuid = item["consumer"]
    if transaction.row(_TERMS, uuid=uuid) is None:
        return _GONE_OUTCOME
    holds.end_expired(transaction, [uuid])
    return _GONE_OUTCOME if transaction.row(_TERMS, uuid=uuid) is not None else _DONE_OUTCOME


def _delete_terms(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    uuid = item["consumer"]
    locked_consumers = consumers.lock(transaction, [uuid])
    if uuid not in locked_consumers:
        consumers.lock_missing(transaction, [uuid])
    recorded_rows = [transaction.row(statement, uuid=uuid) for statement in (_TERMS, _DRAWN_FROM)]
    if recorded_rows == [None, None] or load_hold_terms(transaction, [uuid]):
        return _GONE_OUTCOME
    holds.delete_terms(transaction, [uuid])
    return _DONE_OUTCOME


def _delete_draws(transaction: WriteTransaction, item: Mapping[str, Any]) -> RepairOutcome:
    return (
        _DONE_OUTCOME
        if holds.delete_excess_draws(transaction, item["consumer"])
        else _GONE_OUTCOME
    )


_REPAIRS: Mapping[FindingKind, Callable[[WriteTransaction, Mapping[str, Any]], RepairOutcome]] = {
    FindingKind.WITHOUT_PROVIDER: _delete_rows,
    FindingKind.EMPTY_CONSUMER: _delete_empty,
    FindingKind.BROKEN_ROOT: _set_root,
    FindingKind.UNUSED_AGGREGATE: _delete_aggregate,
    FindingKind.EXPIRED_HOLD: _end_hold,
    FindingKind.BROKEN_HOLD: _delete_terms,
    FindingKind.BROKEN_DRAW: _delete_draws,
    FindingKind.ORPHANED: _release_orphan,
}
