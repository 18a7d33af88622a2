# SPDX-License-Identifier: Apache-2.0
"""Consumers that do not live any more, by the list of those that do."""

from datetime import timedelta

import sqlalchemy as sa

from treeclaim.model.extension.audit import Findings, Living
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import allocations, consumer_types, consumers

_NEWEST = sa.func.max(sa.func.coalesce(allocations.c.updated_at, allocations.c.created_at))
_HOLDERS = (
    sa.select(
        consumers.c.uuid,
        consumers.c.generation,
        consumer_types.c.name.label("type"),
        _NEWEST.label("newest"),
    )
    .select_from(consumers)
    .join(allocations, allocations.c.consumer_id == consumers.c.uuid)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .group_by(consumers.c.uuid, consumers.c.generation, consumer_types.c.name)
    .order_by(consumers.c.uuid)
)


def orphaned(transaction: ReadTransaction, limit: int, living: Living) -> Findings:
    """Find consumers of listed types that are not listed and got nothing for some time."""
    before = transaction.now - timedelta(seconds=living.older_than)
    found = []
    for row in transaction.each(_HOLDERS):
        listed = living.uuids.get(row.type or UNKNOWN_TYPE)
        if listed is None or row.uuid in listed:
            continue
        # A record without a time is from before times were written.
        if row.newest is None or row.newest < before:
            found.append({"consumer": row.uuid, "consumer_generation": row.generation})
    return Findings.of(found, limit)
