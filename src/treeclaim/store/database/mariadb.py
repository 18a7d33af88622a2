# SPDX-License-Identifier: Apache-2.0
"""MariaDB and MySQL: settings and timeouts of sessions, and Galera's causal reads."""

import contextlib
import socket
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.systems import IS_GALERA, DatabaseSettings, System, set_clock
from treeclaim.store.database.timeouts import Timeouts

_MILLISECONDS = 1000
_PROBES = 2
"""Keepalive probes without an answer; with the idle time before them they make up the timeout."""

_EXTENDED = "treeclaim_extended"
"""Key in a connection's `info`: whether its session has the timeouts of reading everything, and ends with that."""

_CHARSET = "utf8mb4"
"""The character set of the connection, whatever the URL says. In others, text beyond the basic
plane would arrive truncated, and match other names; in this one the server compares it correctly."""


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


@cache
def connection_class() -> Any:
    """Return the class of the driver's connections; those without options of TLS share a context.

    For each context all certificate authorities of the machine are read, 40 ms in which no other thread
    of the process runs. Without options nothing is verified by them. With options each connection has a
    context of its own, as the files that they name may have been renewed.
    """
    # Eight megabytes that services on other databases do without.
    import pymysql  # noqa: PLC0415

    class SharingConnection(pymysql.connections.Connection):
        shared: Any = None

        def _create_ssl_ctx(self, options: Any) -> Any:
            make: Any = super()._create_ssl_ctx  # type: ignore[misc]
            if options:
                return make(options)
            if SharingConnection.shared is None:
                SharingConnection.shared = make({})
            return SharingConnection.shared

    return SharingConnection


def _mode(mode_text: str) -> str:
    """Return an SQL mode as far as statements understand it."""
    named = {name.strip().upper() for name in mode_text.split(",")}
    return ",".join(sorted(named & _UNDERSTOOD | {_STRICT}))


def _limits(connection: Any, timeouts: Timeouts) -> dict[str, Any]:
    """Return the timeouts which the server of a connection supports."""
    limits = {"innodb_lock_wait_timeout": timeouts.lock, "lock_wait_timeout": timeouts.lock}
    if "mariadb" in str(connection.get_server_info()).lower():
        limits["max_statement_time"] = timeouts.statement
        limits["idle_transaction_timeout"] = timeouts.idle
    else:
        limits["max_execution_time"] = timeouts.statement * _MILLISECONDS
    return limits


def _assignments(settings: dict[str, Any]) -> str:
    return ", ".join(f"SESSION {name} = {value}" for name, value in settings.items())


def _set_keepalive(connection: Any, timeouts: Timeouts) -> None:
    """Let TCP detect a machine that is gone, also while the connection is idle."""
    line = getattr(connection, "_sock", None)
    if line is None or line.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    options = {
        "TCP_KEEPIDLE": timeouts.keepalive,
        "TCP_KEEPINTVL": timeouts.keepalive,
        "TCP_KEEPCNT": _PROBES,
        "TCP_USER_TIMEOUT": timeouts.tcp * _MILLISECONDS,
    }
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        # Not every system has all of them.
        with contextlib.suppress(AttributeError, OSError):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


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

    def prepare(self, engine: Engine, settings: DatabaseSettings) -> None:
        timeouts = settings.timeouts

        @sa.event.listens_for(engine, "do_connect")
        def _connecting(
            dialect: Any, _record: Any, arguments: Any, parameters: dict[str, Any]
        ) -> Any | None:
            parameters["charset"] = _CHARSET
            parameters.pop("collation", None)
            if dialect.driver != "pymysql":
                return None
            # Authentication waits for answers too, so the socket has the connect timeout at first.
            defaults = {
                "connect_timeout": timeouts.connect,
                "read_timeout": timeouts.connect,
                "write_timeout": timeouts.tcp,
            }
            return connection_class()(*arguments, **(defaults | parameters))

        # Before SQLAlchemy asks the server about itself, its quotes among others.
        @sa.event.listens_for(engine, "connect", insert=True)
        def _set_session(connection: Any, record: ConnectionPoolEntry) -> None:
            self.set_read_timeout(connection, timeouts.silence)
            _set_keepalive(connection, timeouts)
            cursor = connection.cursor()
            cursor.execute(f"SELECT @@sql_mode, {_MICROSECONDS}")
            servers, server_time = cursor.fetchone()
            set_clock(record, server_time / 1_000_000)
            assumed = _ASSUMED | {"sql_mode": f"'{_mode(settings.mysql_sql_mode or servers)}'"}
            assumed |= _limits(connection, timeouts)
            cursor.execute(f"SET NAMES {_CHARSET}, {_assignments(assumed)}")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            record.info[IS_GALERA] = _wait_for_other_nodes(cursor)
            cursor.close()

        @sa.event.listens_for(engine, "checkin")
        def _given_back(connection: Any, record: ConnectionPoolEntry) -> None:
            if connection is not None and record.info.pop(_EXTENDED, False):
                record.invalidate()

        @sa.event.listens_for(engine, "begin")
        def _begun(connection: Connection) -> None:
            if not connection.get_execution_options().get("treeclaim_writing", False):
                # For this transaction only: to restore a session setting afterwards could fail.
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def extend_timeouts(self, connection: Connection, timeouts: Timeouts, deadline: float) -> None:
        del deadline
        connection.info[_EXTENDED] = True
        driver: Any = connection.connection.dbapi_connection
        self.set_read_timeout(driver, timeouts.load_silence)
        connection.exec_driver_sql(f"SET {_assignments(_limits(driver, timeouts.extended()))}")

    def set_read_timeout(self, connection: Any, seconds: float) -> None:
        if hasattr(connection, "_read_timeout"):
            # PyMySQL has no public setter.
            connection._read_timeout = seconds  # noqa: SLF001

    def make_autocommitting(self, connection: Any) -> None:
        connection.autocommit(True)
        cursor = connection.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.close()

    def take_lock(self, connection: Connection, seconds: int) -> bool:
        return bool(connection.execute(sa.select(sa.func.get_lock(_LOCK_NAME, seconds))).scalar())

    def give_lock_back(self, connection: Connection) -> None:
        """Give the lock back; a lost connection has done so already."""
        with contextlib.suppress(DBAPIError):
            connection.execute(sa.select(sa.func.release_lock(_LOCK_NAME)))


SYSTEM = _MariaDB()
