# SPDX-License-Identifier: Apache-2.0
"""Locks the holds that claims concern, and writes their changes (contract page 100).

The lock of a hold is the lock of its row as a consumer, acquired after the locks of the named consumers. It
covers the amounts of the hold, the draws from it, and its terms.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from treeclaim.model.changes import UsageChange
from treeclaim.model.claim import HoldTerms
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.systems import read_clock
from treeclaim.store.database.transactions import (
    Key,
    PrerequisiteError,
    WriteTransaction,
    chunks,
    to_timestamp,
)
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.operations.allocations.consumers import Consumer
from treeclaim.store.operations.allocations.hold_book import ConsumerChange, Draws, Hold, HoldBook
from treeclaim.store.operations.allocations.ledger import insert_allocations
from treeclaim.store.operations.allocations.lookup import (
    CurrentAllocations,
    load_current_allocations,
)
from treeclaim.store.operations.locks.consumed import (
    list_consumed_providers,
    load_consumption,
    record_consumed,
)
from treeclaim.store.reading.holds import load_hold_terms
from treeclaim.store.schema.tables import draws, hold_projects, holds

_DRAWS = "SELECT * FROM treeclaim_draws WHERE consumer_uuid IN :uuids ORDER BY hold_uuid"
_DRAWN_BY_OTHERS = """
SELECT uuid FROM treeclaim_holds WHERE uuid IN :uuids AND EXISTS (
    SELECT 1 FROM treeclaim_draws WHERE hold_uuid = uuid AND NOT (consumer_uuid IN :consumers)
)
"""
_DELETE_AT = """
DELETE FROM allocations WHERE consumer_id = :uuid AND resource_provider_id IN :provider_ids
"""
_DELETE_TERMS = "DELETE FROM treeclaim_holds WHERE uuid IN :uuids"
_DELETE_PROJECTS = "DELETE FROM treeclaim_hold_projects WHERE hold_uuid IN :uuids"
_DELETE_DRAWS_FROM = "DELETE FROM treeclaim_draws WHERE hold_uuid IN :uuids"
_DELETE_DRAWS_BY = "DELETE FROM treeclaim_draws WHERE consumer_uuid IN :uuids"
_INSERT_TERMS = compile_insert(holds)
_INSERT_PROJECTS = compile_insert(hold_projects)
_INSERT_DRAWS = compile_insert(draws)


@dataclass(slots=True)
class LockedHolds:
    """The locked holds that claims concern.

    Attributes:
        rows: Their rows as consumers.
        current_allocations: Their allocations.
        stored_draws: Draws by consumer, including draws that do not count.
        stale_uuids: UUIDs of consumers with terms that are not holds.
    """

    book: HoldBook = field(default_factory=HoldBook)
    rows: Mapping[str, Consumer] = field(default_factory=dict)
    current_allocations: CurrentAllocations = field(default_factory=lambda: CurrentAllocations({}))
    stored_draws: Mapping[str, Draws] = field(default_factory=dict)
    stale_uuids: AbstractSet[str] = frozenset()


def lock_holds(
    transaction: WriteTransaction,
    uuids: AbstractSet[str],
    claimants: Sequence[str],
    locked_consumers: Mapping[str, Consumer],
    current_allocations: CurrentAllocations,
) -> LockedHolds:
    """Lock the consumers that are holds, and read their terms, amounts and draws.

    The caller has locked the consumers of the claims (`claimants`) that have a row, and has read their
    `current_allocations`.

    Raises:
        PrerequisiteError: if a hold has expired; it removes the hold, and the write is retried.
    """
    if not uuids:
        return LockedHolds()
    added_consumers = consumers.lock(transaction, sorted(uuids - locked_consumers.keys()))
    rows = {
        uuid: row for uuid, row in {**locked_consumers, **added_consumers}.items() if uuid in uuids
    }
    terms = load_hold_terms(transaction, sorted(rows))
    if ended_uuids := _find_expired(transaction, terms):
        raise PrerequisiteError(
            lambda later_transaction: end_expired(later_transaction, ended_uuids)
        )
    held_amounts = load_current_allocations(transaction, sorted(terms))
    stored_draws = _load_draws(transaction, claimants)
    # Only holds that return have draws.
    returning_uuids = sorted(uuid for uuid, (_, hold_terms) in terms.items() if hold_terms.returns)
    drawn_by_others: set[str] = set()
    if returning_uuids:
        drawn_rows = transaction.rows(
            _DRAWN_BY_OTHERS, uuids=returning_uuids, consumers=list(claimants)
        )
        drawn_by_others = {row.uuid for row in drawn_rows}
    hold_by_uuid = {
        uuid: Hold(
            project, hold_terms, dict(held_amounts.sum_usage([uuid])), uuid in drawn_by_others
        )
        for uuid, (project, hold_terms) in terms.items()
    }
    valid_draws = {
        consumer: _select_valid_draws(
            by_key, hold_by_uuid, current_allocations.sum_usage([consumer])
        )
        for consumer, by_key in stored_draws.items()
    }
    book = HoldBook(hold_by_uuid, hold_by_uuid, valid_draws)
    return LockedHolds(book, rows, held_amounts, stored_draws, uuids - hold_by_uuid.keys())


def _find_expired(
    transaction: WriteTransaction, terms: Mapping[str, tuple[str, HoldTerms]]
) -> list[str]:
    now = read_clock(transaction.connection)
    return sorted(
        uuid
        for uuid, (_, hold_terms) in terms.items()
        if hold_terms.until is not None and hold_terms.until <= now
    )


def _load_draws(transaction: WriteTransaction, claimants: Sequence[str]) -> Mapping[str, Draws]:
    by_consumer: dict[str, dict[Key, dict[str, int]]] = {}
    for row in transaction.rows_in_chunks(_DRAWS, uuids=claimants):
        by_key = by_consumer.setdefault(row.consumer_uuid, {})
        units_by_hold = by_key.setdefault((row.provider_id, row.class_id), {})
        units_by_hold[row.hold_uuid] = row.amount
    return by_consumer


def _select_valid_draws(
    by_key: Draws, hold_uuids: Collection[str], usage: Mapping[Key, int]
) -> Draws:
    """Return the draws from existing holds, within the amounts of the consumer."""
    valid_draws: dict[Key, dict[str, int]] = {}
    for key, drawn_by_hold in by_key.items():
        remaining_units = usage.get(key, 0)
        for hold, drawn_units in sorted(drawn_by_hold.items()):
            amount = min(drawn_units, remaining_units) if hold in hold_uuids else 0
            remaining_units -= amount
            if amount:
                valid_draws.setdefault(key, {})[hold] = amount
    return valid_draws


def end_expired(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """Delete the expired ones of these holds."""
    rows = consumers.lock(transaction, sorted(uuids))
    ended_uuids = _find_expired(transaction, load_hold_terms(transaction, sorted(rows)))
    current_allocations = load_current_allocations(transaction, ended_uuids)
    for uuid in ended_uuids:
        _write_amounts(transaction, uuid, current_allocations, {})
    removed_usage = current_allocations.sum_usage(ended_uuids)
    consumption = load_consumption(transaction, {provider_id for provider_id, _ in removed_usage})
    record_consumed(transaction, list_consumed_providers(consumption, removed_usage))
    consumers.delete(transaction, ended_uuids)
    delete_terms(transaction, ended_uuids)


def delete_terms(transaction: WriteTransaction, uuids: Collection[str]) -> None:
    """Delete the terms of holds, and the draws from them."""
    if uuids:
        for statement in (_DELETE_TERMS, _DELETE_PROJECTS, _DELETE_DRAWS_FROM):
            transaction.change(statement, uuids=sorted(uuids))


def delete_excess_draws(transaction: WriteTransaction, consumer_uuid: str) -> bool:
    """Delete the draws of a consumer beyond its allocations; return whether any existed."""
    locked_consumers = consumers.lock(transaction, [consumer_uuid])
    current_allocations = load_current_allocations(transaction, [consumer_uuid])
    stored_draws = _load_draws(transaction, [consumer_uuid]).get(consumer_uuid, {})
    hold_uuids = set[str]().union(*stored_draws.values())
    locked_holds = lock_holds(
        transaction, hold_uuids, [consumer_uuid], locked_consumers, current_allocations
    )
    if locked_holds.book.draws.get(consumer_uuid, {}) == locked_holds.stored_draws.get(
        consumer_uuid, {}
    ):
        return False
    locked_holds.book = locked_holds.book.apply([])
    write(transaction, locked_holds, [consumer_uuid], {})
    return True


def write(
    transaction: WriteTransaction,
    locked_holds: LockedHolds,
    claimants: Collection[str],
    new_terms: Mapping[str, HoldTerms],
) -> None:
    """Write the changed holds and draws of accepted claims; the claims themselves write their consumers."""
    book = locked_holds.book
    ended_uuids = book.original_holds.keys() - book.holds.keys()
    unclaimed_uuids = (book.steps.keys() | ended_uuids).difference(claimants)
    for uuid in sorted(unclaimed_uuids):
        _write_amounts(transaction, uuid, locked_holds.current_allocations, book.get_amounts(uuid))
        if uuid in book.holds:
            consumers.raise_generation(transaction, locked_holds.rows[uuid], book.steps[uuid])
    consumers.delete(transaction, unclaimed_uuids & ended_uuids)
    replaced_uuids = locked_holds.stale_uuids & new_terms.keys()
    delete_terms(transaction, ended_uuids | (replaced_uuids - book.holds.keys()))
    write_terms(
        transaction,
        {uuid: terms for uuid, terms in new_terms.items() if uuid in book.holds},
        existing_uuids=book.original_holds.keys() | locked_holds.stale_uuids,
    )
    unreturned_uuids = replaced_uuids | {
        uuid
        for uuid in book.original_holds.keys() & book.holds.keys()
        if book.original_holds[uuid].terms.returns and not book.holds[uuid].terms.returns
    }
    if unreturned_uuids:
        transaction.change(_DELETE_DRAWS_FROM, uuids=sorted(unreturned_uuids))
    _write_draws(transaction, locked_holds, claimants)


def write_terms(
    transaction: WriteTransaction, terms: Mapping[str, HoldTerms], existing_uuids: Collection[str]
) -> None:
    """Insert the terms of holds, or replace those of the holds `existing_uuids`."""
    if replaced_uuids := sorted(terms.keys() & set(existing_uuids)):
        for statement in (_DELETE_TERMS, _DELETE_PROJECTS):
            transaction.change(statement, uuids=replaced_uuids)
    transaction.change_each(
        _INSERT_TERMS,
        (
            {
                "uuid": uuid,
                "ends_at": hold_terms.until,
                "returns": hold_terms.returns,
                "note": None if hold_terms.note is None else json.dumps(hold_terms.note),
            }
            for uuid, hold_terms in sorted(terms.items())
        ),
    )
    transaction.change_each(
        _INSERT_PROJECTS,
        (
            {"hold_uuid": uuid, "number": number, "project": project}
            for uuid, hold_terms in sorted(terms.items())
            for number, project in enumerate(hold_terms.projects)
        ),
    )


def change_terms(
    transaction: WriteTransaction, changes: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Change members of the `HoldTerms` of holds, without a new generation; return the UUIDs that are not holds.

    Raises:
        PrerequisiteError: if a hold has expired; it removes the hold, and the write is retried.
    """
    locked_holds = lock_holds(transaction, changes.keys(), [""], {}, CurrentAllocations({}))
    book = locked_holds.book
    terms = {
        uuid: replace(hold.terms, **changes[uuid])
        for uuid, hold in book.original_holds.items()
        if uuid in changes
    }
    changed_holds = [
        ConsumerChange(
            uuid, hold.project_id, hold.amounts, hold.amounts, is_hold=True, terms=terms[uuid]
        )
        for uuid, hold in book.original_holds.items()
        if uuid in terms
    ]
    locked_holds.book = book.apply(changed_holds)
    write(transaction, locked_holds, (), terms)
    return sorted(changes.keys() - terms.keys())


def _write_amounts(
    transaction: WriteTransaction,
    uuid: str,
    current_allocations: CurrentAllocations,
    new_amounts: Mapping[Key, int],
) -> None:
    difference = Counter(new_amounts)
    difference.subtract(current_allocations.sum_usage([uuid]))
    changes_by_provider: dict[int, Counter[int]] = defaultdict(Counter)
    for (provider_id, class_id), amount in difference.items():
        if amount:
            changes_by_provider[provider_id][class_id] = amount
    for chunk in chunks(sorted(changes_by_provider)):
        deleted_count = sum(
            row.provider_id in chunk for row in current_allocations.list_allocations([uuid])
        )
        if deleted_count:
            transaction.change(_DELETE_AT, rows=deleted_count, uuid=uuid, provider_ids=list(chunk))
    insert_allocations(
        transaction,
        (
            (uuid, key, amount)
            for key, amount in sorted(new_amounts.items())
            if key[0] in changes_by_provider
        ),
    )
    for provider_id, amounts in changes_by_provider.items():
        transaction.touch_usage(
            provider_id, UsageChange(amounts, 0, 0, to_timestamp(transaction.now))
        )


def _write_draws(
    transaction: WriteTransaction, locked_holds: LockedHolds, claimants: Collection[str]
) -> None:
    draws_by_consumer = {uuid: locked_holds.book.draws.get(uuid, {}) for uuid in claimants}
    changed_uuids = sorted(
        uuid
        for uuid in draws_by_consumer
        if draws_by_consumer[uuid] != locked_holds.stored_draws.get(uuid, {})
    )
    if stored_uuids := [uuid for uuid in changed_uuids if uuid in locked_holds.stored_draws]:
        transaction.change(_DELETE_DRAWS_BY, uuids=stored_uuids)
    transaction.change_each(
        _INSERT_DRAWS,
        (
            {
                "consumer_uuid": uuid,
                "provider_id": provider_id,
                "class_id": class_id,
                "hold_uuid": hold_uuid,
                "amount": amount,
            }
            for uuid in changed_uuids
            for (provider_id, class_id), by_hold in sorted(draws_by_consumer[uuid].items())
            for hold_uuid, amount in sorted(by_hold.items())
        ),
    )
