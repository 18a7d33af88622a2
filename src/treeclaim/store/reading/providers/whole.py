# SPDX-License-Identifier: Apache-2.0
"""Loads the whole inventory as arrays, some thousand providers at a time, in one snapshot."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import sqlalchemy as sa

from treeclaim.model.whole import (
    NO_ATTRIBUTE_ROWS,
    NO_PARENT,
    ConsumptionColumns,
    InventoryColumns,
    Links,
    Seconds,
    WholeInventory,
)
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.providers.attributes import whole_attributes
from treeclaim.store.reading.providers.json_columns import (
    ExactText,
    allow_long_columns,
    as_columns,
    columns,
)
from treeclaim.store.reading.providers.parts import LINKED, LoadedLinks
from treeclaim.store.schema.tables import (
    allocations,
    consumption,
    inventories,
    resource_providers,
)

_AT_ONCE = 5_000
"""Providers in one statement: enough that a round trip does not count, and a few megabytes."""

_AFTER: sa.BindParameter[int] = sa.bindparam("after")
_LAST: sa.BindParameter[int] = sa.bindparam("last")
_MICROSECONDS = 1e6


def _modified(table: sa.Table) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(table.c.updated_at, table.c.created_at).label("modified_at")


def _whole_number(column: sa.Column[Any], default: int = 0) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(column, default).label(column.name)


def _between(statement: sa.Select[Any], provider_id: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return as_columns(statement.where(provider_id > _AFTER, provider_id <= _LAST))


_ALL_PROVIDERS = (
    sa.select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        sa.func.coalesce(resource_providers.c.name, "").label("name"),
        _whole_number(resource_providers.c.generation),
        _whole_number(resource_providers.c.parent_provider_id, NO_PARENT),
        _modified(resource_providers),
    )
    .where(resource_providers.c.id > _AFTER)
    .order_by(resource_providers.c.id)
)
_PROVIDERS = as_columns(_ALL_PROVIDERS.limit(_AT_ONCE))
_INVENTORIES = _between(
    sa.select(
        inventories.c.resource_provider_id.label("provider_id"),
        inventories.c.resource_class_id.label("class_id"),
        inventories.c.total,
        inventories.c.reserved,
        inventories.c.min_unit,
        inventories.c.max_unit,
        inventories.c.step_size,
        ExactText(inventories.c.allocation_ratio).label("allocation_ratio"),
        _modified(inventories),
    ),
    inventories.c.resource_provider_id,
)
_USAGE = _between(
    sa.select(
        allocations.c.resource_provider_id.label("provider_id"),
        allocations.c.resource_class_id.label("class_id"),
        sa.cast(sa.func.sum(allocations.c.used), sa.BigInteger).label("used"),
    ).group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id),
    allocations.c.resource_provider_id,
)
_CONSUMPTION = _between(
    sa.select(
        consumption.c.resource_provider_id.label("provider_id"),
        consumption.c.resource_class_id.label("class_id"),
        consumption.c.consumed_provider_id,
        consumption.c.consumed_class_id,
        consumption.c.amount,
    ),
    consumption.c.resource_provider_id,
)
_LINKS = {
    linked.part.name: _between(linked.links, linked.links.selected_columns.provider_id)
    for linked in LINKED
    if linked.links is not None
}


def whole_inventory(
    transaction: ReadTransaction, *, has_own_tables: bool = True
) -> WholeInventory:
    """Load all providers with their inventories, usage and all other parts.

    Args:
        transaction: The transaction.
        has_own_tables: Whether the database has Treeclaim's own tables; without them, the parts that
            they hold are empty.

    Raises:
        DBAPIError: what the database would not do.
    """
    allow_long_columns(transaction)
    pieces = list(_pieces(transaction, has_own_tables=has_own_tables))
    return WholeInventory(
        id=_joined([piece.id for piece in pieces], np.int64),
        uuid=_joined([piece.uuid for piece in pieces], "S36"),
        name=[name for piece in pieces for name in piece.name],
        generation=_joined([piece.generation for piece in pieces], np.int64),
        parent_id=_joined([piece.parent_id for piece in pieces], np.int64),
        modified_at=_joined([piece.modified_at for piece in pieces], np.float64),
        inventories=_all_inventories([piece.inventories for piece in pieces]),
        links={
            linked.part.name: _all_links(transaction, linked, pieces)
            for linked in LINKED
            if has_own_tables or linked.whole is None
        },
        attributes=whole_attributes(transaction) if has_own_tables else NO_ATTRIBUTE_ROWS,
        consumption=_joined_columns(ConsumptionColumns, [piece.consumption for piece in pieces]),
    )


def _pieces(transaction: ReadTransaction, *, has_own_tables: bool) -> Iterator[WholeInventory]:
    """Yield some providers after the other, in order of their ids."""
    after = _BEFORE_ALL
    while True:
        found = columns(transaction, _PROVIDERS, after=after)
        ids = np.array(found.id, dtype=np.int64)
        if not len(ids):
            return
        order = np.argsort(ids)
        names, uuids = found.name, found.uuid
        last = int(ids[order[-1]])
        yield WholeInventory(
            id=ids[order],
            uuid=np.array([uuids[at].encode() for at in order.tolist()], dtype="S36"),
            name=[names[at] for at in order.tolist()],
            generation=np.array(found.generation, dtype=np.int64)[order],
            parent_id=np.array(found.parent_provider_id, dtype=np.int64)[order],
            modified_at=_seconds(found.modified_at)[order],
            inventories=_inventories(transaction, after, last),
            links={
                name: _some_links(transaction, statement, after, last)
                for name, statement in _LINKS.items()
            },
            consumption=_consumption(transaction, after, last)
            if has_own_tables
            else ConsumptionColumns.none(),
        )
        after = last


_BEFORE_ALL = -(2**31)
"""Less than the id of any provider."""


def _inventories(transaction: ReadTransaction, after: int, last: int) -> InventoryColumns:
    found = columns(transaction, _INVENTORIES, after=after, last=last)
    usage = columns(transaction, _USAGE, after=after, last=last)
    provider_id = np.array(found.provider_id, dtype=np.int64)
    class_id = np.array(found.class_id, dtype=np.int64)
    used = dict(zip(zip(usage.provider_id, usage.class_id, strict=True), usage.used, strict=True))
    pairs = zip(provider_id.tolist(), class_id.tolist(), strict=True)
    return InventoryColumns(
        provider_id=provider_id,
        class_id=class_id,
        total=np.array(found.total, dtype=np.int64),
        reserved=np.array(found.reserved, dtype=np.int64),
        min_unit=np.array(found.min_unit, dtype=np.int64),
        max_unit=np.array(found.max_unit, dtype=np.int64),
        step_size=np.array(found.step_size, dtype=np.int64),
        allocation_ratio=np.array(found.allocation_ratio, dtype=np.float64),
        used=np.array([used.get(pair, 0) for pair in pairs], dtype=np.int64)
        if used
        else np.zeros(len(provider_id), dtype=np.int64),
        modified_at=_seconds(found.modified_at),
    )


def _consumption(transaction: ReadTransaction, after: int, last: int) -> ConsumptionColumns:
    found = columns(transaction, _CONSUMPTION, after=after, last=last)
    names = [name.name for name in fields(ConsumptionColumns)]
    return ConsumptionColumns(*(np.array(getattr(found, name), dtype=np.int64) for name in names))


def _some_links(
    transaction: ReadTransaction, statement: sa.Select[Any], after: int, last: int
) -> Links:
    found = columns(transaction, statement, after=after, last=last)
    return Links(
        np.array(found.provider_id, dtype=np.int64), np.array(found.other, dtype=np.int64)
    )


def _seconds(times: Sequence[str | None]) -> Seconds:
    """Return times, naive UTC in ISO form, in seconds since the epoch; 0 for none."""
    moments = np.array(times, dtype="datetime64[us]")
    found: Seconds = np.where(
        np.isnat(moments), 0.0, moments.astype(np.int64).astype(np.float64) / _MICROSECONDS
    )
    return found


def _joined(parts: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate([np.empty(0, dtype=dtype), *parts])


def _all_links(
    transaction: ReadTransaction, linked: LoadedLinks, pieces: Sequence[WholeInventory]
) -> Links:
    """Return all links of a part, without those to what has no name."""
    if linked.whole is not None:
        return linked.whole(transaction)
    some = [piece.links[linked.part.name] for piece in pieces]
    provider_id = _joined([links.provider_id for links in some], np.int64)
    other = _joined([links.other for links in some], np.int64)
    if linked.names is None:
        return Links(provider_id, other)
    names = dict(tuple(row) for row in transaction.rows(linked.names))
    is_known = np.isin(other, np.array(list(names), dtype=np.int64))
    return Links(provider_id[is_known], other[is_known], names)


def _joined_columns(kind: type[ConsumptionColumns], parts: Sequence[Any]) -> ConsumptionColumns:
    names = [name.name for name in fields(kind)]
    return kind(*(_joined([getattr(part, name) for part in parts], np.int64) for name in names))


def _all_inventories(parts: Sequence[InventoryColumns]) -> InventoryColumns:
    def joined(name: str, dtype: Any = np.int64) -> Any:
        return _joined([getattr(part, name) for part in parts], dtype)

    return InventoryColumns(
        provider_id=joined("provider_id"),
        class_id=joined("class_id"),
        total=joined("total"),
        reserved=joined("reserved"),
        min_unit=joined("min_unit"),
        max_unit=joined("max_unit"),
        step_size=joined("step_size"),
        allocation_ratio=joined("allocation_ratio", np.float64),
        used=joined("used"),
        modified_at=joined("modified_at", np.float64),
    )
