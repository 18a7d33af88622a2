# SPDX-License-Identifier: Apache-2.0
"""What MariaDB and MySQL need: isolation, Galera's waiting, and no needless ways to the server."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, ExceptionContext
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database import mariadb_waits
from treeclaim.store.database.waits import Waits

_GALERA = "treeclaim_galera"
"""What is known of a connection: whether its server is a node of a Galera cluster."""

_GALERA_SYNC_WAIT = 7
"""Before reads, updates, deletions and insertions: wait for what other nodes have committed."""

_ENDED = "treeclaim_ended"
"""What is known of a connection: whether its last transaction was committed or rolled back."""


def prepare(engine: Engine, sql_mode: str, waits: Waits) -> None:
    """Set up each connection, and begin and end transactions as they are meant.

    Args:
        engine: It must not reset connections by itself.
        sql_mode: Of the sessions; empty leaves the server's.
        waits: The limits of all waiting.
    """
    mariadb_waits.prepare(engine, waits)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        if sql_mode:
            cursor.execute("SET SESSION sql_mode = %s", (sql_mode,))
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        record.info[_GALERA] = _wait_for_other_nodes(cursor)
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        if not connection.get_execution_options().get("treeclaim_writing", False):
            # For this transaction only: whatever must be undone afterwards could fail afterwards.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    _spare_second_rollbacks(engine)


def _spare_second_rollbacks(engine: Engine) -> None:
    """Roll back what comes back to the pool, unless it was just committed or rolled back.

    The pool would do so each time, and wait for the server's answer.
    """

    @sa.event.listens_for(engine, "checkout")
    def _lent(_connection: Any, record: ConnectionPoolEntry, _proxy: Any) -> None:
        record.info[_ENDED] = False

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.info[_ENDED] = False

    @sa.event.listens_for(engine, "commit")
    @sa.event.listens_for(engine, "rollback")
    def _ended(connection: Connection) -> None:
        if not connection.invalidated:
            connection.info[_ENDED] = True

    @sa.event.listens_for(engine, "handle_error")
    def _failed(context: ExceptionContext) -> None:
        if context.connection is not None and not context.connection.invalidated:
            # It may be COMMIT that failed.
            context.connection.info[_ENDED] = False

    @sa.event.listens_for(engine, "reset")
    def _given_back(connection: Any, record: ConnectionPoolEntry, _state: Any) -> None:
        if not record.info.get(_ENDED, False):
            connection.rollback()


def only_read(engine: Engine) -> None:
    """Let the server refuse all changes."""

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql("START TRANSACTION READ ONLY")


def _wait_for_other_nodes(cursor: Any) -> bool:
    """On a Galera cluster, let each transaction see all that was committed before it anywhere.

    Tells whether it is one.
    """
    cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
    found = cursor.fetchone()
    if found is None or found[1] != "ON":
        return False
    cursor.execute(f"SET SESSION wsrep_sync_wait = {_GALERA_SYNC_WAIT}")
    return True


def is_galera(connection: Connection) -> bool:
    """Tell whether a connection's server is a node of a Galera cluster."""
    return bool(connection.info.get(_GALERA))
