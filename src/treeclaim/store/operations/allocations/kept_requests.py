# SPDX-License-Identifier: Apache-2.0
"""Requests that are kept with the consumers that were placed by them (contract page 100, section 4)."""

import json
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim, KeptRequest
from treeclaim.model.extension.holds import OUTLIVES
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.reading.consumers import load_requests
from treeclaim.store.schema.tables import consumers as consumer_rows
from treeclaim.store.schema.tables import requests

_OF = requests.c.consumer_uuid.in_(sa.bindparam("uuids", expanding=True))
_INSERT = CompiledStatement(sa.insert(requests).inline())
_DELETE = CompiledStatement(sa.delete(requests).where(_OF))
_NOTE_GONE = CompiledStatement(
    sa.update(requests).where(_OF, requests.c.gone_at.is_(None)).values(gone_at=sa.bindparam("at"))
)
_TOO_OLD = CompiledStatement(
    sa.delete(requests).where(_OF, requests.c.gone_at < sa.bindparam("before"))
)
_NOTE_BACK = CompiledStatement(sa.update(requests).where(_OF).values(gone_at=None))
_WITHOUT_RECORD = (
    sa.select(requests.c.consumer_uuid)
    .where(
        requests.c.gone_at.is_(None),
        ~sa.exists().where(consumer_rows.c.uuid == requests.c.consumer_uuid),
    )
    .limit(1_000)
)
_DELETE_OLD = sa.delete(requests).where(requests.c.gone_at < sa.bindparam("before"))


def ascii_json(value: object) -> str:
    """Write a value as JSON in ASCII, which every database takes as text."""
    return json.dumps(value, separators=(",", ":"))


def write(
    transaction: WriteTransaction,
    claims: Sequence[ConsumerClaim],
    recorded: Collection[str],
    known: Mapping[str, bool],
) -> None:
    """Keep, forget or leave the requests of the consumers of claims.

    Args:
        transaction: It has locked the consumers.
        claims: What is written.
        recorded: The consumers that have a record afterwards.
        known: Those that have a kept request, and whether their record had gone.
    """
    request_by_uuid = {
        claim.consumer_uuid: claim.request
        for claim in claims
        if not isinstance(claim.request, KeptRequest)
    }
    unchanged_uuids = {claim.consumer_uuid for claim in claims} - request_by_uuid.keys()
    note_gone(
        transaction, {uuid for uuid in unchanged_uuids if known.get(uuid) is False} - set(recorded)
    )
    if back := sorted(uuid for uuid in unchanged_uuids.intersection(recorded) if known.get(uuid)):
        transaction.change(_TOO_OLD, uuids=back, before=transaction.now - OUTLIVES)
        transaction.change(_NOTE_BACK, uuids=back)
    # What is older than a day is as good as deleted, though nobody may have done that yet.
    gone = sorted(uuid for uuid in request_by_uuid.keys() - set(recorded) if known.get(uuid))
    too_old = set(gone) - load_requests(transaction, gone).keys() if gone else set()
    replace(transaction, request_by_uuid, recorded, known.keys() - too_old)


def replace(
    transaction: WriteTransaction,
    given: Mapping[str, Sequence[str] | None],
    recorded: Collection[str],
    known: Collection[str],
) -> None:
    """Keep or forget requests.

    Args:
        transaction: It has locked the consumers.
        given: Requests by consumer; None to forget one.
        recorded: The consumers that have a record afterwards; for the others nothing new is kept.
        known: Consumers that may have a kept request.
    """
    if replaced := sorted(given.keys() & set(known)):
        transaction.change(_DELETE, uuids=replaced)
    transaction.change_each(
        _INSERT,
        (
            {
                "consumer_uuid": uuid,
                "request": ascii_json(list(request)),
                "gone_at": None if uuid in recorded else transaction.now,
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


def note_gone(transaction: WriteTransaction, uuids: Collection[str]) -> None:
    """Note that the records of some consumers go."""
    if uuids:
        transaction.change(_NOTE_GONE, uuids=sorted(uuids), at=transaction.now)


def without_record(transaction: ReadTransaction) -> list[str]:
    """Return consumers whose record another service has removed, at most a thousand."""
    return [row.consumer_uuid for row in transaction.rows(_WITHOUT_RECORD)]


def note_without_record(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """Note that the records of some consumers have gone, of those that have none.

    Raises:
        DBAPIError: if one of them comes back at this moment; so it is tried again.
    """
    recorded = consumers.lock(transaction, uuids)
    gone = sorted(set(uuids).difference(recorded))
    consumers.lock_missing(transaction, gone)
    note_gone(transaction, gone)


def delete_old(transaction: WriteTransaction) -> None:
    """Delete the requests of consumers whose record went too long ago."""
    transaction.execute(_DELETE_OLD, before=transaction.now - OUTLIVES)
