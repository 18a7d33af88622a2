# SPDX-License-Identifier: Apache-2.0
"""Requests that are kept with the consumers that they placed (contract page 100, section 4).

A request outlives the record of its consumer by at least a day: an hourly job marks the requests of consumers
without a record, and deletes requests that were marked a day ago.
"""

import json
from collections.abc import Collection, Mapping, Sequence

from treeclaim.model.claim import REQUEST_RETENTION, ConsumerClaim, Omission
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import ReadTransaction, WriteTransaction
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.schema.tables import requests

_INSERT = compile_insert(requests)
_DELETE = "DELETE FROM treeclaim_requests WHERE consumer_uuid IN :uuids"
_MARK = """
UPDATE treeclaim_requests SET gone_at = :at WHERE consumer_uuid IN :uuids AND gone_at IS NULL
"""
_CLEAR_MARK = "UPDATE treeclaim_requests SET gone_at = NULL WHERE consumer_uuid IN :uuids"
_HAS_RECORD = "EXISTS (SELECT 1 FROM consumers WHERE uuid = treeclaim_requests.consumer_uuid)"
_WITHOUT_RECORD = f"""
SELECT consumer_uuid FROM treeclaim_requests WHERE gone_at IS NULL AND NOT {_HAS_RECORD} LIMIT 1000
"""
_CLEAR_MARKS_OF_RECORDED = f"""
UPDATE treeclaim_requests SET gone_at = NULL WHERE gone_at IS NOT NULL AND {_HAS_RECORD}
"""
_DELETE_OLD = f"DELETE FROM treeclaim_requests WHERE gone_at < :before AND NOT {_HAS_RECORD}"


def write(
    transaction: WriteTransaction,
    claims: Sequence[ConsumerClaim],
    recorded_uuids: Collection[str],
    existing_requests: Mapping[str, bool],
) -> None:
    """Write or delete the requests of the locked consumers of claims.

    `recorded_uuids` are the consumers with a record after the write. `existing_requests` says for each consumer with a
    kept request whether it is marked.
    """
    request_by_uuid = {
        claim.consumer_uuid: claim.request
        for claim in claims
        if not isinstance(claim.request, Omission)
    }
    replace(transaction, request_by_uuid, recorded_uuids, existing_requests)
    if marked_uuids := sorted(uuid for uuid in recorded_uuids if existing_requests.get(uuid)):
        transaction.change(_CLEAR_MARK, uuids=marked_uuids)


def replace(
    transaction: WriteTransaction,
    request_by_uuid: Mapping[str, Sequence[str] | None],
    recorded_uuids: Collection[str],
    existing_requests: Collection[str],
) -> None:
    """Write the requests of locked consumers, or delete those that are None.

    A consumer without a record (not in `recorded_uuids`) gets a request only if it has a kept one (`existing_requests`).
    """
    if replaced_uuids := sorted(request_by_uuid.keys() & set(existing_requests)):
        transaction.change(_DELETE, uuids=replaced_uuids)
    transaction.change_each(
        _INSERT,
        (
            {
                "consumer_uuid": uuid,
                "request": json.dumps(list(request), separators=(",", ":")),
            }
            for uuid, request in sorted(request_by_uuid.items())
            if request is not None and (uuid in recorded_uuids or uuid in existing_requests)
        ),
    )


def change_requests(
    transaction: WriteTransaction, request_by_uuid: Mapping[str, Sequence[str] | None]
) -> list[str]:
    """Write or delete the requests of existing consumers, without a new generation; return the missing consumers."""
    existing_consumers = consumers.lock(transaction, sorted(request_by_uuid))
    new_requests = {
        uuid: request for uuid, request in request_by_uuid.items() if uuid in existing_consumers
    }
    replace(transaction, new_requests, existing_consumers.keys(), new_requests)
    return sorted(request_by_uuid.keys() - existing_consumers.keys())


def find_without_record(transaction: ReadTransaction) -> list[str]:
    """Return at most 1000 consumers without a record and with an unmarked request."""
    return [row.consumer_uuid for row in transaction.rows(_WITHOUT_RECORD)]


def mark_without_record(transaction: WriteTransaction, uuids: Sequence[str]) -> None:
    """Mark the requests of these consumers, except consumers with a record."""
    recorded_consumers = consumers.lock(transaction, uuids)
    missing_uuids = sorted(set(uuids).difference(recorded_consumers))
    if missing_uuids:
        # The write is retried if a concurrent transaction inserts such a consumer.
        consumers.lock_missing(transaction, missing_uuids)
        transaction.change(_MARK, uuids=missing_uuids, at=transaction.now)


def delete_old(transaction: WriteTransaction) -> None:
    """Delete requests that were marked a day ago, unless their consumer has a record again."""
    transaction.execute(_CLEAR_MARKS_OF_RECORDED)
    transaction.execute(_DELETE_OLD, before=transaction.now - REQUEST_RETENTION)
