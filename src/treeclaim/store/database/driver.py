# SPDX-License-Identifier: Apache-2.0
"""SQL straight to the driver of a connection, for the statements of claims and of feed readers.

SQLAlchemy makes an execution context and a result of some dozen objects for each statement, whatever
it is. For a claim that took longer than the database. Here the driver's own cursor executes, with
what else SQLAlchemy would do: its events, and its errors, which know a connection that is lost.

Each statement is a round trip. PostgreSQL's pipeline mode sends several at once, and reads their
results afterwards; the server executes them one after the other, as if they had come so.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Self

from sqlalchemy.engine import Connection


class DriverStatement(NamedTuple):
    """SQL with its parameters.

    Attributes:
        sql: As the driver takes it.
        parameters: As the driver takes them; a list of them for many.
        rows: Makes rows of all that the driver returns.
        is_many: Whether it is executed once for each of many sets of parameters.
        is_locking: Whether it is a query that locks the rows it finds.
    """

    sql: str
    parameters: Any = ()
    rows: Callable[[Iterable[Sequence[Any]]], list[Any]] = list
    is_many: bool = False
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
        if ready.is_many:
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
