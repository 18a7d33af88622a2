# SPDX-License-Identifier: Apache-2.0
"""Loads the whole inventory as arrays, in ranges of some thousand providers."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.model.provider import is_attribute_name
from treeclaim.model.whole import (
    NO_ATTRIBUTE_ROWS,
    AttributeRows,
    ConsumptionColumns,
    InventoryColumns,
    Links,
    Numbers,
    Seconds,
    WholeInventory,
)
from treeclaim.store.database.transactions import ReadTransaction, chunks
from treeclaim.store.reading.providers import parts
from treeclaim.store.reading.providers.json_columns import as_columns, columns
from treeclaim.store.reading.providers.parts import parse_attribute, read_condition

Arrays = Mapping[str, npt.NDArray[Any]]
"""Columns of a query by name."""

_PROVIDERS_AT_ONCE = 5_000
"""Providers in one statement: a few megabytes, so that round trips are negligible."""

_PROVIDERS_WITH_ATTRIBUTES = 250
"""Providers in one statement for attributes: the database serializes at most about 50 MB into one text."""

_BEFORE_ALL = -(2**31)
"""Value below the id of any provider."""

_MICROSECONDS = 1e6
_RANGE = "{id} > :after AND {id} <= :last"
_PROVIDERS = as_columns(
    parts.PROVIDERS.expressions,
    f"{parts.PROVIDERS.select('{id} > :after')} ORDER BY id LIMIT :most",
)
_INVENTORIES, _USAGE, _CONSUMPTION, _TRAITS, _AGGREGATES, _ATTRIBUTES = (
    as_columns(part.expressions, part.select(_RANGE))
    for part in (
        parts.INVENTORIES,
        parts.USAGE,
        parts.CONSUMPTION,
        parts.TRAITS,
        parts.AGGREGATE_IDS,
        parts.ATTRIBUTES,
    )
)
_ANY_ATTRIBUTE = "SELECT resource_provider_id FROM treeclaim_attributes LIMIT 1"
_CONDITIONS = "SELECT * FROM treeclaim_conditions"
_AGGREGATE_NAMES = "SELECT id, uuid FROM placement_aggregates WHERE uuid IS NOT NULL"


def load_whole_inventory(
    transaction: ReadTransaction, *, has_own_tables: bool = True
) -> WholeInventory:
    """Load all providers with all parts; without `has_own_tables`, only the parts in Placement's tables."""
    arrays = _load_ranges(transaction, has_own_tables=has_own_tables)
    providers = dict(arrays[parts.PROVIDERS.name])
    del providers["root_id"]
    traits = arrays[parts.TRAITS.name]
    links = {
        parts.TRAITS.name: Links(traits["provider_id"], traits["other"]),
        parts.AGGREGATES.name: _link_aggregates(transaction, arrays[parts.AGGREGATES.name]),
    }
    inventory = WholeInventory(
        name=providers.pop("name").tolist(),
        inventories=InventoryColumns(**arrays[parts.INVENTORIES.name]),
        links=links,
        attributes=_load_attributes(transaction, providers["id"])
        if has_own_tables
        else NO_ATTRIBUTE_ROWS,
        consumption=ConsumptionColumns(**arrays[parts.CONSUMPTION.name])
        if has_own_tables
        else ConsumptionColumns.none(),
        **providers,
    )
    if has_own_tables:
        links[parts.CONDITIONS.name] = _load_conditions(transaction)
    return inventory


def _load_ranges(transaction: ReadTransaction, *, has_own_tables: bool) -> Mapping[str, Arrays]:
    """Load ranges of providers, in order of ids; return the columns by part name."""
    statements = {parts.TRAITS.name: _TRAITS, parts.AGGREGATES.name: _AGGREGATES}
    if has_own_tables:
        statements[parts.CONSUMPTION.name] = _CONSUMPTION
    ranges: defaultdict[str, list[Arrays]] = defaultdict(list)
    previous_id = _BEFORE_ALL
    while True:
        providers = _load_arrays(
            transaction, _PROVIDERS, after=previous_id, most=_PROVIDERS_AT_ONCE
        )
        order = np.argsort(providers["id"])
        if ranges and not len(order):
            return {part: _concatenate(arrays) for part, arrays in ranges.items()}
        last_id = int(providers["id"][order[-1]]) if len(order) else previous_id
        ranges[parts.PROVIDERS.name].append(
            {name: array[order] for name, array in providers.items()}
        )
        ranges[parts.INVENTORIES.name].append(_load_inventories(transaction, previous_id, last_id))
        for part, statement in statements.items():
            ranges[part].append(
                _load_arrays(transaction, statement, after=previous_id, last=last_id)
            )
        previous_id = last_id


def _load_inventories(transaction: ReadTransaction, previous_id: int, last_id: int) -> Arrays:
    inventories = _load_arrays(transaction, _INVENTORIES, after=previous_id, last=last_id)
    usage = columns(transaction, _USAGE, after=previous_id, last=last_id)
    units_by_key = dict(
        zip(zip(usage["provider_id"], usage["class_id"], strict=True), usage["used"], strict=True)
    )
    pairs = zip(inventories["provider_id"].tolist(), inventories["class_id"].tolist(), strict=True)
    amounts = (
        [units_by_key.get(pair, 0) for pair in pairs]
        if units_by_key
        else [0] * len(inventories["class_id"])
    )
    return {**inventories, "used": np.array(amounts, dtype=np.int64)}


def _load_arrays(transaction: ReadTransaction, statement: str, **values: Any) -> Arrays:
    """Load the columns of a query, as int64 unless `_CONVERSIONS` has another conversion."""
    return {
        name: _CONVERSIONS[name](column)
        if name in _CONVERSIONS
        else np.array(column, dtype=np.int64)
        for name, column in columns(transaction, statement, **values).items()
    }


def _convert_times(times: Sequence[str | None]) -> Seconds:
    """Convert times, naive UTC in ISO format, to seconds since the epoch; 0 for None."""
    moments = np.array(times, dtype="datetime64[us]")
    seconds: Seconds = np.where(
        np.isnat(moments), 0.0, moments.astype(np.int64).astype(np.float64) / _MICROSECONDS
    )
    return seconds


def _encode_uuids(texts: Sequence[str]) -> npt.NDArray[np.bytes_]:
    return np.array([text.encode() for text in texts], dtype="S36")


_CONVERSIONS: Mapping[str, Callable[[Sequence[Any]], npt.NDArray[Any]]] = {
    "uuid": _encode_uuids,
    "name": lambda names: np.array(names, dtype=np.object_),
    "allocation_ratio": lambda ratios: np.array(ratios, dtype=np.float64),
    "modified_at": _convert_times,
}


def _concatenate(arrays: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([array[name] for array in arrays]) for name in arrays[0]}


def _link_aggregates(transaction: ReadTransaction, arrays: Arrays) -> Links:
    uuids = dict(tuple(row) for row in transaction.rows(_AGGREGATE_NAMES))
    is_known = np.isin(arrays["other"], np.array(list(uuids), dtype=np.int64))
    return Links(arrays["provider_id"][is_known], arrays["other"][is_known], uuids)


def _load_conditions(transaction: ReadTransaction) -> Links:
    rows = transaction.rows(_CONDITIONS)
    conditions = [read_condition(row) for row in rows]
    numbers = {condition: number for number, condition in enumerate(sorted(set(conditions)))}
    return Links(
        np.array([row.resource_provider_id for row in rows], dtype=np.int64),
        np.array([numbers[condition] for condition in conditions], dtype=np.int64),
        {number: condition for condition, number in numbers.items()},
    )


def _load_attributes(transaction: ReadTransaction, ids: Numbers) -> AttributeRows:
    """Load the valid attributes of providers with these ids, in ascending order."""
    if transaction.row(_ANY_ATTRIBUTE) is None:
        return NO_ATTRIBUTE_ROWS
    names: dict[str, int] = {}
    texts: dict[str, int] = {}
    pages = [(_EMPTY, _EMPTY, _EMPTY)]
    previous_id = _BEFORE_ALL
    for batch in chunks(ids.tolist(), _PROVIDERS_WITH_ATTRIBUTES):
        page = columns(transaction, _ATTRIBUTES, after=previous_id, last=batch[-1])
        page_ids = np.array(page["provider_id"], dtype=np.int64)
        pages.append(
            (page_ids, _number_texts(page["name"], names), _number_texts(page["value"], texts))
        )
        previous_id = batch[-1]
    provider_id, name, value = map(np.concatenate, zip(*pages, strict=True))
    values = [parse_attribute(text) for text in texts]
    is_name = np.array([is_attribute_name(name) for name in names], dtype=np.bool_)
    is_value = np.array([value is not None for value in values], dtype=np.bool_)
    is_valid = is_name[name] & is_value[value]
    return AttributeRows(
        provider_id[is_valid],
        name[is_valid],
        value[is_valid],
        list(names),
        [False if value is None else value for value in values],
    )


_EMPTY: Numbers = np.zeros(0, dtype=np.int64)


def _number_texts(texts: Sequence[str], number_by_text: dict[str, int]) -> Numbers:
    return np.array(
        [number_by_text.setdefault(text, len(number_by_text)) for text in texts], dtype=np.int64
    )
