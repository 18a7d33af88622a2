# SPDX-License-Identifier: Apache-2.0
"""Statements that are written as SQL once, for those that a claim consists of.

SQLAlchemy finds its SQL again at each execution, writes lists into it, and prepares for results of
every type. For a statement of a claim that takes longer than the database does. A ready statement
keeps its SQL, for each number of values in its lists; results are as the driver gives them, so it
must not read what differs between drivers, such as times.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult, Dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

Values = Mapping[str, Any]

_MOST_FORMS = 1000
"""Forms of one statement that are kept."""


class Ready:
    """A statement whose SQL is kept."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._written: dict[tuple[object, ...], _Written] = {}

    def execute(
        self, connection: Connection, values: Values | Sequence[Values]
    ) -> CursorResult[Any]:
        """Execute the statement with some values, or once for each of several sets of them."""
        if isinstance(values, Mapping):
            written = self._for(connection.dialect, values)
            return connection.exec_driver_sql(written.sql, written.filled(values))
        written = self._for(connection.dialect, values[0])
        return connection.exec_driver_sql(written.sql, [written.filled(one) for one in values])

    def _for(self, dialect: Dialect, values: Values) -> "_Written":
        """Return the SQL for values of this form; another form has its own."""
        lengths = (len(one) if isinstance(one, list | tuple) else -1 for one in values.values())
        form = (dialect.name, dialect.driver, *values, *lengths)
        written = self._written.get(form)
        if written is None:
            written = _write(self._statement, dialect, values)
            if len(self._written) >= _MOST_FORMS:
                self._written.clear()
            self._written[form] = written
        return written


_Fill = Callable[[Values], Any]


@dataclass(frozen=True, slots=True)
class _Written:
    """A statement's SQL.

    Attributes:
        sql: As the driver takes it.
        fills: How to get each parameter from the values, by name.
        order: Names of the parameters, where the driver takes them by position.
    """

    sql: str
    fills: Mapping[str, _Fill]
    order: Sequence[str] | None

    def filled(self, values: Values) -> Any:
        """Return the parameters for some values."""
        if self.order is None:
            return {name: fill(values) for name, fill in self.fills.items()}
        return tuple([self.fills[name](values) for name in self.order])


def _write(statement: Executable, dialect: Dialect, values: Values) -> _Written:
    if not isinstance(statement, ClauseElement):
        raise TypeError(statement)
    compiled = statement.compile(dialect=dialect, column_keys=list(values))
    if not isinstance(compiled, SQLCompiler):
        raise TypeError(statement)
    written = compiled.construct_expanded_state(values)
    fills: dict[str, _Fill] = {
        name: _constant(value) for name, value in written.parameters.items()
    }
    for name in values:
        own = compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect)
        if name not in written.parameter_expansion:
            fills[name] = itemgetter(name) if own is None else _processed(name, own)
            continue
        for at, expanded in enumerate(written.parameter_expansion[name]):
            fills[expanded] = _element(name, at)
    return _Written(written.statement, fills, written.positiontup)


def _constant(value: object) -> _Fill:
    return lambda _: value


def _processed(name: str, process: Callable[[Any], Any]) -> _Fill:
    return lambda values: process(values[name])


def _element(name: str, at: int) -> _Fill:
    return lambda values: values[name][at]
