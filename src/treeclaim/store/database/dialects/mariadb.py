# SPDX-License-Identifier: Apache-2.0
"""MariaDB and MySQL: settings of sessions, Galera's causal reads, and fewer round trips."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, ExceptionContext
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.clock import set_clock
from treeclaim.store.database.dialects import mariadb_timeouts
from treeclaim.store.database.timeouts import Timeouts

_GALERA = "treeclaim_galera"
"""Key in a connection's `info`: whether its server is a node of a Galera cluster."""

_GALERA_SYNC_WAIT = 7
"""Before reads, updates, deletions and insertions: wait for the commits of other nodes."""

_ENDED = "treeclaim_ended"
"""Key in a connection's `info`: whether its last transaction was committed or rolled back."""


_MICROSECONDS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

_UNDERSTOOD = {
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_AUTO_CREATE_USER",
    "NO_ENGINE_SUBSTITUTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TRADITIONAL",
}
"""SQL modes under which statements mean the same; an operator's others are left out. So are those
that give quotes, backslashes or operators another meaning."""

_STRICT = "STRICT_ALL_TABLES"
"""Without it, the server would cut off what a column cannot hold, and store the rest."""

_ASSUMED = {
    "autocommit": "0",
    "completion_type": "NO_CHAIN",
    "foreign_key_checks": "1",
    "sql_auto_is_null": "0",
    "sql_big_selects": "1",
    "sql_quote_show_create": "1",
    "sql_safe_updates": "0",
    "sql_select_limit": "18446744073709551615",
    "time_zone": "'+00:00'",
    "unique_checks": "1",
}
"""What statements, driver and SQLAlchemy take for granted; a server may be set otherwise."""


def prepare(engine: Engine, sql_mode: str, timeouts: Timeouts) -> None:
    """Set up each connection, and how transactions begin and end.

    Args:
        engine: Its pool must not reset connections by itself.
        sql_mode: Of the sessions; empty for the server's.
        timeouts: Of all waiting.
    """
    prepare_sessions(engine, sql_mode, timeouts)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        record.info[_GALERA] = _wait_for_other_nodes(cursor)
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        if not connection.get_execution_options().get("treeclaim_writing", False):
            # For this transaction only: to restore a session setting afterwards could fail.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    _skip_second_rollbacks(engine)


def prepare_sessions(engine: Engine, sql_mode: str, timeouts: Timeouts) -> None:
    """Say to each session what statements and driver take for granted, and set its timeouts.

    Args:
        engine: Of the connections.
        sql_mode: As the operator wants it; empty for the server's.
        timeouts: Of all waiting.
    """

    # Before SQLAlchemy asks the server about itself, its quotes among others.
    @sa.event.listens_for(engine, "connect", insert=True)
    def _connected(connection: Any, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SELECT @@sql_mode, {_MICROSECONDS}")
        servers, told = cursor.fetchone()
        set_clock(record, told / 1_000_000)
        cursor.execute(f"SET NAMES utf8mb4, {_assumed(_mode(sql_mode or servers))}")
        cursor.close()

    mariadb_timeouts.prepare(engine, timeouts)


def _mode(wanted: str) -> str:
    """Return an SQL mode as far as statements understand it."""
    named = {name.strip().upper() for name in wanted.split(",")}
    return ",".join(sorted(named & _UNDERSTOOD | {_STRICT}))


def _assumed(mode: str) -> str:
    settings = _ASSUMED | {"sql_mode": f"'{mode}'"}
    return ", ".join(f"SESSION {name} = {value}" for name, value in settings.items())


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
