# SPDX-License-Identifier: Apache-2.0
"""The kinds of databases: one module for each, all with the same functions."""

from collections.abc import Mapping
from typing import Any, Protocol

from sqlalchemy.engine import URL, Connection, Engine

from treeclaim.store.database.abilities import Abilities, asked_abilities
from treeclaim.store.database.dialects import mariadb, postgresql, sqlite
from treeclaim.store.database.timeouts import Timeouts


class System(Protocol):
    """What is said in other words to each kind of database.

    Attributes:
        ABILITIES: What all databases of this kind can do, of those that are asked what is known before.
        CHANGE_NUMBER: A query for a number that changes with each commit; None where there is none.
    """

    ABILITIES: Abilities
    CHANGE_NUMBER: str | None

    def for_writing(self, engine: Engine, /) -> Engine: ...  # noqa: D102 - as the modules say

    def for_reading(self, engine: Engine, /) -> Engine: ...  # noqa: D102

    def make_autocommitting(self, connection: Any, /) -> None: ...  # noqa: D102

    def isolation(self, connection: Connection, /) -> str: ...  # noqa: D102

    def take_lock(self, connection: Connection, seconds: int, /) -> bool: ...  # noqa: D102

    def give_lock_back(self, connection: Connection, /) -> None: ...  # noqa: D102

    def allow_long_texts(self, connection: Connection, /) -> None: ...  # noqa: D102

    def extend_timeouts(  # noqa: D102
        self, connection: Connection, timeouts: Timeouts, deadline: float, /
    ) -> None: ...


_SYSTEMS: Mapping[str, System] = {
    "sqlite": sqlite,
    "postgresql": postgresql,
    "postgres": postgresql,
    "mysql": mariadb,
    "mariadb": mariadb,
}


def system_of(database: Engine | Connection | URL) -> System:
    """Return the kind of a database."""
    if isinstance(database, URL):
        return _SYSTEMS[database.get_backend_name()]
    return _SYSTEMS[database.dialect.name]


def abilities_of(connection: Connection) -> Abilities:
    """Return what the server of a connection can do."""
    return asked_abilities(connection) or system_of(connection).ABILITIES
