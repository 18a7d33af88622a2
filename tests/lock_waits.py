# SPDX-License-Identifier: Apache-2.0
"""Sessions of a database server that wait for locks of another session."""

import time

import sqlalchemy as sa

from tests.servers import eventually

_INNODB_PAUSE = 0.15
"""Seconds: InnoDB refreshes its tables of locks only a tenth of a second after they were last read."""

_SESSION = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT connection_id()"}
_WAITING = {
    "postgresql": (
        "SELECT pid FROM pg_stat_activity WHERE {session} = ANY(pg_blocking_pids(pid))"
        " AND now() - query_start > INTERVAL '{seconds} seconds'"
    ),
    "mysql": (
        "SELECT waiting.trx_id FROM information_schema.innodb_lock_waits"
        " JOIN information_schema.innodb_trx waiting ON waiting.trx_id = requesting_trx_id"
        " JOIN information_schema.innodb_trx holding ON holding.trx_id = blocking_trx_id"
        " WHERE holding.trx_mysql_thread_id = {session}"
        " AND waiting.trx_wait_started <= now() - INTERVAL {seconds} SECOND"
    ),
}


LOCK = sa.text("UPDATE resource_providers SET updated_at = NULL WHERE uuid = :uuid")
"""Locks the row of a provider."""


def lock(connection, provider):
    """Lock the row of a provider, until the transaction of the connection ends."""
    connection.execute(LOCK, {"uuid": provider})


def session_of(connection):
    """Return the number by which the server knows the session of a connection."""
    return connection.exec_driver_sql(_SESSION[connection.dialect.name]).scalar()


def waiters(engine, session, seconds=0):
    """Return the transactions that have waited for so many seconds for a lock of a session."""
    statement = _WAITING[engine.dialect.name].format(session=session, seconds=seconds)
    if engine.dialect.name == "mysql":
        time.sleep(_INNODB_PAUSE)
    with engine.connect() as connection:
        return set(connection.exec_driver_sql(statement).scalars())


def await_waiter(engine, session, seconds=0, patience=60.0):
    """Wait until a transaction waits for a lock of a session; return all that do."""
    return eventually(
        lambda: waiters(engine, session, seconds), "a transaction waits for the lock", patience
    )
