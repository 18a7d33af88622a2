# SPDX-License-Identifier: Apache-2.0
"""Findings about conditions (contract page 102, section 3)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from treeclaim.model.extension.audit import Findings
from treeclaim.model.extension.conditions import Effect
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holders import find_holders, load_requests
from treeclaim.store.reading.inventories import CONSUMES
from treeclaim.store.schema.tables import (
    allocations,
    conditions,
    consumption,
    resource_providers,
)

ToleratedKeys = Callable[[Sequence[str], Mapping[str, int]], frozenset[str]]
"""Returns the keys that a kept request tolerates for a consumer that holds some units by class: none if the
request is not valid (contract page 100, section 4)."""

_HEADS = (
    sa.select(
        conditions.c.resource_provider_id.label("head"),
        conditions.c.name.label("key"),
        conditions.c.resource_provider_id.label("below"),
    )
    .where(
        conditions.c.effect == int(Effect.LEAVE),
        conditions.c.began == sa.true(),
        sa.or_(conditions.c.ends_at.is_(None), conditions.c.ends_at > sa.bindparam("now")),
    )
    .cte("down", recursive=True)
)
_DOWN = _HEADS.union(
    sa.select(_HEADS.c.head, _HEADS.c.key, resource_providers.c.id).join(
        resource_providers, resource_providers.c.parent_provider_id == _HEADS.c.below
    )
)


def _users_of(provider_id: sa.ColumnElement[int], *joined: Any) -> sa.Select[Any]:
    """Return the consumers of the providers of a column, given what else is read."""
    query = sa.select(
        allocations.c.consumer_id.label("consumer"),
        resource_providers.c.id.label("head"),
        resource_providers.c.uuid.label("provider"),
        _DOWN.c.key.label("condition"),
    ).select_from(allocations)
    for table, condition in joined:
        query = query.join(table, condition)
    return query.join(_DOWN, _DOWN.c.below == provider_id).join(
        resource_providers, resource_providers.c.id == _DOWN.c.head
    )


_MUST_LEAVE = sa.union(
    _users_of(allocations.c.resource_provider_id),
    _users_of(consumption.c.consumed_provider_id, (consumption, CONSUMES)),
).order_by("consumer", "head", "condition")


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
            {"consumer": row.consumer, "provider": row.provider, "key": row.condition}
            for row in rows
            if row.condition not in tolerated.get(row.consumer, ())
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
