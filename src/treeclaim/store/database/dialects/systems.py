# SPDX-License-Identifier: Apache-2.0
"""The kinds of databases: one module for each, all with the same functions."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from sqlalchemy.engine import URL, Connection, Engine

from treeclaim.store.database.dialects import mariadb
from treeclaim.store.database.timeouts import Timeouts


class System(Protocol):
    """Statements whose words differ between the kinds of databases.

    Attributes:
        IS_SERVER: Whether the database is a process of its own, whose sessions may outlive their
            connections. Without a server, a query is a transaction.
        LOCKS_IN_ORDER: Whether a query locks rows in the order that it asks for. Otherwise, it locks
            each row as it reads it.
        GIVES_IDS_AGAIN: Whether a new row may have the id of a deleted one.
        HOLDS_NUL, HOLDS_ALL_PLANES: Whether text may have the character NUL, and characters beyond
            the basic plane of Unicode.
        CHANGE_NUMBER: A query for a number that changes with each commit; None where there is none.
    """

    IS_SERVER: bool
    LOCKS_IN_ORDER: bool
    GIVES_IDS_AGAIN: bool
    HOLDS_NUL: bool
    HOLDS_ALL_PLANES: bool
    CHANGE_NUMBER: str | None

    def for_writing(self, engine: Engine, /) -> Engine:
        """Return the engine with transactions whose statements see what is committed when they begin."""

    def for_reading(self, engine: Engine, /) -> Engine:
        """Return the engine with transactions that see one snapshot."""

    def make_autocommitting(self, connection: Any, /) -> None:
        """Let each query of a driver's connection be a transaction that sees one snapshot."""

    def take_lock(self, connection: Connection, seconds: int, /) -> bool:
        """Take the lock under which the schema is made; return whether others left it in time."""

    def give_lock_back(self, connection: Connection, /) -> None:
        """Give that back, if the end of the transaction does not."""

    def extend_timeouts(
        self, connection: Connection, timeouts: Timeouts, deadline: float, /
    ) -> None:
        """Give the statements of a transaction time until a deadline, on the monotonic clock."""


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
        module = import_module(f"{__package__}.{_MODULES[name]}")
        _LOADED[name] = cast("System", module)
    return _LOADED[name]


def is_galera(connection: Connection) -> bool:
    """Return whether the server of a connection is a node of a Galera cluster.

    A row lock holds on one node. Transactions of other nodes conflict with it when they commit, and only
    if both have written the row.
    """
    return bool(connection.info.get(mariadb.IS_GALERA, False))
