# SPDX-License-Identifier: Apache-2.0
"""Timeouts of MariaDB and MySQL: on the socket, and in the session."""

import contextlib
import socket
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.timeouts import Timeouts

_MILLISECONDS = 1000
_PROBES = 2
"""Keepalive probes without an answer; with the idle time before them they make up the timeout."""

_EXTENDED = "treeclaim_extended"
"""Key in a connection's `info`: whether its session has the timeouts of reading everything, and ends with that."""

_CHARSET = "utf8mb4"
"""The character set of the connection, whatever the URL says. In others, text beyond the basic
plane would arrive truncated, and match other names; in this one the server compares it correctly."""


def prepare(engine: Engine, timeouts: Timeouts) -> None:
    """Set the timeouts of an engine's connections."""

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

    @sa.event.listens_for(engine, "connect", insert=True)
    def _set_timeouts(connection: Any, _record: Any) -> None:
        set_read_timeout(connection, timeouts.silence)
        _set_keepalive(connection, timeouts)
        cursor = connection.cursor()
        cursor.execute(_settings(connection, timeouts))
        cursor.close()

    @sa.event.listens_for(engine, "checkin")
    def _given_back(connection: Any, record: ConnectionPoolEntry) -> None:
        if connection is not None and record.info.pop(_EXTENDED, False):
            record.invalidate()


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


def set_read_timeout(connection: Any, seconds: float) -> None:
    """Let a connection of pymysql fail after a number of seconds without a byte."""
    if hasattr(connection, "_read_timeout"):
        # The driver has no public setter.
        connection._read_timeout = seconds  # noqa: SLF001


def extend_timeouts(connection: Connection, timeouts: Timeouts) -> None:
    """Set the timeouts of reading everything, for the rest of a transaction.

    Raises:
        DBAPIError: as for any statement.
    """
    connection.info[_EXTENDED] = True
    driver: Any = connection.connection.dbapi_connection
    set_read_timeout(driver, timeouts.load_silence)
    connection.exec_driver_sql(_settings(driver, timeouts.extended()))


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


def _settings(connection: Any, timeouts: Timeouts) -> str:
    """Return one statement that sets the timeouts which the server of a connection supports."""
    if "mariadb" in str(connection.get_server_info()).lower():
        time_limits = {
            "max_statement_time": timeouts.statement,
            "idle_transaction_timeout": timeouts.idle,
        }
    else:
        time_limits = {"max_execution_time": timeouts.statement * _MILLISECONDS}
    limits = {
        "innodb_lock_wait_timeout": timeouts.lock,
        "lock_wait_timeout": timeouts.lock,
    } | time_limits
    settings = ", ".join(f"{name} = {value}" for name, value in limits.items())
    return f"SET SESSION {settings}"
