# SPDX-License-Identifier: Apache-2.0
"""Statements that are compiled to SQL once, for claims and feed readers.

At each execution SQLAlchemy finds the compiled form, expands lists and sets up result types. For a
statement of a claim this costs more than the database's work. A `CompiledStatement` caches one SQL
text for each combination of list lengths. Lengths are rounded up to powers of two, so that few texts
exist; the last value of a list is repeated, which does not change an `IN`. The statement is compiled
once, which costs milliseconds, and each text expands its lists only. Results have the values of the
driver: times are text on SQLite, which `seconds` of `transactions.py` reads too.

A statement may be SQL of all databases, with parameters such as `:uuid`. `IN :uuids` takes a list.
"""

import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain, repeat
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Executable, TextClause
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement, Insert
from sqlalchemy.sql.compiler import SQLCompiler

from treeclaim.store.database.driver import DriverStatement

Values = Mapping[str, Any]
"""Values of parameters by name; a list for a parameter of an `IN`."""

_MOST_TEXTS = 1000
"""SQL texts kept for one statement, a kilobyte each; others are compiled again."""

_ROUNDED_UP = 4096
"""Longest list that is rounded up to a power of two: databases limit the number of parameters."""

_LOCKS = re.compile(r" FOR (?:NO KEY )?UPDATE| FOR (?:KEY )?SHARE| LOCK IN SHARE MODE")


class CompiledStatement:
    """A statement that caches its SQL after the first execution; thread-safe."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._forms: dict[tuple[object, ...], _Form] = {}
        self._texts: dict[tuple[object, ...], _Text] = {}

    def ready(self, dialect: Dialect, values: Values) -> DriverStatement:
        """Return the statement with these values, in the form of the driver."""
        text = self._text_for(dialect, values)
        form = text.form
        return DriverStatement(text.sql, text.bind(values), form.rows, is_locking=form.is_locking)

    def ready_each(self, dialect: Dialect, sets: Sequence[Values]) -> DriverStatement:
        """Return the statement for one execution with each set of values."""
        text = self._text_for(dialect, sets[0])
        rows = [text.bind(values) for values in sets]
        if len(rows) == 1:
            return DriverStatement(text.sql, rows[0])
        if text.form.array_sql is not None:
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            return DriverStatement(text.form.array_sql, columns)
        return DriverStatement(text.sql, rows, is_many=True)

    def _text_for(self, dialect: Dialect, values: Values) -> "_Text":
        """Return the SQL for these names of values and lengths of lists."""
        lengths = [
            _round_length(len(value)) if isinstance(value, (list, tuple)) else -1
            for value in values.values()
        ]
        names = (dialect.name, dialect.driver, *values)
        key = (*names, *lengths)
        text = self._texts.get(key)
        if text is None:
            form = self._forms.get(names)
            if form is None:
                form = self._forms[names] = _compile(self._statement, dialect, values)
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            text = self._texts[key] = _expand(form, values)
        return text


@cache
def compile_text(sql: str) -> CompiledStatement:
    """Return the statement of SQL."""
    return CompiledStatement(sa.text(sql))


def bind_list(name: str) -> sa.BindParameter[Any]:
    """Return a list parameter of an `IN`."""
    return sa.bindparam(name, expanding=True)


def compile_insert(table: sa.Table) -> CompiledStatement:
    """Return an INSERT that does not return generated ids."""
    return CompiledStatement(sa.insert(table).inline())


@dataclass(frozen=True, slots=True)
class _Form:
    """A statement that is compiled for a dialect and for names of values, independent of list lengths.

    Attributes:
        compiled: The compiled form of SQLAlchemy.
        processors: Functions that convert the value of a parameter for the driver, by its name.
        rows: Fetches the rows of a cursor as named tuples.
        array_sql: For an INSERT on PostgreSQL, SQL that inserts many rows from an array for each
            parameter. The driver would send one statement for each row.
        is_locking: Whether it is a query that locks the rows it returns.
        is_text: Whether it is SQL, whose lists have no type.
    """

    compiled: SQLCompiler
    processors: Mapping[str, Callable[[Any], Any]]
    rows: Callable[[Any], list[Any]]
    array_sql: str | None
    is_locking: bool
    is_text: bool


@dataclass(frozen=True, slots=True)
class _Text:
    """The SQL of a statement for one combination of list lengths.

    Attributes:
        form: The statement.
        sql: The SQL in the parameter style of the driver.
        constants: The driver's values of parameters that are constants of the statement.
        lists: The driver's names for the values of each list, by its name.
        positions: Names of all parameters in their order; None if the driver binds them by name.
    """

    form: _Form
    sql: str
    constants: Mapping[str, Any]
    lists: Mapping[str, Sequence[str]]
    positions: Sequence[str] | None

    def bind(self, values: Values) -> Any:
        """Return the driver's parameters for these values."""
        bound = dict(self.constants)
        processors = self.form.processors
        for name, value in values.items():
            if name in self.lists:
                last = value[-1] if value else None
                bound.update(zip(self.lists[name], chain(value, repeat(last)), strict=False))
            else:
                bound[name] = processors[name](value) if name in processors else value
        if self.positions is None:
            return bound
        return tuple([bound[name] for name in self.positions])


def _compile(statement: Executable, dialect: Dialect, values: Values) -> _Form:
    if not isinstance(statement, ClauseElement):
        raise TypeError(statement)
    if isinstance(statement, TextClause):
        statement = statement.bindparams(*(_bind(*item) for item in values.items()))
    compiled = statement.compile(dialect=dialect, column_keys=list(values))
    if not isinstance(compiled, SQLCompiler):
        raise TypeError(statement)
    processors = {
        name: bind.type.dialect_impl(dialect).bind_processor(dialect)
        for name, bind in compiled.binds.items()
    }
    return _Form(
        compiled,
        {name: process for name, process in processors.items() if process is not None},
        _make_fetch(),
        _array_sql(statement, dialect, values),
        _LOCKS.search(compiled.string) is not None,
        isinstance(statement, TextClause),
    )


def _bind(name: str, value: Any) -> sa.BindParameter[Any]:
    """Return a parameter of SQL, given one of its values."""
    kind = sa.DateTime() if isinstance(value, datetime) else None
    return sa.bindparam(name, type_=kind, expanding=isinstance(value, list | tuple))


def _expand(form: _Form, values: Values) -> _Text:
    """Return the SQL of a form for the lengths of the lists in these values."""
    # PostgreSQL compares no text with an empty list without a type; no value is equal to NULL.
    nothing = [None] if form.is_text else []
    padded = {
        name: [*value, *value[-1:] * (_round_length(len(value)) - len(value))] or nothing
        if isinstance(value, list | tuple)
        else value
        for name, value in values.items()
    }
    expanded = form.compiled.construct_expanded_state(padded)
    lists = expanded.parameter_expansion
    variables = {*values, *(parameter for names in lists.values() for parameter in names)}
    constants = {
        name: value for name, value in expanded.parameters.items() if name not in variables
    }
    return _Text(form, expanded.statement, constants, lists, expanded.positiontup)


def _make_fetch() -> Callable[[Any], list[Any]]:
    """Return a function that fetches the rows of cursors of one query as named tuples."""
    make: Callable[[Sequence[Any]], Any] | None = None

    def fetch(cursor: Any) -> list[Any]:
        nonlocal make
        if make is None:
            names = [column[0] for column in cursor.description]
            # The names are known only now.
            row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024
            make = row._make
        return list(map(make, cursor.fetchall()))

    return fetch


def _round_length(length: int) -> int:
    """Return the length to which the SQL pads a list."""
    return length if length == 0 or length > _ROUNDED_UP else 1 << (length - 1).bit_length()


def _array_sql(statement: ClauseElement, dialect: Dialect, values: Values) -> str | None:
    """Return SQL that inserts many rows from one array for each column; None if it is not needed."""
    if not isinstance(statement, Insert) or dialect.name != "postgresql":
        return None
    columns = [statement.table.columns[name] for name in values]
    arrays = [sa.cast(sa.bindparam(column.name), sa.ARRAY(column.type)) for column in columns]
    names = [column.name for column in columns]
    rows = sa.func.unnest(*arrays).table_valued(*names).render_derived()
    insert = sa.insert(statement.table).from_select(names, sa.select(*rows.c))
    return str(insert.compile(dialect=dialect))
