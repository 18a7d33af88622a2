# SPDX-License-Identifier: Apache-2.0
"""The kinds of databases: what differs between them, as a class for each."""

from collections.abc import Mapping
from importlib import import_module
from time import monotonic
from typing import Any

from sqlalchemy.engine import URL, Connection, Engine

from treeclaim.store.database.timeouts import TIMEOUTS_OPTION, Timeouts


class System:
    """A kind of database. The defaults are those of most kinds.

    Attributes:
        is_server: Whether the database is a process of its own.
        locks_in_order: Whether a query locks rows in the order that it requests. Otherwise, it locks
            each row as it reads it.
        gives_ids_again: Whether a new row may have the id of a deleted one.
        holds_nul, holds_all_planes: Whether text may have the character NUL, and characters beyond
            the basic plane of Unicode.
        change_number: A query for a number that changes with each commit; None where there is none.
    """

    is_server = True
    locks_in_order = True
    gives_ids_again = False
    holds_nul = True
    holds_all_planes = True
    change_number: str | None = None

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


_MODULES: Mapping[str, str] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mariadb",
    "mariadb": "mariadb",
}

_LOADED: dict[str, System] = {}
"""The systems that this process uses: the driver of PostgreSQL takes five megabytes."""


def system_of(database: Engine | Connection | URL) -> System:
    """Return the kind of a database."""
    name = database.get_backend_name() if isinstance(database, URL) else database.dialect.name
    if name not in _LOADED:
        system: System = import_module(f"{__package__}.{_MODULES[name]}").SYSTEM
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
