# SPDX-License-Identifier: Apache-2.0
"""MariaDB and MySQL: isolation levels, Galera's causal reads, and fewer round trips."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, ExceptionContext
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.dialects import mariadb_timeouts
from treeclaim.store.database.timeouts import Timeouts

_GALERA = "treeclaim_galera"
"""Key in a connection's `info`: whether its server is a node of a Galera cluster."""

_GALERA_SYNC_WAIT = 7
"""Before reads, updates, deletions and insertions: wait for the commits of other nodes."""

_ENDED = "treeclaim_ended"
"""Key in a connection's `info`: whether its last transaction was committed or rolled back."""


def prepare(engine: Engine, sql_mode: str, timeouts: Timeouts) -> None:
    """Set up each connection, and how transactions begin and end.

    Args:
        engine: Its pool must not reset connections by itself.
        sql_mode: Of the sessions; empty leaves the server's.
        timeouts: Of all waiting.
    """
    mariadb_timeouts.prepare(engine, timeouts)

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
            # For this transaction only: to restore a session setting afterwards could fail.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    _skip_second_rollbacks(engine)


def _skip_second_rollbacks(engine: Engine) -> None:
    """Roll back a connection returned to the pool, unless its transaction has ended.

    The pool would always do so: a round trip for each transaction.
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
        connection = context.connection
        # The COMMIT may have failed. Other errors need nothing, nor have all connections this record:
        # the first one of an engine, which SQLAlchemy asks about the server, has none.
        if connection is not None and connection.in_transaction() and not connection.invalidated:
            connection.info[_ENDED] = False

    @sa.event.listens_for(engine, "reset")
    def _given_back(connection: Any, record: ConnectionPoolEntry, _state: Any) -> None:
        if not record.info.get(_ENDED, False):
            connection.rollback()


def only_read(engine: Engine) -> None:
    """Begin read-only transactions: the server refuses all writes."""

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql("START TRANSACTION READ ONLY")


def _wait_for_other_nodes(cursor: Any) -> bool:
    """On a Galera cluster, let each transaction see all earlier commits of all nodes.

    Returns:
        Whether the server is a node of one.
    """
    cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
    found = cursor.fetchone()
    if found is None or found[1] != "ON":
        return False
    cursor.execute(f"SET SESSION wsrep_sync_wait = {_GALERA_SYNC_WAIT}")
    return True


def is_galera(connection: Connection) -> bool:
    """Return whether a connection's server is a node of a Galera cluster."""
    return bool(connection.info.get(_GALERA))
