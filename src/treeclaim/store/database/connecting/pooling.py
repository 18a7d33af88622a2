# SPDX-License-Identifier: Apache-2.0
"""Whether a pooler lends a session of PostgreSQL for one transaction only, as PgBouncer may.

There, what a process sets in a session, and the statements that it prepares in it, affect the next
transaction of any client, and its own next one meets what others have left.
"""

from dataclasses import replace

from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.connecting.connections import connected
from treeclaim.store.database.connecting.engine import DatabaseSettings, make_engine
from treeclaim.store.database.dialects.systems import system_of
from treeclaim.store.database.failures.kinds import unavailable

OPTION = "[treeclaim]/database_transaction_pooling"

ADVICE = (
    f"Set {OPTION} = true, or let the pooler lend sessions for as long as a client stays "
    "(PgBouncer's pool_mode = session)."
)

SHARED = "A pooler lends sessions of the database for single transactions"

_SESSION = "SELECT pg_backend_pid(), CAST(pg_postmaster_start_time() AS TEXT)"
_LOOKS = 5
"""How often each connection looks. A pooler that takes the session used last gives the same one to both at once;
one that takes them in turn gives a connection several."""


def require_own_sessions(settings: DatabaseSettings) -> None:
    """Require that each connection has a session of its own, unless the operator says otherwise.

    Raises:
        StoreUnavailableError: if a pooler lends them for single transactions, or the database does
            not answer.
    """
    if settings.transaction_pooling:
        return
    try:
        if is_lent_by_transaction(settings):
            raise StoreUnavailableError(f"{SHARED}. {ADVICE}")
    except SQLAlchemyError as error:
        raise unavailable(error) from error


def is_lent_by_transaction(settings: DatabaseSettings) -> bool:
    """Tell whether transactions of two connections that are open at once meet the same session.

    Raises:
        SQLAlchemyError: if the database does not answer.
    """
    careful = replace(settings, transaction_pooling=True, max_pool_size=None, max_overflow=None)
    engine = make_engine(careful)
    if not system_of(engine).ABILITIES.is_shared_by_poolers:
        return False
    try:
        with connected(engine) as first, connected(engine) as second:
            met = [(_session(first), _session(second)) for _ in range(_LOOKS)]
    finally:
        engine.dispose()
    return len(set(met)) > 1 or any(first_met == second_met for first_met, second_met in met)


def _session(connection: Connection) -> tuple[int, str]:
    """Return which session a transaction meets."""
    with connection.begin():
        process, since = connection.exec_driver_sql(_SESSION).one()
    return process, since
