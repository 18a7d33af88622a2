# SPDX-License-Identifier: Apache-2.0
"""The kinds of databases: one module for each, all with the same functions."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from sqlalchemy.engine import URL, Connection, Engine

from treeclaim.store.database.abilities import Abilities, asked_abilities
from treeclaim.store.database.timeouts import Timeouts


class System(Protocol):
    """What is said in other words to each kind of database.

    Attributes:
        ABILITIES: What all databases of this kind can do; for those that are asked, what is known beforehand.
        CHANGE_NUMBER: A query for a number that changes with each commit; None where there is none.
    """

    ABILITIES: Abilities
    CHANGE_NUMBER: str | None

    def for_writing(self, engine: Engine, /) -> Engine:
        """Return the engine with transactions whose statements see what is committed when they begin."""

    def for_reading(self, engine: Engine, /) -> Engine:
        """Return the engine with transactions that see one snapshot."""

    def make_autocommitting(self, connection: Any, /) -> None:
        """Let each query of a driver's connection be a transaction that sees one snapshot."""

    def isolation(self, connection: Connection, /) -> str:
        """Return the isolation that a transaction for writing has, in small letters."""

    def take_lock(self, connection: Connection, seconds: int, /) -> bool:
        """Take the lock under which the schema is made; return whether others left it in time."""

    def give_lock_back(self, connection: Connection, /) -> None:
        """Give that back, if the end of the transaction does not."""

    def allow_long_texts(self, connection: Connection, /) -> None:
        """Let a query put long texts together, for the rest of the session."""

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


def abilities_of(connection: Connection) -> Abilities:
    """Return what the server of a connection can do."""
    return asked_abilities(connection) or system_of(connection).ABILITIES
