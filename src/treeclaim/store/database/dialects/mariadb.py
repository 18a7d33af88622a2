# SPDX-License-Identifier: Apache-2.0
"""MariaDB and MySQL: settings of sessions, Galera's causal reads, and fewer round trips."""

from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.clock import set_clock
from treeclaim.store.database.dialects import mariadb_timeouts
from treeclaim.store.database.dialects.systems import IS_GALERA, System
from treeclaim.store.database.timeouts import Timeouts

_GALERA_SYNC_WAIT = 7
"""Wait for the commits of other nodes before reads, updates, deletions and insertions."""

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

_LONGEST_TEXT = 1 << 28
"""Bytes that the server may put together; it would cut off what is longer than a megabyte."""

_ASSUMED = {
    "autocommit": "0",
    "completion_type": "NO_CHAIN",
    "foreign_key_checks": "1",
    "group_concat_max_len": str(_LONGEST_TEXT),
    "sql_auto_is_null": "0",
    "sql_big_selects": "1",
    "sql_quote_show_create": "1",
    "sql_safe_updates": "0",
    "sql_select_limit": "18446744073709551615",
    "time_zone": "'+00:00'",
    "unique_checks": "1",
}
"""Settings that statements, driver and SQLAlchemy rely on; a server may be set otherwise."""


def prepare(engine: Engine, sql_mode: str, timeouts: Timeouts) -> None:
    """Set up each connection, and how transactions begin and end.

    Args:
        engine: Its pool must not reset connections by itself: that would be a round trip for each
            transaction, and SQLAlchemy rolls back what is open when a connection is closed.
        sql_mode: SQL mode of the sessions; empty for the server's.
        timeouts: The timeouts of everything that waits.
    """
    prepare_sessions(engine, sql_mode, timeouts)

    @sa.event.listens_for(engine, "connect")
    def _set_session(connection: Any, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        record.info[IS_GALERA] = _wait_for_other_nodes(cursor)
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        if not connection.get_execution_options().get("treeclaim_writing", False):
            # For this transaction only: to restore a session setting afterwards could fail.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def prepare_sessions(engine: Engine, sql_mode: str, timeouts: Timeouts) -> None:
    """Say to each session what statements and driver take for granted, and set its timeouts.

    Args:
        engine: The engine of the connections.
        sql_mode: As the operator wants it; empty for the server's.
        timeouts: The timeouts of everything that waits.
    """

    # Before SQLAlchemy asks the server about itself, its quotes among others.
    @sa.event.listens_for(engine, "connect", insert=True)
    def _set_session(connection: Any, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SELECT @@sql_mode, {_MICROSECONDS}")
        servers, server_time = cursor.fetchone()
        set_clock(record, server_time / 1_000_000)
        cursor.execute(f"SET NAMES utf8mb4, {_assumed_charset(_mode(sql_mode or servers))}")
        cursor.close()

    mariadb_timeouts.prepare(engine, timeouts)


def _mode(mode_text: str) -> str:
    """Return an SQL mode as far as statements understand it."""
    named = {name.strip().upper() for name in mode_text.split(",")}
    return ",".join(sorted(named & _UNDERSTOOD | {_STRICT}))


def _assumed_charset(mode: str) -> str:
    settings = _ASSUMED | {"sql_mode": f"'{mode}'"}
    return ", ".join(f"SESSION {name} = {value}" for name, value in settings.items())


def only_read(engine: Engine) -> None:
    """Begin read-only transactions: the server refuses all writes."""

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql("START TRANSACTION READ ONLY")


def _wait_for_other_nodes(cursor: Any) -> bool:
    """Return whether the server is a node of a Galera cluster.

    There, each transaction of the session sees all earlier commits of all nodes from now on.
    """
    cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
    is_galera = any(value == "ON" for _, value in cursor.fetchall())
    if is_galera:
        cursor.execute(f"SET SESSION wsrep_sync_wait = {_GALERA_SYNC_WAIT}")
    return is_galera


# Names of locks are global to the server, so the name includes the database.
_LOCK_NAME = sa.func.left(sa.func.concat("treeclaim schema ", sa.func.database()), 64)


class _MariaDB(System):
    """MariaDB and MySQL."""

    locks_in_order = False
    holds_all_planes = False

    def extend_timeouts(self, connection: Connection, timeouts: Timeouts, deadline: float) -> None:
        del deadline
        mariadb_timeouts.extend_timeouts(connection, timeouts)

    def set_read_timeout(self, connection: Any, seconds: float) -> None:
        mariadb_timeouts.set_read_timeout(connection, seconds)

    def make_autocommitting(self, connection: Any) -> None:
        connection.autocommit(True)
        cursor = connection.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.close()

    def take_lock(self, connection: Connection, seconds: int) -> bool:
        return bool(connection.execute(sa.select(sa.func.get_lock(_LOCK_NAME, seconds))).scalar())

    def give_lock_back(self, connection: Connection) -> None:
        """Give the lock back; a lost connection has done so already."""
        with suppress(DBAPIError):
            connection.execute(sa.select(sa.func.release_lock(_LOCK_NAME)))


SYSTEM = _MariaDB()
