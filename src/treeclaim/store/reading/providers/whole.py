# SPDX-License-Identifier: Apache-2.0
"""Loads the whole inventory as arrays, some thousand providers at a time, in one snapshot."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
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

Arrays = Mapping[str, npt.NDArray[Any]]
"""Columns of a query by their names."""

_AT_ONCE = 5_000
"""Providers in one statement: enough that a round trip does not count, and a few megabytes."""

_AFTER: sa.BindParameter[int] = sa.bindparam("after")
_LAST: sa.BindParameter[int] = sa.bindparam("last")
_MICROSECONDS = 1e6


def _modified(table: sa.Table) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(table.c.updated_at, table.c.created_at).label("modified_at")


def _between(statement: sa.Select[Any], provider_id: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return as_columns(statement.where(provider_id > _AFTER, provider_id <= _LAST))


_ALL_PROVIDERS = (
    sa.select(
        resource_providers.c.id,
        resource_providers.c.uuid,
        sa.func.coalesce(resource_providers.c.name, "").label("name"),
        sa.func.coalesce(resource_providers.c.generation, 0).label("generation"),
        sa.func.coalesce(resource_providers.c.parent_provider_id, NO_PARENT).label("parent_id"),
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
    loaded = _load_pieces(transaction, has_own_tables=has_own_tables)
    providers = dict(loaded[_OF_PROVIDERS])
    return WholeInventory(
        name=providers.pop("name").tolist(),
        inventories=InventoryColumns(**loaded[_OF_INVENTORIES]),
        links={
            linked.part.name: _named_links(transaction, linked, loaded)
            for linked in LINKED
            if has_own_tables or linked.whole is None
        },
        attributes=whole_attributes(transaction) if has_own_tables else NO_ATTRIBUTE_ROWS,
        consumption=ConsumptionColumns(**loaded[_OF_CONSUMPTION])
        if has_own_tables
        else ConsumptionColumns.none(),
        **providers,
    )


_BEFORE_ALL = -(2**31)
"""Less than the id of any provider."""

_OF_PROVIDERS, _OF_INVENTORIES, _OF_CONSUMPTION = "providers", "inventories", "consumption"


def _load_pieces(transaction: ReadTransaction, *, has_own_tables: bool) -> Mapping[str, Arrays]:
    """Load some providers after the other, in order of their ids; return the columns of each part.

    The parts are those of `_LINKS` and the three above.
    """
    pieces: defaultdict[str, list[Arrays]] = defaultdict(list)
    after = _BEFORE_ALL
    while True:
        providers = _load_arrays(transaction, _PROVIDERS, after=after)
        order = np.argsort(providers["id"])
        if pieces and not len(order):
            return {part: _joined(arrays) for part, arrays in pieces.items()}
        last = int(providers["id"][order[-1]]) if len(order) else after
        pieces[_OF_PROVIDERS].append({name: array[order] for name, array in providers.items()})
        pieces[_OF_INVENTORIES].append(_load_inventories(transaction, after, last))
        statements = _LINKS | ({_OF_CONSUMPTION: _CONSUMPTION} if has_own_tables else {})
        for part, statement in statements.items():
            pieces[part].append(_load_arrays(transaction, statement, after=after, last=last))
        after = last


def _load_inventories(transaction: ReadTransaction, after: int, last: int) -> Arrays:
    found = _load_arrays(transaction, _INVENTORIES, after=after, last=last)
    usage = columns(transaction, _USAGE, after=after, last=last)
    used = dict(zip(zip(usage.provider_id, usage.class_id, strict=True), usage.used, strict=True))
    pairs = zip(found["provider_id"].tolist(), found["class_id"].tolist(), strict=True)
    amounts = [used.get(pair, 0) for pair in pairs] if used else [0] * len(found["provider_id"])
    return {**found, "used": np.array(amounts, dtype=np.int64)}


def _load_arrays(transaction: ReadTransaction, statement: sa.Select[Any], **values: Any) -> Arrays:
    """Load the columns of a query; those without an entry in `_CONVERSIONS` are whole numbers."""
    found = columns(transaction, statement, **values)
    names = [column.name for column in statement.selected_columns]
    return {
        name: _CONVERSIONS[name](getattr(found, name))
        if name in _CONVERSIONS
        else np.array(getattr(found, name), dtype=np.int64)
        for name in names
    }


def _seconds(times: Sequence[str | None]) -> Seconds:
    """Return times, naive UTC in ISO form, in seconds since the epoch; 0 for none."""
    moments = np.array(times, dtype="datetime64[us]")
    found: Seconds = np.where(
        np.isnat(moments), 0.0, moments.astype(np.int64).astype(np.float64) / _MICROSECONDS
    )
    return found


def _byte_strings(texts: Sequence[str]) -> npt.NDArray[np.bytes_]:
    return np.array([text.encode() for text in texts], dtype="S36")


_CONVERSIONS: Mapping[str, Callable[[Sequence[Any]], npt.NDArray[Any]]] = {
    "uuid": _byte_strings,
    "name": lambda names: np.array(names, dtype=np.object_),
    "allocation_ratio": lambda ratios: np.array(ratios, dtype=np.float64),
    "modified_at": _seconds,
}


def _joined(arrays: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([array[name] for array in arrays]) for name in arrays[0]}


def _named_links(
    transaction: ReadTransaction, linked: LoadedLinks, loaded: Mapping[str, Arrays]
) -> Links:
    """Return the links of a part, without those to an object that has no name."""
    if linked.whole is not None:
        return linked.whole(transaction)
    arrays = loaded[linked.part.name]
    links = Links(arrays["provider_id"], arrays["other"])
    if linked.names is None:
        return links
    names = dict(tuple(row) for row in transaction.rows(linked.names))
    is_known = np.isin(links.other, np.array(list(names), dtype=np.int64))
    return Links(links.provider_id[is_known], links.other[is_known], names)
