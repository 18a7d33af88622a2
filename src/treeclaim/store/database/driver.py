# SPDX-License-Identifier: Apache-2.0
"""SQL straight to the driver of a connection, for the statements of claims and of feed readers.

SQLAlchemy makes an execution context and a result of some dozen objects for each statement, whatever
it is. For a claim that took longer than the database. Here the driver's own cursor executes, with
what else SQLAlchemy would do: its events, and its errors, which know a connection that is lost.

Each statement is a round trip. PostgreSQL's pipeline mode sends several at once, and reads their
results afterwards; the server executes them one after the other, as if they had come so.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

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


def can_pipeline(connection: Connection) -> bool:
    """Return whether several statements take one round trip.

    Not where somebody listens to each statement, as tests do that explore schedules.
    """
    dialect = connection.dialect
    is_able = dialect.driver == "psycopg" and dialect.loaded_dbapi.Pipeline.is_supported()
    return is_able and not connection.dispatch.before_cursor_execute


def send(connection: Connection, ready: DriverStatement) -> StatementResult:
    """Execute a statement, in a transaction or as a single query.

    Raises:
        DBAPIError: what the database would not do.
    """
    cursor = connection.connection.cursor()
    for note in connection.dispatch.before_cursor_execute:
        note(connection, cursor, ready.sql, ready.parameters, None, ready.is_many)
    try:
        if ready.is_many:
            cursor.executemany(ready.sql, ready.parameters)
        else:
            _execute(connection, cursor, ready)
        for note in connection.dispatch.after_cursor_execute:
            note(connection, cursor, ready.sql, ready.parameters, None, ready.is_many)
        return _result(cursor, ready)
    except BaseException as error:  # noqa: BLE001 - it is raised again
        _fail(connection, cursor, ready, error)


def send_together(
    connection: Connection, statements: Sequence[DriverStatement]
) -> list[StatementResult]:
    """Execute statements by one round trip, in their order.

    Raises:
        DBAPIError: what the database would not do; nothing after that was executed then.
    """
    driver: Any = connection.connection.dbapi_connection
    cursors: list[Any] = []
    try:
        with driver.pipeline():
            for ready in statements:
                cursors.append(driver.cursor())
                _execute(connection, cursors[-1], ready)
        return [_result(cursor, ready) for cursor, ready in zip(cursors, statements, strict=True)]
    except BaseException as error:  # noqa: BLE001 - it is raised again
        _fail(connection, cursors[-1] if cursors else None, statements[0], error)


def _execute(connection: Connection, cursor: Any, ready: DriverStatement) -> None:
    """Execute, unless a listener does."""
    for execute in connection.dialect.dispatch.do_execute:
        if execute(cursor, ready.sql, ready.parameters, None):
            return
    cursor.execute(ready.sql, ready.parameters)


def _result(cursor: Any, ready: DriverStatement) -> StatementResult:
    rows = ready.rows(cursor.fetchall()) if cursor.description is not None else []
    result = StatementResult(rows, cursor.rowcount)
    cursor.close()
    return result


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
