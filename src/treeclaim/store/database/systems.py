# SPDX-License-Identifier: Apache-2.0
"""The differences between the kinds of databases, as a class for each kind, and the clock of the server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from time import monotonic
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.timeouts import TIMEOUTS_OPTION, Timeouts


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The options of `[placement_database]`.

    Attributes:
        url: SQLAlchemy URL.
        sqlite_synchronous: False trades durability for speed on SQLite.
        connection_recycle_time: Seconds after which a connection is replaced.
        max_pool_size, max_overflow, pool_timeout: Options of the connection pool; None for the default.
        mysql_sql_mode: SQL mode of MariaDB and MySQL sessions; empty for that of the server.
        connection_debug: Above 0 logs SQL statements.
        timeouts: All timeouts of waits for the database.
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
    """A kind of database.

    Attributes:
        is_server: Whether the database is a separate process.
        locks_in_order: Whether a query locks rows in the order of its ORDER BY, or in that of its reads.
        reuses_ids: Whether a new row may have the id of a deleted row.
        change_number: A query for a number that changes on a connection after each commit of another connection.
    """

    is_server = True
    locks_in_order = True
    reuses_ids = False
    change_number: str | None = None

    def prepare(self, engine: Engine, settings: DatabaseSettings) -> None:
        """Install event listeners that set up connections and transactions."""
        raise NotImplementedError

    def for_writing(self, engine: Engine) -> Engine:
        """Return the engine with READ COMMITTED transactions that may write."""
        return engine.execution_options(treeclaim_writing=True)

    def for_reading(self, engine: Engine) -> Engine:
        """Return the engine with transactions that read one snapshot."""
        return engine

    def enable_autocommit(self, connection: Any) -> None:
        """Make each query of a driver's connection a transaction with one snapshot."""

    def acquire_schema_lock(self, _connection: Connection, _seconds: int) -> bool:
        """Acquire the lock for creating the schema; return whether it was free in time."""
        return True

    def release_schema_lock(self, connection: Connection) -> None:
        """Release that lock, unless the end of the transaction releases it."""

    def extend_timeouts(self, connection: Connection, timeouts: Timeouts, deadline: float) -> None:
        """Extend the timeouts of a transaction; `deadline` is on the monotonic clock."""
        raise NotImplementedError

    def set_read_timeout(self, connection: Any, seconds: float) -> None:
        """Set the read timeout of a driver's connection."""


KINDS: Mapping[str, str] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "mysql": "mariadb",
}
"""Module of each supported kind of database, by SQLAlchemy's name."""


def get_system(database: Engine | Connection) -> System:
    """Return the kind of a database."""
    return _import_system(database.dialect.name)


@cache
def _import_system(name: str) -> System:
    # Each module imports its driver, which costs 5 MB for PostgreSQL.
    system: System = import_module(f"{__package__}.{KINDS[name]}").SYSTEM
    return system


def get_timeouts(engine: Engine | Connection) -> Timeouts:
    """Return the timeouts of an engine, or of the engine of a connection."""
    return engine.get_execution_options().get(TIMEOUTS_OPTION) or Timeouts()


def extend_timeouts(connection: Connection) -> float:
    """Extend the timeouts of a transaction for a load of everything; return its deadline, of the monotonic clock."""
    timeouts = get_timeouts(connection)
    deadline = monotonic() + timeouts.make_extended().statement
    get_system(connection).extend_timeouts(connection, timeouts, deadline)
    return deadline


GALERA_NODE = "treeclaim_galera_node"
"""Key in a connection's `info`: the unique id of its node in a Galera cluster; None without a cluster."""


def get_galera_node(connection: Connection) -> str | None:
    """Return the unique id of a connection's node in a Galera cluster; None without a cluster."""
    node: str | None = connection.info.get(GALERA_NODE)
    return node


_CLOCK = "treeclaim_clock"
"""Key in a connection's `info`: the time of its server, naive UTC, when the monotonic clock was 0.

A client whose clock is a day fast would treat new rows as old. All stored times and ages therefore follow the
server's clock, which each connection reads once."""


def set_clock(record: ConnectionPoolEntry, seconds: Any) -> None:
    """Record the present time of a server, in seconds since the epoch."""
    time = datetime.fromtimestamp(float(seconds), UTC).replace(tzinfo=None)
    record.info[_CLOCK] = time - timedelta(seconds=monotonic())


def read_clock(connection: Connection) -> datetime:
    """Return the present time of a connection's server, naive UTC; for SQLite that of the machine."""
    origin: datetime | None = connection.info.get(_CLOCK)
    if origin is None:
        return datetime.now(UTC).replace(tzinfo=None)
    return origin + timedelta(seconds=monotonic())
