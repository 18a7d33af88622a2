# SPDX-License-Identifier: Apache-2.0
"""SQL straight to the driver of a connection, for the statements of claims and of feed readers.

SQLAlchemy makes an execution context and a result of some dozen objects for each statement, whatever
it is. For a claim that took longer than the database. Here the driver's own cursor executes, with
what else SQLAlchemy would do: its events, and its errors, which know a connection that is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection


@dataclass(frozen=True, slots=True)
class Sent:
    """What a driver says of a statement.

    Attributes:
        rows: Of a query, as the driver has them; empty for what is no query.
        rowcount: How many rows were changed.
    """

    rows: Sequence[Any]
    rowcount: int


def send(connection: Connection, sql: str, parameters: Any, *, is_many: bool = False) -> Sent:
    """Execute a statement, or execute it once for each of many sets of parameters.

    Args:
        connection: In a transaction.
        sql: As the driver takes it.
        parameters: As the driver takes them; a list of them for many.
        is_many: Whether there are many.

    Raises:
        DBAPIError: what the database would not do.
    """
    cursor = connection.connection.cursor()
    try:
        for note in connection.dispatch.before_cursor_execute:
            note(connection, cursor, sql, parameters, None, is_many)
        if is_many:
            cursor.executemany(sql, parameters)
        else:
            _execute(connection, cursor, sql, parameters)
        rows = cursor.fetchall() if cursor.description is not None else ()
        sent = Sent(rows, cursor.rowcount)
        cursor.close()
    except BaseException as error:  # noqa: BLE001 - it is raised again
        # The library tells nobody else how it closes lost connections, and asks its listeners.
        connection._handle_dbapi_exception(error, sql, parameters, cursor, None)  # noqa: SLF001
    return sent


def _execute(connection: Connection, cursor: Any, sql: str, parameters: Any) -> None:
    """Execute, unless somebody who listens does."""
    if not any(
        execute(cursor, sql, parameters, None)
        for execute in connection.dialect.dispatch.do_execute
    ):
        cursor.execute(sql, parameters)
