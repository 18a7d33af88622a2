# SPDX-License-Identifier: Apache-2.0
"""Columns of a query as JSON arrays, which the database serializes and one call parses.

A driver creates several objects for each row, for which a driver in Python needs ten microseconds.
A million rows are read ten times as fast if the database serializes each column into one text.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from treeclaim.store.database.functions import JsonColumn, JsonRow
from treeclaim.store.database.transactions import ReadTransaction


def as_columns(rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query for one row, with each column of a query as the text of a JSON array."""
    inner = rows.subquery("some_rows")
    arrays: list[sa.ColumnElement[Any]] = [
        JsonColumn(column).label(column.name) for column in inner.c
    ]
    return sa.select(*arrays)


def as_rows(name: str, rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query for the rows of another query: a name, and the row as the text of a JSON array.

    A UNION can combine such queries of different columns. For an aggregate over texts MariaDB would create a
    temporary table on its disk, which may be full.
    """
    name_and_row: list[sa.ColumnElement[Any]] = [
        sa.literal_column(f"'{name}'").label("name"),
        JsonRow(*rows.selected_columns).label("row"),
    ]
    return rows.with_only_columns(*name_and_row, maintain_column_froms=True)


def group_rows(rows: Iterable[Sequence[str]]) -> Mapping[str, list[list[Any]]]:
    """Return the rows of queries made by `as_rows`, by their names; an empty list for a name without rows."""
    by_name: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for name, text in rows:
        by_name[name].append(orjson.loads(text))
    return by_name


def columns(
    transaction: ReadTransaction, statement: sa.Select[Any], **values: Any
) -> dict[str, list[Any]]:
    """Execute a query made by `as_columns`, and return the columns by name; empty lists without rows."""
    row = transaction.row(statement, **values)
    texts = row._mapping.items()  # noqa: SLF001 - the public name of SQLAlchemy
    return {name: orjson.loads(text or "[]") for name, text in texts}
