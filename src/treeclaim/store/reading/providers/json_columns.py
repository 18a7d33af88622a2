# SPDX-License-Identifier: Apache-2.0
"""Rows and columns of queries as JSON arrays, which the database serializes and one call parses.

A driver creates several objects for each row, for which a driver in Python needs ten microseconds.
A million rows are read ten times as fast if the database serializes each column into one text.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from treeclaim.store.database.transactions import ReadTransaction

Expressions = Mapping[str, str]
"""SQL of the columns of a query, by their names; `PLAIN(...)` around each text (`store/database/compiled.py`)."""


def as_columns(expressions: Expressions, rows: str) -> str:
    """Return a query for one row, with each column of a query as the text of a JSON array.

    `rows` is the SQL of the query from its FROM on.
    """
    arrays = ", ".join(f"JSON_COLUMN({name}) AS {name}" for name in expressions)
    named_columns = ", ".join(f"{sql} AS {name}" for name, sql in expressions.items())
    return f"SELECT {arrays} FROM (SELECT {named_columns} {rows}) some_rows"


def as_rows(name: str, expressions: Expressions, rows: str) -> str:
    """Return a query for the rows of another query: a name, and the row as the text of a JSON array.

    A UNION can combine such queries of different columns. For an aggregate over texts MariaDB would create a
    temporary table on its disk, which may be full.
    """
    return (
        f"SELECT '{name}' AS name, JSON_ROW({', '.join(expressions.values())}) AS row_text {rows}"
    )


def group_rows(rows: Iterable[Sequence[str]]) -> Mapping[str, list[list[Any]]]:
    """Return the rows of queries made by `as_rows`, by their names; an empty list for a name without rows."""
    by_name: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for name, text in rows:
        by_name[name].append(orjson.loads(text))
    return by_name


def columns(transaction: ReadTransaction, statement: str, **values: Any) -> dict[str, list[Any]]:
    """Execute a query made by `as_columns`, and return the columns by name; empty lists without rows."""
    texts = transaction.row(statement, **values)._asdict()
    return {name: orjson.loads(text or "[]") for name, text in texts.items()}
