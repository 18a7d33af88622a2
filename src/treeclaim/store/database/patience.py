# SPDX-License-Identifier: Apache-2.0
"""Other limits than those of a request, for work that has a right to them."""

from typing import Any

from sqlalchemy.engine import Connection, Engine

from treeclaim.store.database import mariadb_waits, postgresql
from treeclaim.store.database.waits import WAITS_OPTION, Waits


def waits_of(engine: Engine | Connection) -> Waits:
    """Return the limits of an engine, or of the engine of a connection."""
    return engine.get_execution_options().get(WAITS_OPTION) or Waits()


def take_time(connection: Connection) -> None:
    """Let the rest of a transaction read everything, or look after everything.

    Raises:
        DBAPIError: as for any statement.
    """
    waits = waits_of(connection)
    if connection.dialect.name == "postgresql":
        postgresql.take_time(connection, waits)
    elif connection.dialect.name == "mysql":
        mariadb_waits.take_time(connection, waits)


def listen(connection: Any, seconds: float) -> None:
    """Give a connection of a driver up after so many seconds without a byte."""
    if isinstance(connection, postgresql.BoundedConnection):
        connection.silence = seconds
    else:
        mariadb_waits.listen(connection, seconds)
