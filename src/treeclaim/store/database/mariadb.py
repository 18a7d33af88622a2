# SPDX-License-Identifier: Apache-2.0
"""MariaDB and MySQL: session settings and timeouts, and causal reads on Galera."""

import contextlib
import socket
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.systems import GALERA_NODE, DatabaseSettings, System, set_clock
from treeclaim.store.database.timeouts import KEEPALIVE_PROBES, MILLISECONDS, Timeouts

_EXTENDED = "treeclaim_extended"
"""Key in a connection's `info`: whether its session has extended timeouts, and must be closed after the transaction."""

_CHARSET = "utf8mb4"
"""The character set of each connection, whatever the URL says. In other sets, text beyond the basic plane of Unicode
would arrive truncated and match other names."""

_GALERA_SYNC_WAIT = 7
"""Bits for reads, updates, deletions and insertions: each waits for the commits of other nodes."""

_MICROSECONDS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

_KEPT_MODES = {
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_AUTO_CREATE_USER",
    "NO_ENGINE_SUBSTITUTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TRADITIONAL",
}
"""Configurable SQL modes. Modes that change the meaning of quotes, backslashes or operators are dropped."""

_STRICT = "STRICT_ALL_TABLES"
"""Without this mode, the server would truncate values that are too long for their columns."""

_LONGEST_TEXT = 1 << 28
"""Bytes of an aggregated text; by default, the server truncates it at a megabyte."""

_ASSUMED_SETTINGS = {
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
"""Settings that statements, driver and SQLAlchemy rely on; the defaults of a server may differ."""


@cache
def make_connection_class() -> Any:
    """Return PyMySQL's connection class with one TLS context for all connections without TLS options.

    Creating a context reads all certificate authorities of the machine, which blocks all threads for 40 ms;
    without TLS options they verify nothing. With options, each connection creates its context, because the
    files may have been renewed.
    """
    # Services on other databases save the 8 MB of this import.
    import pymysql  # noqa: PLC0415

    class SharingConnection(pymysql.connections.Connection):
        shared_context: Any = None

        def _create_ssl_ctx(self, options: Any) -> Any:
            make: Any = super()._create_ssl_ctx  # type: ignore[misc]
            if options:
                return make(options)
            if SharingConnection.shared_context is None:
                SharingConnection.shared_context = make({})
            return SharingConnection.shared_context

    return SharingConnection


def _choose_mode(mode_text: str) -> str:
    modes = {name.strip().upper() for name in mode_text.split(",")}
    return ",".join(sorted(modes & _KEPT_MODES | {_STRICT}))


def _list_limits(connection: Any, timeouts: Timeouts) -> dict[str, Any]:
    """Return the timeouts that the server of a connection supports."""
    limits = {"innodb_lock_wait_timeout": timeouts.lock, "lock_wait_timeout": timeouts.lock}
    if "mariadb" in str(connection.get_server_info()).lower():
        limits["max_statement_time"] = timeouts.statement
        limits["idle_transaction_timeout"] = timeouts.idle
    else:
        limits["max_execution_time"] = timeouts.statement * MILLISECONDS
    return limits


def _format_assignments(settings: dict[str, Any]) -> str:
    return ", ".join(f"SESSION {name} = {value}" for name, value in settings.items())


def _set_keepalive(connection: Any, timeouts: Timeouts) -> None:
    """Enable TCP keepalive, which also detects a lost machine while the connection is idle."""
    connection_socket: Any = getattr(connection, "_sock", None)
    if getattr(connection_socket, "family", None) not in {socket.AF_INET, socket.AF_INET6}:
        return
    options = {
        "TCP_KEEPIDLE": timeouts.keepalive,
        "TCP_KEEPINTVL": timeouts.keepalive,
        "TCP_KEEPCNT": KEEPALIVE_PROBES,
        "TCP_USER_TIMEOUT": timeouts.tcp * MILLISECONDS,
    }
    connection_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        # Some operating systems lack some of them.
        with contextlib.suppress(AttributeError, OSError):
            connection_socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _enable_causal_reads(cursor: Any) -> str | None:
    """Enable causal reads on a Galera node, and return its unique id; return None outside of a cluster."""
    cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
    if not any(value == "ON" for _, value in cursor.fetchall()):
        return None
    cursor.execute(f"SET SESSION wsrep_sync_wait = {_GALERA_SYNC_WAIT}")
    cursor.execute("SHOW STATUS LIKE 'wsrep_gcomm_uuid'")
    ((_, node),) = cursor.fetchall()
    return str(node)


# Names of locks are global to the server, so the name includes the database.
_LOCK_NAME = sa.func.left(sa.func.concat("treeclaim schema ", sa.func.database()), 64)


class _MariaDB(System):
    """MariaDB and MySQL."""

    locks_in_order = False

    def prepare(self, engine: Engine, settings: DatabaseSettings) -> None:
        timeouts = settings.timeouts

        @sa.event.listens_for(engine, "do_connect")
        def _connect(
            dialect: Any, _record: Any, arguments: Any, parameters: dict[str, Any]
        ) -> Any | None:
            parameters["charset"] = _CHARSET
            parameters.pop("collation", None)
            if dialect.driver != "pymysql":
                return None
            # Authentication waits for responses, so the read timeout starts as the connect timeout.
            defaults = {
                "connect_timeout": timeouts.connect,
                "read_timeout": timeouts.connect,
                "write_timeout": timeouts.tcp,
            }
            return make_connection_class()(*arguments, **(defaults | parameters))

        # Inserted first: SQLAlchemy's own listener reads settings, such as the SQL mode.
        @sa.event.listens_for(engine, "connect", insert=True)
        def _set_session(connection: Any, record: ConnectionPoolEntry) -> None:
            self.set_read_timeout(connection, timeouts.silence)
            _set_keepalive(connection, timeouts)
            cursor = connection.cursor()
            cursor.execute(f"SELECT @@sql_mode, {_MICROSECONDS}")
            server_mode, server_time = cursor.fetchone()
            set_clock(record, server_time / 1_000_000)
            mode = _choose_mode(settings.mysql_sql_mode or server_mode)
            session = (
                _ASSUMED_SETTINGS | {"sql_mode": f"'{mode}'"} | _list_limits(connection, timeouts)
            )
            cursor.execute(f"SET NAMES {_CHARSET}, {_format_assignments(session)}")
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            record.info[GALERA_NODE] = _enable_causal_reads(cursor)
            cursor.close()

        @sa.event.listens_for(engine, "checkin")
        def _close_extended(connection: Any, record: ConnectionPoolEntry) -> None:
            if connection is not None and record.info.pop(_EXTENDED, False):
                record.invalidate()

        @sa.event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            if not connection.get_execution_options().get("treeclaim_writing", False):
                # For this transaction only: restoring a session setting afterwards could fail.
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def extend_timeouts(self, connection: Connection, timeouts: Timeouts, deadline: float) -> None:
        del deadline
        connection.info[_EXTENDED] = True
        driver: Any = connection.connection.dbapi_connection
        self.set_read_timeout(driver, timeouts.load_silence)
        connection.exec_driver_sql(
            f"SET {_format_assignments(_list_limits(driver, timeouts.make_extended()))}"
        )

    def set_read_timeout(self, connection: Any, seconds: float) -> None:
        if hasattr(connection, "_read_timeout"):
            # PyMySQL has no public setter.
            connection._read_timeout = seconds  # noqa: SLF001

    def enable_autocommit(self, connection: Any) -> None:
        connection.autocommit(True)
        cursor = connection.cursor()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.close()

    def acquire_schema_lock(self, connection: Connection, seconds: int) -> bool:
        return bool(connection.execute(sa.select(sa.func.get_lock(_LOCK_NAME, seconds))).scalar())

    def release_schema_lock(self, connection: Connection) -> None:
        # A lost connection has released it already.
        with contextlib.suppress(DBAPIError):
            connection.execute(sa.select(sa.func.release_lock(_LOCK_NAME)))


SYSTEM = _MariaDB()
