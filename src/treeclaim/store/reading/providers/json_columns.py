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

from treeclaim.store.database.dialects.systems import system_of
from treeclaim.store.database.transactions import ReadTransaction


class JsonColumn(GenericFunction[str]):
    """An aggregate: the values of a column as the text of a JSON array."""

    type = sa.Text()
    inherit_cache = True
    name = "json_column"


@compiles(JsonColumn)
def _of_sqlite(element: JsonColumn, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_array({compiler.process(element.clauses, **options)})"


@compiles(JsonColumn, "postgresql")
def _of_postgresql(element: JsonColumn, compiler: SQLCompiler, **options: Any) -> str:
    # As text, or the driver would read it by a slower parser.
    return f"CAST(json_agg({compiler.process(element.clauses, **options)}) AS TEXT)"


@compiles(JsonColumn, "mysql")
def _of_mariadb(element: JsonColumn, compiler: SQLCompiler, **options: Any) -> str:
    text = compiler.process(element.clauses, **options)
    (column,) = element.clauses.clauses
    if isinstance(column.type, sa.String):
        # The server copies the bytes of a column in latin1 into JSON that it declares to be UTF-8.
        text = f"CONVERT({text} USING utf8mb4)"
    return f"JSON_ARRAYAGG({text})"


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


def as_columns(rows: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query for one row, with all columns of a query as the texts of JSON arrays."""
    inner = rows.subquery("some_rows")
    arrays: list[sa.ColumnElement[Any]] = [
        JsonColumn(column).label(column.name) for column in inner.c
    ]
    return sa.select(*arrays)


def allow_long_columns(transaction: ReadTransaction) -> None:
    """Let the database write long arrays, for the rest of the session.

    Raises:
        DBAPIError: as for any statement.
    """
    system_of(transaction.connection).allow_long_texts(transaction.connection)


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
        found: Sequence[Any] = [] if text is None else orjson.loads(text)
        return found
