# SPDX-License-Identifier: Apache-2.0
"""Columns of a query as JSON arrays, which the database writes and one call reads.

A driver makes several objects of each row, and those written in Python take ten microseconds for
it. A million rows are read ten times as fast if the database puts each column into one text.
"""

from collections.abc import Sequence
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


class JsonRows(GenericFunction[str]):
    """An aggregate: rows as a JSON array of arrays."""

    type = sa.Text()
    inherit_cache = True
    name = "json_rows"


@compiles(JsonRows)
def _rows_of_sqlite(element: JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_array(json_array({compiler.process(element.clauses, **options)}))"


@compiles(JsonRows, "postgresql")
def _rows_of_postgresql(element: JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_agg(json_build_array({compiler.process(element.clauses, **options)}))"


@compiles(JsonRows, "mysql")
def _rows_of_mariadb(element: JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    texts = (_utf8(column, compiler, options) for column in element.clauses.clauses)
    return f"JSON_ARRAYAGG(JSON_ARRAY({', '.join(texts)}))"


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


def as_table(name: str, rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query for one row: a name, and all rows of a query as one text for `rows_in`."""
    inner = rows.subquery("some_rows")
    name_and_rows: list[sa.ColumnElement[Any]] = [
        sa.literal_column(f"'{name}'").label("name"),
        JsonText(JsonRows(*inner.c)).label("rows"),
    ]
    return sa.select(*name_and_rows)


def rows_in(text: str | None) -> list[list[Any]]:
    """Return the rows of a query of `as_table`; PostgreSQL and MariaDB have no text where there are none."""
    rows: list[list[Any]] = [] if text is None else orjson.loads(text)
    return rows


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
