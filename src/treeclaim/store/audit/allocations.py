# SPDX-License-Identifier: Apache-2.0
"""Findings about allocations against inventories and consumers, and about consumers that no longer exist."""

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from treeclaim.model.extension.audit import Findings, Living
from treeclaim.model.inventory import Inventory
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.store.audit.holds import HOLDS
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.inventories import CONSUMES, INVENTORY_COLUMNS
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    consumption,
    draws,
    inventories,
    resource_classes,
    resource_providers,
)

_USES = sa.union_all(
    sa.select(
        allocations.c.resource_provider_id, allocations.c.resource_class_id, allocations.c.used
    ),
    # What is consumed is used too (contract page 102, section 2).
    sa.select(
        consumption.c.consumed_provider_id,
        consumption.c.consumed_class_id,
        allocations.c.used * consumption.c.amount,
    ).join(allocations, CONSUMES),
).subquery("uses")
_USED = (
    sa.select(
        _USES.c.resource_provider_id,
        _USES.c.resource_class_id,
        sa.func.sum(_USES.c.used).label("used"),
    )
    .group_by(_USES.c.resource_provider_id, _USES.c.resource_class_id)
    .subquery("sums")
)
_USED_INVENTORIES = (
    sa.select(resource_providers.c.uuid, resource_classes.c.name, _USED.c.used, *INVENTORY_COLUMNS)
    .select_from(inventories)
    .join(
        _USED,
        sa.and_(
            _USED.c.resource_provider_id == inventories.c.resource_provider_id,
            _USED.c.resource_class_id == inventories.c.resource_class_id,
        ),
    )
    .join(resource_providers, resource_providers.c.id == inventories.c.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .order_by(inventories.c.id)
)
_OF_INVENTORY = sa.and_(
    inventories.c.resource_provider_id == allocations.c.resource_provider_id,
    inventories.c.resource_class_id == allocations.c.resource_class_id,
)
_RECORDS = (
    sa.select(
        allocations.c.consumer_id,
        resource_providers.c.uuid,
        resource_classes.c.name,
        allocations.c.used,
    )
    .select_from(allocations)
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
)
_AGAINST_UNITS = _RECORDS.join(inventories, _OF_INVENTORY).where(
    # Units concern no hold.
    allocations.c.consumer_id.not_in(HOLDS),
    sa.or_(
        allocations.c.used < inventories.c.min_unit,
        allocations.c.used > inventories.c.max_unit,
        allocations.c.used % inventories.c.step_size != 0,
    ),
)
_WITHOUT_INVENTORY = _RECORDS.outerjoin(inventories, _OF_INVENTORY).where(
    inventories.c.id.is_(None)
)
_WITHOUT_CONSUMER = (
    sa.select(allocations.c.consumer_id)
    .select_from(allocations.outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id))
    .where(consumers.c.id.is_(None))
    .distinct()
    .order_by(allocations.c.consumer_id)
)
_EMPTY = (
    sa.select(consumers.c.uuid)
    .select_from(consumers.outerjoin(allocations, allocations.c.consumer_id == consumers.c.uuid))
    .where(
        allocations.c.id.is_(None),
        sa.or_(
            consumers.c.uuid.not_in(HOLDS),
            consumers.c.uuid.not_in(sa.select(draws.c.hold_uuid)),
        ),
    )
    .order_by(consumers.c.uuid)
)
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


def over_capacity(transaction: ReadTransaction, limit: int) -> Findings:
    """Find inventories that are used beyond their capacity."""
    found = []
    for uuid, name, used, *amounts in transaction.each(_USED_INVENTORIES):
        capacity = max(Inventory(*amounts).whole_capacity, 0)
        if used > capacity:
            found.append(
                {
                    "provider": uuid,
                    "resource_class": name,
                    "capacity": capacity,
                    "used": int(used),
                }
            )
    return Findings.of(found, limit)


def against_units(transaction: ReadTransaction, limit: int) -> Findings:
    """Find allocations of amounts that their inventory would not give any more."""
    return _records(transaction, _AGAINST_UNITS, limit)


def without_inventory(transaction: ReadTransaction, limit: int) -> Findings:
    """Find allocations of classes that their provider has not."""
    return _records(transaction, _WITHOUT_INVENTORY, limit)


def without_consumer(transaction: ReadTransaction, limit: int) -> Findings:
    """Find consumers that hold something and have no record."""
    return _consumers(transaction, _WITHOUT_CONSUMER, limit)


def empty_consumer(transaction: ReadTransaction, limit: int) -> Findings:
    """Find records of consumers that hold nothing."""
    return _consumers(transaction, _EMPTY, limit)


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


def _records(transaction: ReadTransaction, statement: sa.Select[Any], limit: int) -> Findings:
    count = _count(transaction, statement)
    rows = transaction.rows(statement.order_by(allocations.c.id).limit(limit)) if count else ()
    return Findings(
        count,
        [
            {"consumer": consumer, "provider": provider, "resource_class": name, "used": used}
            for consumer, provider, name, used in rows
        ],
    )


def _consumers(transaction: ReadTransaction, statement: sa.Select[Any], limit: int) -> Findings:
    count = _count(transaction, statement.order_by(None))
    rows = transaction.rows(statement.limit(limit)) if count else ()
    return Findings(count, [{"consumer": uuid} for (uuid,) in rows])


def _count(transaction: ReadTransaction, statement: sa.Select[Any]) -> int:
    return int(transaction.scalar(sa.select(sa.func.count()).select_from(statement.subquery())))
