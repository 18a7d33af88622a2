# SPDX-License-Identifier: Apache-2.0
"""Refuses a pooler that lends a session of PostgreSQL for one transaction only, as PgBouncer may.

There, the settings of a session and its prepared statements reach the next transaction of any client.
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.connecting.engine import DatabaseSettings, with_driver
from treeclaim.store.database.failures.kinds import unavailable

ADVICE = (
    "Let the pooler lend a session for as long as a client stays connected (PgBouncer's "
    "pool_mode = session), or connect to the server itself."
)

SHARED = "A pooler lends sessions of the database for single transactions"

_SESSION = "SELECT pg_backend_pid(), CAST(pg_postmaster_start_time() AS TEXT)"
_PROBES = 5
"""Transactions of each connection. A pooler that prefers the session used last gives the same one to both
connections; one that uses sessions in turn gives several to one connection."""


def require_own_sessions(settings: DatabaseSettings) -> None:
    """Require that each connection has a session of its own.

    Raises:
        StoreUnavailableError: if a pooler lends sessions for single transactions, or the database
            does not answer.
    """
    try:
        if is_lent_by_transaction(settings):
            raise StoreUnavailableError(f"{SHARED}. {ADVICE}")
    except SQLAlchemyError as error:
        raise unavailable(error) from error


def is_lent_by_transaction(settings: DatabaseSettings) -> bool:
    """Return whether transactions of two connections that are open at once run in the same session.

    Raises:
        SQLAlchemyError: if the database does not answer.
    """
    url = with_driver(make_url(settings.url))
    if url.get_backend_name() != "postgresql":
        return False
    # Neither prepares statements nor changes settings, which other clients would find.
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
    return len(set(sessions)) > 1 or any(one == other for one, other in sessions)


def _load_session(connection: Connection) -> tuple[int, str]:
    """Return the session in which a transaction runs."""
    with connection.begin():
        process, since = connection.exec_driver_sql(_SESSION).one()
    return process, since
