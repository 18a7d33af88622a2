# SPDX-License-Identifier: Apache-2.0
"""SQL straight to the driver of a connection, for the statements of claims and of feed readers.

SQLAlchemy makes an execution context and a result of some dozen objects for each statement, whatever
it is. For a claim that took longer than the database. Here the driver's own cursor executes, with
what else SQLAlchemy would do: its events, and its errors, which know a connection that is lost.

Each statement is a round trip. PostgreSQL's pipeline mode sends several at once, and reads their
results afterwards; the server executes them one after the other, as if they had come so.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Self

from sqlalchemy.engine import Connection

_PLAIN = re.compile(r"[0-9A-Za-z_.:,\[\] -]*")
"""Texts that mean the same in quotes whatever the encoding and the SQL mode are."""

_LONGEST = 1_000_000
"""Characters of one statement, about; the server takes 16 MiB if nothing else is configured, and the
driver makes statements of this size too."""


class DriverStatement(NamedTuple):
    """SQL with its parameters.

    Attributes:
        sql: As the driver takes it.
        parameters: As the driver takes them; a list of them for many, or, with `inserts`, the values
            of each column by its name.
        rows: Makes rows of all that the driver returns.
        is_many: Whether it is executed once for each of many sets of parameters.
        is_locking: Whether it is a query that locks the rows it finds.
        inserts: How an INSERT of many rows begins, if their values are written into it here.
    """

    sql: str
    parameters: Any = ()
    rows: Callable[[Iterable[Sequence[Any]]], list[Any]] = list
    is_many: bool = False
    inserts: str | None = None
    is_locking: bool = False


class StatementResult(NamedTuple):
    """A driver's result of a statement.

    Attributes:
        rows: The rows of a query; empty for other statements.
        rowcount: How many rows were changed.
    """

    rows: list[Any]
    rowcount: int


@dataclass(frozen=True, slots=True)
class Listeners:
    """The listeners for statements of a connection.

    To look them up takes SQLAlchemy as long as SQLite takes for a small statement, so a transaction
    does that once.

    Attributes:
        before, after: Told before a statement is executed, and after.
        executing: May execute it in place of the driver.
    """

    before: Sequence[Callable[..., Any]]
    after: Sequence[Callable[..., Any]]
    executing: Sequence[Callable[..., Any]]

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """Return those who listen now."""
        dispatch = connection.dispatch
        return cls(
            tuple(dispatch.before_cursor_execute),
            tuple(dispatch.after_cursor_execute),
            tuple(connection.dialect.dispatch.do_execute),
        )


def sends_together(connection: Connection, listeners: Listeners) -> bool:
    """Return whether several statements take one round trip.

    Not where somebody listens to each statement, as tests do that explore schedules.
    """
    dialect = connection.dialect
    is_able = dialect.driver == "psycopg" and dialect.loaded_dbapi.Pipeline.is_supported()
    return is_able and not listeners.before


def send(
    connection: Connection, ready: DriverStatement, listeners: Listeners | None = None
) -> StatementResult:
    """Execute a statement, in a transaction or as a single query.

    Raises:
        DBAPIError: what the database would not do.
    """
    active_listeners = listeners or Listeners.of(connection)
    cursor = connection.connection.cursor()
    for note in active_listeners.before:
        note(connection, cursor, ready.sql, ready.parameters, None, ready.is_many)
    try:
        if ready.inserts is not None:
            _insert_rows(cursor, ready.inserts, list(ready.parameters.values()))
        elif ready.is_many:
            cursor.executemany(ready.sql, ready.parameters)
        else:
            _execute(cursor, ready, active_listeners)
        for note in active_listeners.after:
            note(connection, cursor, ready.sql, ready.parameters, None, ready.is_many)
        return _sent(cursor, ready)
    except BaseException as error:  # noqa: BLE001 - it is raised again
        _fail(connection, cursor, ready, error)


def send_together(
    connection: Connection, some: Sequence[DriverStatement], listeners: Listeners
) -> list[StatementResult]:
    """Execute statements by one round trip, in their order.

    Raises:
        DBAPIError: what the database would not do; nothing after that was executed then.
    """
    driver: Any = connection.connection.dbapi_connection
    cursors: list[Any] = []
    try:
        with driver.pipeline():
            for ready in some:
                cursors.append(driver.cursor())
                _execute(cursors[-1], ready, listeners)
        return [_sent(cursor, ready) for cursor, ready in zip(cursors, some, strict=True)]
    except BaseException as error:  # noqa: BLE001 - it is raised again
        _fail(connection, cursors[-1] if cursors else None, some[0], error)


def _execute(cursor: Any, ready: DriverStatement, listeners: Listeners) -> None:
    """Execute, unless a listener does."""
    for execute in listeners.executing:
        if execute(cursor, ready.sql, ready.parameters, None):
            return
    cursor.execute(ready.sql, ready.parameters)


def _insert_rows(cursor: Any, beginning: str, columns: Sequence[Sequence[Any]]) -> None:
    """Insert many rows as literals of one INSERT, by PyMySQL.

    The driver's own `executemany` looks at each value by itself: for 3,000 allocations that took longer than the
    server needed for them. Here a column is written as a whole, and all but plain values is left to the driver.

    One INSERT from a list of values is what the server expects for many rows. One that selects from a
    JSON text would hold InnoDB's lock of the automatic ids to its end, and others would wait for that.

    Args:
        cursor: A cursor of PyMySQL.
        beginning: The statement up to the first row.
        columns: The values of each column, all of the same length.
    """
    written = map(",".join, zip(*(_literals(cursor, values) for values in columns), strict=True))
    for rows in _pieces(list(written)):
        cursor.execute(f"{beginning}({'),('.join(rows)})")


def _literals(cursor: Any, values: Sequence[Any]) -> list[str]:
    """Return values as SQL."""
    first = values[0]
    if all(value is first for value in values):
        return [cursor.mogrify("%s", (first,))] * len(values)
    kinds = set(map(type, values))
    if kinds == {int}:
        return list(map(str, values))
    if kinds == {str} and _PLAIN.fullmatch("".join(values)):
        return [f"'{value}'" for value in values]
    return [cursor.mogrify("%s", (value,)) for value in values]


def _pieces(rows: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split rows so that none of the statements is too long."""
    begin, length = 0, 0
    for position, row in enumerate(rows):
        length += len(row)
        if length > _LONGEST and position > begin:
            yield rows[begin:position]
            begin, length = position, len(row)
    yield rows[begin:]


def _sent(cursor: Any, ready: DriverStatement) -> StatementResult:
    rows = ready.rows(cursor.fetchall()) if cursor.description is not None else []
    sent = StatementResult(rows, cursor.rowcount)
    cursor.close()
    return sent


def _fail(
    connection: Connection, cursor: Any, ready: DriverStatement, error: BaseException
) -> NoReturn:
    """Raise an error as SQLAlchemy does, which closes lost connections and asks its listeners.

    The library has no public way to be told of an error. Without its context of a statement it takes
    any for the database's, so what is neither that nor the end of the process is raised as it is.
    """
    if isinstance(error, Exception) and not isinstance(
        error, connection.dialect.loaded_dbapi.Error
    ):
        raise error
    connection._handle_dbapi_exception(error, ready.sql, ready.parameters, cursor, None)  # noqa: SLF001
