# SPDX-License-Identifier: Apache-2.0
"""Timeouts of a session, in any dialect: read, and extended for work that reads everything."""

from time import monotonic
from typing import Any

from sqlalchemy.engine import Connection, Engine

from treeclaim.store.database.dialects import mariadb_timeouts
from treeclaim.store.database.dialects.systems import system_of
from treeclaim.store.database.timeouts import TIMEOUTS_OPTION, Timeouts


def timeouts_of(engine: Engine | Connection) -> Timeouts:
    """Return the timeouts of an engine, or of the engine of a connection."""
    return engine.get_execution_options().get(TIMEOUTS_OPTION) or Timeouts()


def extend_timeouts(connection: Connection) -> float:
    """Set the timeouts of reading everything, for the rest of a transaction.

    Returns:
        When one statement that begins now has to end, on the monotonic clock.

    Raises:
        DBAPIError: as for any statement.
    """
    timeouts = timeouts_of(connection)
    deadline = monotonic() + timeouts.extended().statement
    system_of(connection).extend_timeouts(connection, timeouts, deadline)
    return deadline


def set_read_timeout(connection: Any, seconds: float) -> None:
    """Let a connection of a driver fail after a number of seconds without a byte."""
    if hasattr(connection, "silence"):
        connection.silence = seconds
    else:
        mariadb_timeouts.set_read_timeout(connection, seconds)
