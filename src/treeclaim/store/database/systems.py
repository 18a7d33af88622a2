# SPDX-License-Identifier: Apache-2.0
"""The kinds of databases: their differences, as a class for each, and the clock of their servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from time import monotonic
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.timeouts import TIMEOUTS_OPTION, Timeouts


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The connection to the database; the options of `[placement_database]`.

    Attributes:
        url: SQLAlchemy URL.
        sqlite_synchronous: False trades durability for speed on SQLite.
        connection_recycle_time: Seconds after which a connection is replaced.
        max_pool_size, max_overflow, pool_timeout: Options of the connection pool; None for the default.
        mysql_sql_mode: SQL mode of MariaDB and MySQL sessions, empty for the server's; without
            modes in which statements would mean something else, and strict in any case.
        connection_debug: Above 0 logs SQL statements, above 50 results too.
        timeouts: The timeouts of everything that waits for the database.
    """

    url: str = field(repr=False)
    sqlite_synchronous: bool = True
    connection_recycle_time: int = 3600
    max_pool_size: int | None = None
    max_overflow: int | None = None
    pool_timeout: int | None = None
    mysql_sql_mode: str = "TRADITIONAL"
    connection_debug: int = 0
    timeouts: Timeouts = field(default_factory=Timeouts)


class System:
    """A kind of database. The defaults are those of most kinds.

    Attributes:
        is_server: Whether the database is a process of its own.
        locks_in_order: Whether a query locks rows in the order that it requests. Otherwise, it locks
            each row as it reads it.
        gives_ids_again: Whether a new row may have the id of a deleted one.
        change_number: A query for a number that differs on a connection after each commit of another one.
    """

    is_server = True
    locks_in_order = True
    gives_ids_again = False
    change_number: str | None = None

    def prepare(self, engine: Engine, settings: DatabaseSettings) -> None:
        """Set up each connection, and how transactions begin."""
        raise NotImplementedError

    def for_writing(self, engine: Engine) -> Engine:
        """Return the engine with transactions whose statements see what is committed when they begin."""
        return engine.execution_options(treeclaim_writing=True)

    def for_reading(self, engine: Engine) -> Engine:
        """Return the engine with transactions that see one snapshot."""
        return engine

    def make_autocommitting(self, connection: Any) -> None:
        """Let each query of a driver's connection be a transaction that sees one snapshot."""

    def take_lock(self, _connection: Connection, _seconds: int) -> bool:
        """Take the lock under which the schema is made; return whether others left it in time."""
        return True

    def give_lock_back(self, connection: Connection) -> None:
        """Give that back, if the end of the transaction does not."""

    def extend_timeouts(self, connection: Connection, timeouts: Timeouts, deadline: float) -> None:
        """Give the statements of a transaction time until a deadline, on the monotonic clock."""
        raise NotImplementedError

    def set_read_timeout(self, connection: Any, seconds: float) -> None:
        """Let a driver's connection fail after a number of seconds without a byte."""


KINDS: Mapping[str, str] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "mysql": "mariadb",
}
"""Kinds of database that are supported, as URLs name them, each with its module."""

_LOADED: dict[str, System] = {}
"""The systems that this process uses: the driver of PostgreSQL takes five megabytes."""


def system_of(database: Engine | Connection) -> System:
    """Return the kind of a database."""
    name = database.dialect.name
    if name not in _LOADED:
        system: System = import_module(f"{__package__}.{KINDS[name]}").SYSTEM
        _LOADED[name] = system
    return _LOADED[name]


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


IS_GALERA = "treeclaim_is_galera"
"""Key in a connection's `info`: whether its server is a node of a Galera cluster."""


def is_galera(connection: Connection) -> bool:
    """Return whether the server of a connection is a node of a Galera cluster.

    A row lock holds on one node. Transactions of other nodes conflict with it when they commit, and only
    if both have written the row.
    """
    return bool(connection.info.get(IS_GALERA, False))


_CLOCK = "treeclaim_clock"
"""Key in a connection's `info`: the time of its server, naive UTC, when the monotonic clock was 0.

Clocks of machines differ, and a machine that is a day ahead would treat new rows as old. So stored times, and the
ages of stored rows, follow the server's clock. A connection reads it once, and counts on from there."""


def set_clock(record: ConnectionPoolEntry, seconds: Any) -> None:
    """Record the present time of a server, in seconds since the epoch."""
    time = datetime.fromtimestamp(float(seconds), UTC).replace(tzinfo=None)
    record.info[_CLOCK] = time - timedelta(seconds=monotonic())


def now_of(connection: Connection) -> datetime:
    """Return the present time of a connection's server, naive UTC; the machine is SQLite's server."""
    origin: datetime | None = connection.info.get(_CLOCK)
    if origin is None:
        return datetime.now(UTC).replace(tzinfo=None)
    return origin + timedelta(seconds=monotonic())
