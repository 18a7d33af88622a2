# SPDX-License-Identifier: Apache-2.0
"""Findings about conditions (contract page 102, section 3)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import sqlalchemy as sa

from treeclaim.model.extension.audit import Findings
from treeclaim.model.extension.conditions import Effect
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holders import find_holders, load_requests

ToleratedKeys = Callable[[Sequence[str], Mapping[str, int]], frozenset[str]]
"""Returns the keys that a kept request tolerates for a consumer that holds some units by class: none if the
request is not valid (contract page 100, section 4)."""

_MUST_LEAVE = sa.text(
    f"""
    WITH RECURSIVE down (head, name, below) AS (
        SELECT resource_provider_id, name, resource_provider_id FROM treeclaim_conditions
        WHERE effect = {int(Effect.LEAVE)} AND began AND (ends_at IS NULL OR ends_at > :now)
        UNION
        SELECT down.head, down.name, p.id FROM down
        JOIN resource_providers p ON p.parent_provider_id = down.below
    )
    SELECT a.consumer_id AS consumer, p.id AS head, p.uuid AS provider, down.name AS name FROM down
    JOIN allocations a ON a.resource_provider_id = down.below
    JOIN resource_providers p ON p.id = down.head
    UNION
    SELECT a.consumer_id, p.id, p.uuid, down.name FROM down
    JOIN treeclaim_consumption c ON c.consumed_provider_id = down.below
    JOIN allocations a ON a.resource_provider_id = c.resource_provider_id
        AND a.resource_class_id = c.resource_class_id
    JOIN resource_providers p ON p.id = down.head
    ORDER BY consumer, head, name
    """
).bindparams(sa.bindparam("now", type_=sa.DateTime()))


def must_leave(
    transaction: ReadTransaction, limit: int, tolerated_keys: ToleratedKeys
) -> Findings:
    """Find consumers that use something where a condition `leave`, which they do not tolerate, holds."""
    rows = transaction.rows(_MUST_LEAVE, now=transaction.now)
    tolerated = _load_tolerated_keys(
        transaction, sorted({row.consumer for row in rows}), tolerated_keys
    )
    return Findings.of(
        [
            {"consumer": row.consumer, "provider": row.provider, "key": row.name}
            for row in rows
            if row.name not in tolerated.get(row.consumer, ())
        ],
        limit,
    )


def _load_tolerated_keys(
    transaction: ReadTransaction, uuids: Sequence[str], tolerated_keys: ToleratedKeys
) -> dict[str, frozenset[str]]:
    requests = load_requests(transaction, uuids)
    holders = find_holders(transaction, sorted(requests), may_be_holds=True)
    tolerated = {}
    for uuid, holder in holders.items():
        units: Counter[str] = Counter()
        for amounts in holder.allocations.values():
            units.update(amounts)
        tolerated[uuid] = tolerated_keys(requests[uuid], +units)
    return tolerated
