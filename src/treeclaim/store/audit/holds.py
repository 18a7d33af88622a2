# SPDX-License-Identifier: Apache-2.0
"""Findings about holds (contract page 100, section 5)."""

from datetime import timedelta

import sqlalchemy as sa

from treeclaim.model.extension.audit import Findings
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import EXISTING
from treeclaim.store.schema.tables import (
    allocations,
    draws,
    holds,
    resource_classes,
    resource_providers,
)

_LATE = timedelta(minutes=1)
"""How long after its end a hold that still exists is a finding."""

HOLDS = sa.select(holds.c.uuid).select_from(EXISTING)
"""The uuids of holds that exist."""

_EXPIRED = HOLDS.where(holds.c.ends_at <= sa.bindparam("before")).order_by(holds.c.uuid)
_BROKEN = sa.union(
    sa.select(holds.c.uuid).where(holds.c.uuid.not_in(HOLDS)),
    sa.select(draws.c.hold_uuid).where(draws.c.hold_uuid.not_in(HOLDS)),
)
_DRAWN = (
    sa.select(
        draws.c.consumer_uuid,
        draws.c.provider_id,
        draws.c.class_id,
        sa.func.sum(draws.c.amount).label("drawn"),
    )
    .where(draws.c.hold_uuid.in_(HOLDS))
    .group_by(draws.c.consumer_uuid, draws.c.provider_id, draws.c.class_id)
    .subquery()
)
_BEYOND = (
    sa.select(
        _DRAWN.c.consumer_uuid,
        resource_providers.c.uuid,
        resource_classes.c.name,
        _DRAWN.c.drawn,
        sa.func.coalesce(allocations.c.used, 0),
    )
    .select_from(_DRAWN)
    .outerjoin(
        allocations,
        sa.and_(
            allocations.c.consumer_id == _DRAWN.c.consumer_uuid,
            allocations.c.resource_provider_id == _DRAWN.c.provider_id,
            allocations.c.resource_class_id == _DRAWN.c.class_id,
        ),
    )
    .outerjoin(resource_providers, resource_providers.c.id == _DRAWN.c.provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == _DRAWN.c.class_id)
    .where(_DRAWN.c.drawn > sa.func.coalesce(allocations.c.used, 0))
    .order_by(_DRAWN.c.consumer_uuid, _DRAWN.c.provider_id, _DRAWN.c.class_id)
)


def expired_hold(transaction: ReadTransaction, limit: int) -> Findings:
    """Find holds that still exist a minute after their end."""
    rows = transaction.rows(_EXPIRED, before=transaction.now - _LATE)
    return Findings.of([{"consumer": uuid} for (uuid,) in rows], limit)


def broken_hold(transaction: ReadTransaction, limit: int) -> Findings:
    """Find terms, and draws, of what is not a hold."""
    rows = transaction.rows(_BROKEN)
    return Findings.of([{"consumer": uuid} for uuid in sorted(uuid for (uuid,) in rows)], limit)


def broken_draw(transaction: ReadTransaction, limit: int) -> Findings:
    """Find consumers that have drawn more than they have."""
    return Findings.of(
        [
            {
                "consumer": consumer,
                "provider": provider,
                "resource_class": name,
                "drawn": int(drawn),
                "used": int(used),
            }
            for consumer, provider, name, drawn, used in transaction.rows(_BEYOND)
        ],
        limit,
    )
