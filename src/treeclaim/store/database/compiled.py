# SPDX-License-Identifier: Apache-2.0
"""Statements in portable SQL, translated once to the SQL of each kind of database.

For a statement of a claim, SQLAlchemy's execution would cost more than the database's work. A list is one
parameter. Results have the values of the driver: on SQLite, times are text.

Portable SQL has these elements:

- `:uuid` is a parameter. `IN :uuids` takes a list; `NOT (column IN :uuids)` takes a non-empty list.
- `FOR UPDATE` and `FOR KEY SHARE` lock the returned rows.
- `JSON_ROW(...)` returns its arguments as the text of a JSON array.
- `JSON_COLUMN(...)` aggregates a column into the text of a JSON array.
- `PLAIN(column)` returns text in UTF-8 without its collation. The columns of an old database on MariaDB have
  various character sets. MariaDB refuses to mix them in one UNION (error 1271) or one array, and copies the bytes
  of a column in latin1 into JSON that it declares to be UTF-8.
- `EXACT(column)` returns a floating-point number with all its digits; a cast on SQLite, or JSON, keeps fifteen.
"""

import json
import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from treeclaim.store.database.driver import DriverStatement

Values = Mapping[str, Any]
"""Values of parameters by name; a list for a parameter of an `IN`."""

_MAX_CACHED = 1000
"""Cached statements of some kilobytes each: some hundred, multiplied by combinations of filters."""

_LOCKS = (" FOR UPDATE", " FOR KEY SHARE")
"""Locking clauses, as PostgreSQL writes them."""

_FUNCTIONS = (
    r"\bJSON_ROW\b",
    r"\bJSON_COLUMN\b",
    r"\bPLAIN\(([\w.]+)\)",
    r"\bEXACT\(([\w.]+)\)",
)


class CompiledStatement:
    """Portable SQL, or an INSERT of the bound values into a table; caches its translations; thread-safe."""

    def __init__(self, sql: str | None, table: sa.Table | None = None) -> None:
        self._sql = sql
        self._table = table
        self._translations: dict[tuple[object, ...], _Translation] = {}

    def bind(self, dialect: Dialect, values: Values) -> DriverStatement:
        """Return the driver's statement with these values."""
        translation = self._get_translation(dialect, values)
        return DriverStatement(
            translation.sql,
            translation.bind(values),
            translation.rows,
            is_locking=translation.is_locking,
        )

    def bind_each(self, dialect: Dialect, sets: Sequence[Values]) -> DriverStatement:
        """Return the driver's statement that executes once with each set of values."""
        translation = self._get_translation(dialect, sets[0])
        rows = [translation.bind(values) for values in sets]
        if len(rows) == 1:
            return DriverStatement(translation.sql, rows[0])
        if translation.array_sql is not None:
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            return DriverStatement(translation.array_sql, columns)
        return DriverStatement(translation.sql, rows, is_many=True)

    def _get_translation(self, dialect: Dialect, values: Values) -> "_Translation":
        # SQLite compares with a single value in half the time of a list.
        are_long = [
            isinstance(value, list | tuple) and len(value) > 1 for value in values.values()
        ]
        key = (dialect.name, *values, *are_long)
        translation = self._translations.get(key)
        if translation is None:
            translation = self._translations[key] = self._compile(dialect, values)
        return translation

    def _compile(self, dialect: Dialect, values: Values) -> "_Translation":
        sql, array_sql = self._sql, None
        if self._table is not None:
            into = f"INSERT INTO {self._table.name} ({', '.join(values)})"
            sql = f"{into} VALUES ({', '.join(f':{name}' for name in values)})"
            if dialect.name == "postgresql":
                array_sql = (
                    f"{into} SELECT * FROM unnest({_make_arrays(self._table, dialect, values)})"
                )
        return _translate(sql or "", array_sql, _STYLES[dialect.name], values)


@lru_cache(_MAX_CACHED)
def compile_text(sql: str) -> CompiledStatement:
    """Return the statement of portable SQL."""
    return CompiledStatement(sql)


def compile_insert(table: sa.Table) -> CompiledStatement:
    """Return an INSERT into the columns that the bound values name."""
    return CompiledStatement(None, table)


def _make_arrays(table: sa.Table, dialect: Dialect, names: Iterable[str]) -> str:
    types = {name: table.columns[name].type.compile(dialect) for name in names}
    return ", ".join(f"CAST(%({name})s AS {type_}[])" for name, type_ in types.items())


@dataclass(frozen=True, slots=True)
class _Style:
    """The SQL of a kind of database.

    Attributes:
        parameter: A named parameter, as the replacement of a match of its name.
        percent: An escaped percent sign.
        is_in: The comparison with a list parameter.
        convert_list: Converts such a list for the driver.
        locks: The clauses for `_LOCKS`; empty on SQLite, which has one writer at a time.
        functions: The replacements for `_FUNCTIONS`.
    """

    parameter: str
    percent: str
    is_in: str
    convert_list: Callable[[Any], Any]
    locks: tuple[str, str]
    functions: tuple[str, str, str, str]


_STYLES = {
    "sqlite": _Style(
        r":\1",
        "%",
        "IN (SELECT value FROM json_each({}))",
        json.dumps,
        ("", ""),
        ("json_array", "json_group_array", r"\1", r"printf('%!.17g', \1)"),
    ),
    "postgresql": _Style(
        r"%(\1)s",
        "%%",
        "= ANY({})",
        list,
        _LOCKS,
        ("json_build_array", "json_agg", r"\1", r"CAST(\1 AS TEXT)"),
    ),
    # These drivers write the list into the SQL.
    "mysql": _Style(
        r"%(\1)s",
        "%%",
        "IN {}",
        tuple,
        (" FOR UPDATE", " LOCK IN SHARE MODE"),
        (
            "JSON_ARRAY",
            "JSON_ARRAYAGG",
            r"CONVERT(\1 USING utf8mb4) COLLATE utf8mb4_bin",
            r"CAST(\1 AS CHAR(40))",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class _Translation:
    """The translation of a statement for a driver and names of values.

    Attributes:
        sql: SQL in the parameter style of the driver.
        convert_list: As `_Style.convert_list`.
        rows: Fetches the rows of a cursor as named tuples.
        array_sql: An INSERT on PostgreSQL that takes one array for each column; the driver would
            send one statement for each row.
        is_locking: Whether it is a query that locks the returned rows.
    """

    sql: str
    convert_list: Callable[[Any], Any]
    rows: Callable[[Any], list[Any]]
    array_sql: str | None
    is_locking: bool

    def bind(self, values: Values) -> dict[str, Any]:
        parameters = dict(values)
        for name, value in values.items():
            if isinstance(value, list | tuple):
                # An empty list becomes NULL, which equals no value.
                single = value[0] if value else None
                parameters[name] = self.convert_list(value) if len(value) > 1 else single
        return parameters


def _translate(sql: str, array_sql: str | None, style: _Style, values: Values) -> _Translation:
    for lock, native_lock in zip(_LOCKS, style.locks, strict=True):
        sql = sql.replace(lock, native_lock)
    is_locking = any(lock and lock in sql for lock in style.locks)
    sql = sql.replace("%", style.percent)
    for function, native_function in zip(_FUNCTIONS, style.functions, strict=True):
        sql = re.sub(function, native_function, sql)
    for name, value in values.items():
        if isinstance(value, list | tuple):
            is_in = style.is_in if len(value) > 1 else "IN ({})"
            sql = re.sub(rf"\bIN :{name}\b", is_in.format(f":{name}"), sql)
    sql = re.sub(r":(\w+)", style.parameter, sql)
    return _Translation(sql, style.convert_list, _make_fetch(), array_sql, is_locking)


def _make_fetch() -> Callable[[Any], list[Any]]:
    """Return a function that fetches the rows of cursors of one query as named tuples."""
    make: Callable[[Sequence[Any]], Any] | None = None

    def fetch(cursor: Any) -> list[Any]:
        nonlocal make
        if make is None:
            names = [column[0] for column in cursor.description]
            row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024
            make = row._make
        return list(map(make, cursor.fetchall()))

    return fetch
