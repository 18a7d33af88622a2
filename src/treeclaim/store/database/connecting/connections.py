# SPDX-License-Identifier: Apache-2.0
"""Connections for one transaction each, with the isolation level that it needs."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError, ResourceClosedError

from treeclaim.store.database.dialects.systems import system_of


@contextmanager
def connected(engine: Engine) -> Iterator[Connection]:
    """Lend a connection for one transaction.

    Raises:
        DBAPIError: as for any statement. Errors of the driver itself, which SQLAlchemy passes on
            while it sets the isolation level, are wrapped too: such a connection is lost. So is
            the first one of an engine that is closed before SQLAlchemy has asked about the server.
    """
    errors = engine.dialect.loaded_dbapi.Error
    try:
        connection = engine.connect()
    except (errors, ResourceClosedError) as error:
        raise OperationalError(None, None, error, connection_invalidated=True) from error
    try:
        yield connection
    finally:
        # A commit is not undone if the connection cannot be returned.
        with suppress(errors):
            connection.close()


def writing(engine: Engine) -> Engine:
    """Return the engine with transactions for writing.

    READ COMMITTED: a statement sees what was committed while it waited for a lock. On SQLite the
    write lock is taken at the beginning.
    """
    return system_of(engine).for_writing(engine)


def reading(engine: Engine) -> Engine:
    """Return the engine with transactions that read one snapshot."""
    return system_of(engine).for_reading(engine)


def autocommitting(engine: Engine) -> Any:
    """Return a connection of the driver for small queries, out of the pool and in autocommit mode.

    Raises:
        The driver's own errors.
    """
    try:
        pooled = engine.raw_connection()
    except DBAPIError as error:
        raise error.orig or error from error
    pooled.detach()
    connection: Any = pooled.dbapi_connection
    system_of(engine).make_autocommitting(connection)
    return connection


def ask(connection: Any, sql: str, parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query, asked by a connection of `autocommitting`.

    Raises:
        The driver's own errors.
    """
    cursor = connection.cursor()
    try:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
    finally:
        cursor.close()
