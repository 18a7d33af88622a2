# SPDX-License-Identifier: Apache-2.0
"""Executes SQL by the driver's cursor, for the statements of claims and feed readers.

SQLAlchemy creates an execution context and a result of a dozen objects for each statement, which
cost more than the statements of a claim. The cursor of the driver executes here, with SQLAlchemy's
events, and with its errors, which report a lost connection.

Each statement is a round trip. PostgreSQL's pipeline mode sends several statements at once and then
reads their results; the server executes them in order.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from sqlalchemy.engine import Connection


def _fetch_all(cursor: Any) -> list[Any]:
    return list(cursor.fetchall())


class DriverStatement(NamedTuple):
    """SQL with its parameters.

    Attributes:
        sql: SQL in the parameter style of the driver.
        parameters: The driver's parameters; a list of them if `is_many`.
        rows: Fetches the rows of a cursor.
        is_many: Whether it is executed once for each of many sets of parameters.
        is_locking: Whether it is a query that locks the rows it returns.
    """

    sql: str
    parameters: Any = ()
    rows: Callable[[Any], list[Any]] = _fetch_all
    is_many: bool = False
    is_locking: bool = False


class StatementResult(NamedTuple):
    """The result of a statement: the rows of a query, and the number of changed rows."""

    rows: list[Any]
    rowcount: int


def can_pipeline(connection: Connection) -> bool:
    """Return whether one round trip can send several statements; False if an event listens to each one."""
    dialect = connection.dialect
    is_able = dialect.driver == "psycopg" and dialect.loaded_dbapi.Pipeline.is_supported()
    return is_able and not connection.dispatch.before_cursor_execute


def send(connection: Connection, ready: DriverStatement) -> StatementResult:
    """Execute a statement, in a transaction or as a single query.

    Raises:
        DBAPIError: if the database rejects it.
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
        DBAPIError: if the database rejects one; no later statement was executed then.
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
        # The error belongs to the first statement without a result.
        done = sum(cursor.pgresult is not None for cursor in cursors)
        failed = min(done, len(statements) - 1)
        _fail(connection, cursors[-1] if cursors else None, statements[failed], error)


def _execute(connection: Connection, cursor: Any, ready: DriverStatement) -> None:
    """Execute, unless a listener does."""
    for execute in connection.dialect.dispatch.do_execute:
        if execute(cursor, ready.sql, ready.parameters, None):
            return
    cursor.execute(ready.sql, ready.parameters)


def _result(cursor: Any, ready: DriverStatement) -> StatementResult:
    rows = ready.rows(cursor) if cursor.description is not None else []
    result = StatementResult(rows, cursor.rowcount)
    cursor.close()
    return result


def _fail(
    connection: Connection, cursor: Any, ready: DriverStatement, error: BaseException
) -> NoReturn:
    """Raise an error as SQLAlchemy does, which closes lost connections and calls its listeners.

    The library has no public function for this. Without an execution context it wraps every error
    as one of the database, so other exceptions are raised unchanged here.
    """
    if isinstance(error, Exception) and not isinstance(
        error, connection.dialect.loaded_dbapi.Error
    ):
        raise error
    connection._handle_dbapi_exception(error, ready.sql, ready.parameters, cursor, None)  # noqa: SLF001
