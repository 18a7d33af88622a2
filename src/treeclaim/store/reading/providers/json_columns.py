# SPDX-License-Identifier: Apache-2.0
"""Columns of a query as JSON arrays, which the database writes and one call reads.

A driver makes several objects of each row, and those written in Python take ten microseconds for
it. A million rows are read ten times as fast if the database puts each column into one text.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from treeclaim.store.database.transactions import ReadTransaction


class JsonColumn(GenericFunction[str]):
    """An aggregate: the values of a column as a JSON array."""

    type = sa.Text()
    inherit_cache = True
    name = "json_column"


@compiles(JsonColumn)
def _of_sqlite(element: JsonColumn, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_array({compiler.process(element.clauses, **options)})"


@compiles(JsonColumn, "postgresql")
def _of_postgresql(element: JsonColumn, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_agg({compiler.process(element.clauses, **options)})"


@compiles(JsonColumn, "mysql")
def _of_mariadb(element: JsonColumn, compiler: SQLCompiler, **options: Any) -> str:
    (column,) = element.clauses.clauses
    return f"JSON_ARRAYAGG({_utf8(column, compiler, options)})"


class JsonRow(GenericFunction[str]):
    """A row as a JSON array."""

    type = sa.Text()
    inherit_cache = True
    name = "json_row"


@compiles(JsonRow)
def _row_of_sqlite(element: JsonRow, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array({compiler.process(element.clauses, **options)})"


@compiles(JsonRow, "postgresql")
def _row_of_postgresql(element: JsonRow, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_build_array({compiler.process(element.clauses, **options)})"


@compiles(JsonRow, "mysql")
def _row_of_mariadb(element: JsonRow, compiler: SQLCompiler, **options: Any) -> str:
    texts = (_utf8(column, compiler, options) for column in element.clauses.clauses)
    return f"JSON_ARRAY({', '.join(texts)})"


def _utf8(column: sa.ColumnElement[Any], compiler: SQLCompiler, options: Any) -> str:
    """Return a column for JSON of MariaDB.

    The server copies the bytes of a column in latin1 into JSON that it declares to be UTF-8, and refuses
    columns of different collations in one array.
    """
    text = compiler.process(column, **options)
    if isinstance(column.type, sa.String):
        return f"CONVERT({text} USING utf8mb4) COLLATE utf8mb4_bin"
    return text


class ExactText(GenericFunction[str]):
    """A floating-point number with all its digits, as the driver would give it."""

    type = sa.String()
    inherit_cache = True
    name = "exact_text"


@compiles(ExactText)
def _exactly(element: ExactText, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS CHAR(40))"


@compiles(ExactText, "postgresql")
def _exactly_by_postgresql(element: ExactText, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS TEXT)"


@compiles(ExactText, "sqlite")
def _exactly_by_sqlite(element: ExactText, compiler: SQLCompiler, **options: Any) -> str:
    # A cast, or JSON, would keep fifteen digits.
    return f"printf('%!.17g', {compiler.process(element.clauses, **options)})"


class JsonText(GenericFunction[str]):
    """A JSON value as text; PostgreSQL's driver would read JSON by a slower parser."""

    type = sa.Text()
    inherit_cache = True
    name = "json_text"


@compiles(JsonText)
def _as_it_is(element: JsonText, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(JsonText, "postgresql")
def _as_text(element: JsonText, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS TEXT)"


def as_columns(rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query for one row, with each column of a query as the text of a JSON array."""
    inner = rows.subquery("some_rows")
    arrays: list[sa.ColumnElement[Any]] = [
        JsonText(JsonColumn(column)).label(column.name) for column in inner.c
    ]
    return sa.select(*arrays)


def as_rows(name: str, rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query for the rows of another query: a name, and the row as the text of a JSON array.

    Such queries of unlike columns can be sent as one. An aggregate over their rows would be shorter, but for texts
    MariaDB makes a temporary table on its disk, which may be full.
    """
    name_and_row: list[sa.ColumnElement[Any]] = [
        sa.literal_column(f"'{name}'").label("name"),
        JsonText(JsonRow(*rows.selected_columns)).label("row"),
    ]
    return rows.with_only_columns(*name_and_row, maintain_column_froms=True)


def rows_by_name(rows: Iterable[Sequence[str]]) -> Mapping[str, list[list[Any]]]:
    """Return the rows of queries made by `as_rows`, by their names; an empty list for a name without rows."""
    by_name: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for name, text in rows:
        by_name[name].append(orjson.loads(text))
    return by_name


def columns(transaction: ReadTransaction, statement: sa.Select[Any], **values: Any) -> Any:
    """Return the columns that a query made by `as_columns` gives; empty lists for no rows."""
    row = transaction.row(statement, **values)
    return _Columns(row)


class _Columns:
    """Lists of values by column name; all have the same order."""

    def __init__(self, row: Any) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Sequence[Any]:
        text = getattr(self._row, name)
        values: Sequence[Any] = [] if text is None else orjson.loads(text)
        return values
