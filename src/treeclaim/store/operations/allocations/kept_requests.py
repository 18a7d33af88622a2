# SPDX-License-Identifier: Apache-2.0
"""Requests that are kept with the consumers that were placed by them (contract page 100, section 4).

A request outlives the record of its consumer by a day at least. Writes of claims leave it as it is: an hourly
job marks the requests of consumers without a record, and deletes those that were marked a day ago.
"""

import json
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from treeclaim.model.claim import OUTLIVES, ConsumerClaim, Omission
from treeclaim.store.database.compiled import CompiledStatement, bind_list, compile_insert
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.schema.tables import consumers as consumer_rows
from treeclaim.store.schema.tables import requests

_OF = requests.c.consumer_uuid.in_(bind_list("uuids"))
_INSERT = compile_insert(requests)
_DELETE = CompiledStatement(sa.delete(requests).where(_OF))
_MARK = CompiledStatement(
    sa.update(requests).where(_OF, requests.c.gone_at.is_(None)).values(gone_at=sa.bindparam("at"))
)
_CLEAR_MARK = CompiledStatement(sa.update(requests).where(_OF).values(gone_at=None))
_HAS_RECORD = sa.exists().where(consumer_rows.c.uuid == requests.c.consumer_uuid)
_WITHOUT_RECORD = (
    sa.select(requests.c.consumer_uuid)
    .where(requests.c.gone_at.is_(None), ~_HAS_RECORD)
    .limit(1_000)
)
_CLEAR_MARKS_OF_RECORDED = (
    sa.update(requests).where(requests.c.gone_at.is_not(None), _HAS_RECORD).values(gone_at=None)
)
_DELETE_OLD = sa.delete(requests).where(requests.c.gone_at < sa.bindparam("before"), ~_HAS_RECORD)


def ascii_json(value: object) -> str:
    """Write a value as JSON in ASCII, which every database takes as text."""
    return json.dumps(value, separators=(",", ":"))


def write(
    transaction: WriteTransaction,
    claims: Sequence[ConsumerClaim],
    recorded: Collection[str],
    known: Mapping[str, bool],
) -> None:
    """Keep, forget or leave the requests of the consumers of claims, which are locked.

    Args:
        transaction: The one that has locked them.
        claims: The claims.
        recorded: The consumers that have a record afterwards.
        known: The consumers that have a kept request, and whether it is marked as without a record.
    """
    request_by_uuid = {
        claim.consumer_uuid: claim.request
        for claim in claims
        if not isinstance(claim.request, Omission)
    }
    replace(transaction, request_by_uuid, recorded, known)
    if back := sorted(uuid for uuid in recorded if known.get(uuid)):
        transaction.change(_CLEAR_MARK, uuids=back)


def replace(
    transaction: WriteTransaction,
    given: Mapping[str, Sequence[str] | None],
    recorded: Collection[str],
    known: Collection[str],
) -> None:
    """Keep requests, or forget those that are None, of locked consumers.

    A consumer gets a new request if it has a record after the write, or a kept request.
    """
    if replaced := sorted(given.keys() & set(known)):
        transaction.change(_DELETE, uuids=replaced)
    transaction.change_each(
        _INSERT,
        (
            {
                "consumer_uuid": uuid,
                "request": ascii_json(list(request)),
            }
            for uuid, request in sorted(given.items())
            if request is not None and (uuid in recorded or uuid in known)
        ),
    )


def keep_requests_for(
    transaction: WriteTransaction, given: Mapping[str, Sequence[str] | None]
) -> list[str]:
    """Keep or forget the requests of those among some consumers that exist; return the others.

    No generation moves.
    """
    existing = consumers.lock(transaction, sorted(given))
    existing_requests = {uuid: request for uuid, request in given.items() if uuid in existing}
    replace(transaction, existing_requests, existing.keys(), existing_requests)
    return sorted(given.keys() - existing.keys())


def without_record(transaction: ReadTransaction) -> list[str]:
    """Return consumers without a record whose request is not marked, at most a thousand."""
    return [row.consumer_uuid for row in transaction.rows(_WITHOUT_RECORD)]


def mark_without_record(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """Mark the requests of those of some consumers that have no record.

    Raises:
        DBAPIError: if one of them comes back at this moment; so it is tried again.
    """
    recorded = consumers.lock(transaction, uuids)
    gone = sorted(set(uuids).difference(recorded))
    if gone:
        consumers.lock_missing(transaction, gone)
        transaction.change(_MARK, uuids=gone, at=transaction.now)


def delete_old(transaction: WriteTransaction) -> None:
    """Delete the requests of consumers that have had no record for too long."""
    transaction.execute(_CLEAR_MARKS_OF_RECORDED)
    transaction.execute(_DELETE_OLD, before=transaction.now - OUTLIVES)
