# SPDX-License-Identifier: Apache-2.0
"""Executes statements by the driver's cursor, with the events and errors of SQLAlchemy.

SQLAlchemy's own execution creates a dozen objects for each statement, which costs more than the statements of
a claim. PostgreSQL's pipeline mode sends several statements by one round trip.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from sqlalchemy.engine import Connection


def _fetch_all(cursor: Any) -> list[Any]:
    return list(cursor.fetchall())


class DriverStatement(NamedTuple):
    """SQL in the parameter style of a driver, with its parameters.

    Attributes:
        parameters: The driver's parameters; a list of such sets if `is_many`.
        rows: Fetches the rows of a cursor.
        is_many: Whether it is executed once for each set of parameters.
        is_locking: Whether it is a query that locks the returned rows.
    """

    sql: str
    parameters: Any = ()
    rows: Callable[[Any], list[Any]] = _fetch_all
    is_many: bool = False
    is_locking: bool = False


class StatementResult(NamedTuple):
    """The rows of a query, and the number of changed rows."""

    rows: list[Any]
    rowcount: int


def can_pipeline(connection: Connection) -> bool:
    """Return whether one round trip can send several statements; an event for each statement prevents it."""
    dialect = connection.dialect
    has_pipeline = dialect.driver == "psycopg" and dialect.loaded_dbapi.Pipeline.is_supported()
    return has_pipeline and not connection.dispatch.before_cursor_execute


def send(connection: Connection, statement: DriverStatement) -> StatementResult:
    """Execute a statement.

    Raises:
        DBAPIError: if the database rejects it.
    """
    cursor = connection.connection.cursor()
    event = (cursor, statement.sql, statement.parameters, None, statement.is_many)
    for listener in connection.dispatch.before_cursor_execute:
        listener(connection, *event)
    try:
        if statement.is_many:
            cursor.executemany(statement.sql, statement.parameters)
        else:
            _execute(connection, cursor, statement)
        for listener in connection.dispatch.after_cursor_execute:
            listener(connection, *event)
        return _fetch_result(cursor, statement)
    except BaseException as error:  # noqa: BLE001 - it is raised again
        _raise_wrapped(connection, cursor, statement, error)


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
            for statement in statements:
                cursors.append(driver.cursor())
                _execute(connection, cursors[-1], statement)
        return [
            _fetch_result(cursor, statement)
            for cursor, statement in zip(cursors, statements, strict=True)
        ]
    except BaseException as error:  # noqa: BLE001 - it is raised again
        # The error belongs to the first statement without a result.
        done_count = sum(cursor.pgresult is not None for cursor in cursors)
        failed_position = min(done_count, len(statements) - 1)
        cursor = cursors[-1] if cursors else None
        _raise_wrapped(connection, cursor, statements[failed_position], error)


def _execute(connection: Connection, cursor: Any, statement: DriverStatement) -> None:
    for execute in connection.dialect.dispatch.do_execute:
        if execute(cursor, statement.sql, statement.parameters, None):
            # The listener has executed it.
            return
    cursor.execute(statement.sql, statement.parameters)


def _fetch_result(cursor: Any, statement: DriverStatement) -> StatementResult:
    rows = statement.rows(cursor) if cursor.description is not None else []
    result = StatementResult(rows, cursor.rowcount)
    cursor.close()
    return result


def _raise_wrapped(
    connection: Connection, cursor: Any, statement: DriverStatement, error: BaseException
) -> NoReturn:
    """Raise an error as SQLAlchemy does, which closes lost connections and calls its listeners.

    SQLAlchemy has no public function for this. Without an execution context it wraps every exception
    as an error of the database, so this function raises other exceptions unchanged.
    """
    if isinstance(error, Exception) and not isinstance(
        error, connection.dialect.loaded_dbapi.Error
    ):
        raise error
    connection._handle_dbapi_exception(  # noqa: SLF001
        error, statement.sql, statement.parameters, cursor, None
    )
