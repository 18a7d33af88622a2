# SPDX-License-Identifier: Apache-2.0
"""Consumers with allocations (contract page 98, section 4), and their holds and requests (page 100)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from treeclaim.model.claim import Amounts, StoredHold
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.consumers import find_consumer_rows, load_allocations
from treeclaim.store.reading.holds import load_draws, load_holds

_REQUESTS = "SELECT consumer_uuid, request FROM treeclaim_requests WHERE consumer_uuid IN :uuids"

CONSUMERS_WITHOUT_RECORD = """
SELECT DISTINCT consumer_id AS consumer FROM allocations
LEFT JOIN consumers ON consumers.uuid = consumer_id WHERE consumers.id IS NULL
"""
"""Selects the consumers with allocations and without a record."""


@dataclass(frozen=True, slots=True)
class StoredHolder:
    """A consumer; without a record (old data) it has no owners, and generation 0."""

    allocations: Amounts
    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None
    generation: int = 0


def find_holders(
    transaction: ReadTransaction, uuids: Sequence[str], *, may_be_holds: bool = False
) -> dict[str, StoredHolder]:
    """Return the consumers with allocations, by UUID.

    With `may_be_holds`, amounts drawn from a hold count as held by it (page 100, section 1).
    """
    amounts_by_holder = {
        consumer: {
            provider: Counter[str](allocation["resources"])
            for provider, allocation in by_provider.items()
        }
        for consumer, by_provider in load_allocations(transaction, uuids).items()
    }
    for hold, stored_hold in (load_holds(transaction, uuids) if may_be_holds else {}).items():
        by_provider = amounts_by_holder.setdefault(hold, {})
        for provider, drawn_amounts in stored_hold.drawn.items():
            by_provider.setdefault(provider, Counter()).update(drawn_amounts)
    # Some collations also match other spellings.
    holders = sorted(amounts_by_holder.keys() & set(uuids))
    row_by_uuid = find_consumer_rows(transaction, holders)
    return {
        uuid: StoredHolder(
            amounts_by_holder[uuid], row.project, row.user_name, row.type, int(row.generation)
        )
        if (row := row_by_uuid.get(uuid)) is not None
        else StoredHolder(amounts_by_holder[uuid])
        for uuid in holders
    }


@dataclass(frozen=True, slots=True)
class ConsumerDetails:
    """Holds, draws by hold, and kept requests, each by the UUID of their consumer."""

    holds: Mapping[str, StoredHold]
    draws: Mapping[str, Mapping[str, Amounts]]
    requests: Mapping[str, Sequence[str]]


def load_consumer_details(
    transaction: ReadTransaction, uuids: Sequence[str], *, has_requests: bool = True
) -> ConsumerDetails:
    """Load holds, draws and, with `has_requests`, kept requests of consumers."""
    return ConsumerDetails(
        load_holds(transaction, uuids),
        load_draws(transaction, uuids),
        load_requests(transaction, uuids) if has_requests else {},
    )


def load_requests(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, list[str]]:
    """Return the requests by which consumers were placed, also of consumers without a record."""
    return {
        row.consumer_uuid: orjson.loads(row.request)
        for row in transaction.rows_in_chunks(_REQUESTS, uuids=uuids)
    }
