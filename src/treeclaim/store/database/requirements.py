# SPDX-License-Identifier: Apache-2.0
"""Refuses servers and poolers that break the guarantees of locks and isolation levels.

Compatible servers accept the statements of PostgreSQL or MySQL, but may not lock rows, or may lower the isolation
level. PgBouncer in transaction mode lends a session for one transaction only; the settings and prepared statements
of that session then affect other clients.
"""

import re

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.engine import add_driver, lend_connection
from treeclaim.store.database.failures import make_unavailable_error
from treeclaim.store.database.systems import DatabaseSettings

POOLER_ADVICE = (
    "Let the pooler lend a session for as long as a client stays connected (PgBouncer's "
    "pool_mode = session), or connect to the server itself."
)

SHARED_SESSIONS = "A pooler lends sessions of the database for single transactions"

_SESSION = "SELECT pg_backend_pid(), CAST(pg_postmaster_start_time() AS TEXT)"
_PROBES = 5
"""Transactions of each of two connections. A pooler that prefers the last used session lends it to both
connections; a pooler that rotates its sessions lends several to each connection."""

_SUPPORTED = "Treeclaim supports PostgreSQL, MariaDB, MySQL and SQLite"
_NAMES = {
    "postgresql": re.compile(r"PostgreSQL \d+(\.\d+|devel|beta\d+|rc\d+)?(?=[ ,]|$)"),
    "mysql": re.compile(
        r".*mariadb.*|\d+\.\d+\.\d+"
        r"([-.+~](\d|log|debug|debian|ubuntu|commercial|enterprise|cluster|google|azure)[\w.+~]*)*",
        re.IGNORECASE,
    ),
}
"""Patterns for the result of `version()` on supported servers, by dialect."""


def require_usable_server(engine: Engine, settings: DatabaseSettings) -> None:
    """Require a supported server, and one session for each connection.

    Raises:
        StoreUnavailableError: if a requirement is not met, or the database does not respond.
    """
    try:
        with lend_connection(engine) as connection:
            refusal = find_unsupported_server(connection)
        if refusal is None and has_shared_sessions(settings):
            refusal = f"{SHARED_SESSIONS}. {POOLER_ADVICE}"
    except SQLAlchemyError as error:
        raise make_unavailable_error(error) from error
    if refusal is not None:
        raise StoreUnavailableError(refusal)


def find_unsupported_server(connection: Connection) -> str | None:
    """Return a sentence that refuses the server of a connection; None for a supported server."""
    dialect = connection.dialect.name
    if dialect not in _NAMES:
        return None
    return refuse_version(dialect, str(connection.scalar(sa.select(sa.func.version()))))


def refuse_version(dialect: str, version: str) -> str | None:
    """Return a sentence that refuses a result of `version()`; None for a supported server."""
    pattern = _NAMES[dialect]
    if pattern.match(version) if dialect == "postgresql" else pattern.fullmatch(version):
        return None
    name = re.split(r" on | \(|,", version)[0]
    return f"The database server is {name}, which is not supported; {_SUPPORTED}"


def has_shared_sessions(settings: DatabaseSettings) -> bool:
    """Return whether a pooler lends sessions for single transactions; opens two connections to find out."""
    url = add_driver(make_url(settings.url))
    if url.get_backend_name() != "postgresql":
        return False
    # With these options no prepared statement and no setting stays in a shared session.
    options = {
        "connect_timeout": settings.timeouts.connect,
        "prepare_threshold": None,
        "client_encoding": "UTF8",
    }
    engine = sa.create_engine(url, connect_args=options, poolclass=sa.NullPool)
    try:
        with engine.connect() as connection, engine.connect() as other_connection:
            sessions = [
                (_identify_session(connection), _identify_session(other_connection))
                for _ in range(_PROBES)
            ]
    finally:
        engine.dispose()
    return len(set(sessions)) > 1 or any(
        first_session == second_session for first_session, second_session in sessions
    )


def _identify_session(connection: Connection) -> tuple[int, str]:
    with connection.begin():
        process, server_start = connection.exec_driver_sql(_SESSION).one()
    return process, server_start
