# SPDX-License-Identifier: Apache-2.0
"""What is kept with consumers: terms of holds, draws, and requests (contract page 100)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
import sqlalchemy as sa

from treeclaim.model.extension.holds import OUTLIVES, Amounts, StoredHold
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, as_datetime, chunks
from treeclaim.store.reading.holds import drawn_by, holds_among
from treeclaim.store.schema.tables import requests

_REQUESTS = CompiledStatement(
    sa.select(requests.c.consumer_uuid, requests.c.request, requests.c.gone_at).where(
        requests.c.consumer_uuid.in_(sa.bindparam("uuids", expanding=True))
    )
)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept with some consumers.

    Attributes:
        holds: Those that are holds, by uuid.
        drawn: What they have drawn from holds that return, by uuid and hold.
        requests: The queries that they were placed by, by uuid.
    """

    holds: Mapping[str, StoredHold]
    drawn: Mapping[str, Mapping[str, Amounts]]
    requests: Mapping[str, Sequence[str]]


def kept_with(
    transaction: ReadTransaction, uuids: Sequence[str], *, has_requests: bool = True
) -> Kept:
    """Return what is kept with some consumers; their requests only if those are wanted."""
    return Kept(
        holds_among(transaction, uuids),
        drawn_by(transaction, uuids),
        requests_of(transaction, uuids) if has_requests else {},
    )


def requests_of(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, list[str]]:
    """Return the requests that some consumers were placed by; for a day also of those that are gone."""
    oldest = transaction.now - OUTLIVES
    found = {}
    for chunk in chunks(uuids):
        for row in transaction.rows(_REQUESTS, uuids=chunk):
            gone_at = as_datetime(row.gone_at)
            if gone_at is None or gone_at >= oldest:
                found[row.consumer_uuid] = orjson.loads(row.request)
    return found
