# SPDX-License-Identifier: Apache-2.0
"""Attributes of providers: how they are stored, and how those of all are loaded.

Each is a row with its value in JSON of ASCII characters, which every database takes as text. As texts,
1, true and "1" are different, whatever Python or a collation thinks of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import orjson
import sqlalchemy as sa

from treeclaim.model.attributes import (
    Attributes,
    AttributeValue,
    is_attribute_name,
    is_attribute_value,
)
from treeclaim.model.whole import AttributeRows, Numbers
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.providers.json_columns import as_columns, columns
from treeclaim.store.schema.tables import attributes

_AT_ONCE = 20_000
"""Rows in one statement, far more than a provider has: of the longest values some 70 MB, which the database
writes into one text."""

_BEFORE_ALL = -(2**31)
"""Less than the id of any provider."""

_ALL = (
    sa.select(
        attributes.c.resource_provider_id.label("provider_id"),
        attributes.c.name,
        attributes.c.value,
    )
    .where(attributes.c.resource_provider_id > sa.bindparam("after"))
    .order_by(attributes.c.resource_provider_id)
)
_PAGE = as_columns(_ALL.limit(_AT_ONCE))


def value_in(text: str) -> AttributeValue | None:
    """Return the value that a row has; None for what is none, which a stranger wrote."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if is_attribute_value(value) else None


def attributes_in(rows: Iterable[tuple[str, str]]) -> Attributes:
    """Return the attributes of a provider, given names and texts; what is none is left out."""
    values = {name: value_in(text) for name, text in rows if is_attribute_name(name)}
    return {name: value for name, value in values.items() if value is not None}


def whole_attributes(transaction: ReadTransaction) -> AttributeRows:
    """Load the attributes of all providers; where there are none, by one statement.

    Raises:
        DBAPIError: what the database would not do.
    """
    names: dict[str, int] = {}
    texts: dict[str, int] = {}
    pages: list[tuple[Numbers, Numbers, Numbers]] = []
    after = _BEFORE_ALL
    while True:
        found = columns(transaction, _PAGE, after=after)
        ids = np.array(found.provider_id, dtype=np.int64)
        if not len(ids):
            break
        after, is_whole = _end_of_page(ids)
        page = (ids, _numbered(found.name, names), _numbered(found.value, texts))
        pages.append((page[0][is_whole], page[1][is_whole], page[2][is_whole]))
        if len(ids) < _AT_ONCE:
            break
    empty = np.zeros(0, dtype=np.int64)
    provider_id, name, value = (
        np.concatenate([empty, *(page[at] for page in pages)]) for at in range(3)
    )
    return _readable(AttributeRows(provider_id, name, value, list(names), list(texts)))


def _end_of_page(ids: Numbers) -> tuple[int, Any]:
    """Return the last provider of a page whose rows are complete, and those rows.

    Of the last one on a full page some may be missing; it is read again with the next page.
    """
    last = int(ids.max())
    if len(ids) < _AT_ONCE or int(ids.min()) == last:
        return last, np.ones(len(ids), dtype=np.bool_)
    is_whole = ids < last
    return int(ids[is_whole].max()), is_whole


def _numbered(texts: Sequence[str], known: dict[str, int]) -> Numbers:
    """Return the number of each text, after those that are known."""
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)


def _readable(rows: AttributeRows) -> AttributeRows:
    """Return rows that have texts for values with the values, without what is none."""
    values = [value_in(str(text)) for text in rows.values]
    is_name = np.array([is_attribute_name(name) for name in rows.names], dtype=np.bool_)
    is_value = np.array([value is not None for value in values], dtype=np.bool_)
    is_good = is_name[rows.name] & is_value[rows.value]
    return AttributeRows(
        rows.provider_id[is_good],
        rows.name[is_good],
        rows.value[is_good],
        rows.names,
        [False if value is None else value for value in values],
    )
