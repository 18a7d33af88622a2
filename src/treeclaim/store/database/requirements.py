# SPDX-License-Identifier: Apache-2.0
"""Refuses servers and poolers that break the guarantees of locks and isolation levels.

Other servers accept the statements of PostgreSQL or MySQL, but may not lock rows, or may use another isolation
level than the requested one. A pooler may lend a session of PostgreSQL for one transaction only, as PgBouncer
does in transaction mode: the settings and prepared statements of a session then affect other clients.
"""

import re

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.engine import connected, with_driver
from treeclaim.store.database.failures import unavailable
from treeclaim.store.database.systems import DatabaseSettings

ADVICE = (
    "Let the pooler lend a session for as long as a client stays connected (PgBouncer's "
    "pool_mode = session), or connect to the server itself."
)

SHARED = "A pooler lends sessions of the database for single transactions"

_SESSION = "SELECT pg_backend_pid(), CAST(pg_postmaster_start_time() AS TEXT)"
_PROBES = 5
"""Transactions of each connection. A pooler that prefers the last used session lends the same one to both
connections; a pooler that rotates its sessions lends several to one connection."""

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


def require_usable_server(engine: Engine, settings: DatabaseSettings) -> None:
    """Require a supported server, and one session for each connection.

    Raises:
        StoreUnavailableError: if a requirement is not met, or the database does not respond.
    """
    try:
        with connected(engine) as connection:
            refusal = find_unsupported_server(connection)
        if refusal is None and is_lent_by_transaction(settings):
            refusal = f"{SHARED}. {ADVICE}"
    except SQLAlchemyError as error:
        raise unavailable(error) from error
    if refusal is not None:
        raise StoreUnavailableError(refusal)


def find_unsupported_server(connection: Connection) -> str | None:
    """Return a sentence that refuses the server of a connection; None for a supported server."""
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


def is_lent_by_transaction(settings: DatabaseSettings) -> bool:
    """Return whether a pooler lends sessions for single transactions, by transactions of two open connections."""
    url = with_driver(make_url(settings.url))
    if url.get_backend_name() != "postgresql":
        return False
    # These options leave no prepared statement and no setting in a shared session.
    options = {
        "connect_timeout": settings.timeouts.connect,
        "prepare_threshold": None,
        "client_encoding": "UTF8",
    }
    engine = sa.create_engine(url, connect_args=options, poolclass=sa.NullPool)
    try:
        with engine.connect() as first, engine.connect() as second:
            sessions = [(_load_session(first), _load_session(second)) for _ in range(_PROBES)]
    finally:
        engine.dispose()
    return len(set(sessions)) > 1 or any(
        first_session == second_session for first_session, second_session in sessions
    )


def _load_session(connection: Connection) -> tuple[int, str]:
    with connection.begin():
        process, since = connection.exec_driver_sql(_SESSION).one()
    return process, since
