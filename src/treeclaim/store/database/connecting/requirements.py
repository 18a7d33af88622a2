# SPDX-License-Identifier: Apache-2.0
"""Refuses servers that are not PostgreSQL, MariaDB, MySQL or SQLite, whatever language they speak.

Servers that accept the statements of PostgreSQL or MySQL may lock nothing by them, or give another
isolation than the one that was asked for.
"""

import re

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.connecting.connections import connected
from treeclaim.store.database.failures.kinds import unavailable

_SUPPORTED = "Treeclaim supports PostgreSQL, MariaDB, MySQL and SQLite"
_NAMES = {
    "postgresql": re.compile(r"PostgreSQL \d+(\.\d+|devel|beta\d+|rc\d+)?(?=[ ,]|$)"),
    "mysql": re.compile(
        r".*mariadb.*|\d+\.\d+\.\d+"
        r"([-.+~](\d|log|debug|debian|ubuntu|commercial|enterprise|cluster|google|azure)[\w.+~]*)*",
        re.IGNORECASE,
    ),
}
"""The texts that supported servers return for `version()`, by dialect."""


def require_supported_server(engine: Engine) -> None:
    """Require a server of a supported engine; one statement.

    Raises:
        StoreUnavailableError: if the server is another one, or does not answer.
    """
    try:
        with connected(engine) as connection:
            refusal = find_unsupported_server(connection)
    except SQLAlchemyError as error:
        raise unavailable(error) from error
    if refusal is not None:
        raise StoreUnavailableError(refusal)


def find_unsupported_server(connection: Connection) -> str | None:
    """Return a sentence that refuses the server of a connection; None for a supported server.

    Raises:
        SQLAlchemyError: if the server does not answer.
    """
    kind = connection.dialect.name
    if kind not in _NAMES:
        return None
    return refuse_version(kind, str(connection.scalar(sa.select(sa.func.version()))))


def refuse_version(kind: str, version: str) -> str | None:
    """Return a sentence that refuses a version of a dialect; None for a supported server."""
    pattern = _NAMES[kind]
    is_supported = pattern.match(version) if kind == "postgresql" else pattern.fullmatch(version)
    if is_supported:
        return None
    name = re.split(r" on | \(|,", version)[0]
    return f"The database server is {name}, which is not supported; {_SUPPORTED}"
