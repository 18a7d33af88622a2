# SPDX-License-Identifier: Apache-2.0
"""The limits of waiting for MariaDB and MySQL: on the socket, and in the session."""

import contextlib
import socket
from typing import Any

import pymysql
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.waits import Waits

_MILLISECONDS = 1000
_PROBES = 2
"""Signs of life asked for in vain; with the idleness before them they make up the limit."""

_UNHURRIED = "treeclaim_unhurried"
"""What is known of a connection: whether its session has the limits of reading everything."""

_NARROW = {"utf8", "utf8mb3"}
"""Character sets that are sent over the line without what lies beyond the basic plane. Such text
would arrive cut off, and find what it does not name; in utf8mb4 the server compares it right."""


def prepare(engine: Engine, waits: Waits) -> None:
    """Bound all waiting of an engine."""

    @sa.event.listens_for(engine, "do_connect")
    def _connecting(
        dialect: Any, _record: Any, given: Any, parameters: dict[str, Any]
    ) -> Any | None:
        if dialect.driver != "pymysql":
            return None
        if parameters.get("charset") in _NARROW:
            parameters["charset"] = "utf8mb4"
        # To be let in takes answers too, so the limit of connecting is the socket's at first.
        own = {
            "connect_timeout": waits.connect,
            "read_timeout": waits.connect,
            "write_timeout": waits.tcp,
        }
        return pymysql.connect(*given, **(own | parameters))

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        listen(connection, waits.silence)
        _watch(connection, waits)
        _set(connection, waits)

    @sa.event.listens_for(engine, "checkin")
    def _given_back(connection: Any, record: ConnectionPoolEntry) -> None:
        if connection is None or not record.info.pop(_UNHURRIED, False):
            return
        try:
            listen(connection, waits.silence)
            _set(connection, waits)
        except engine.dialect.loaded_dbapi.Error as error:
            record.invalidate(error)


def listen(connection: Any, seconds: float) -> None:
    """Give a connection of pymysql up after so many seconds without a byte."""
    if isinstance(connection, pymysql.connections.Connection):
        # There is no public way to change what was said at its making.
        connection._read_timeout = seconds  # type: ignore[attr-defined] # noqa: SLF001


def take_time(connection: Connection, waits: Waits) -> None:
    """Let the rest of a transaction read everything."""
    connection.info[_UNHURRIED] = True
    driver: Any = connection.connection.dbapi_connection
    listen(driver, waits.load_silence)
    _set(driver, waits.unhurried())


def _watch(connection: Any, waits: Waits) -> None:
    """Let TCP notice a machine that is gone, also while nobody uses the connection."""
    line = getattr(connection, "_sock", None)
    if line is None or line.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    options = {
        "TCP_KEEPIDLE": waits.keepalive,
        "TCP_KEEPINTVL": waits.keepalive,
        "TCP_KEEPCNT": _PROBES,
        "TCP_USER_TIMEOUT": waits.tcp * _MILLISECONDS,
    }
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        # Some systems lack some.
        with contextlib.suppress(AttributeError, OSError):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _set(connection: Any, waits: Waits) -> None:
    """Set the limits of the session, as far as the server knows them."""
    cursor = connection.cursor()
    try:
        if "mariadb" in str(connection.get_server_info()).lower():
            own = {
                "max_statement_time": waits.statement,
                "idle_transaction_timeout": waits.idle,
            }
        else:
            own = {"max_execution_time": waits.statement * _MILLISECONDS}
        limits = {
            "innodb_lock_wait_timeout": waits.lock,
            "lock_wait_timeout": waits.lock,
        } | own
        settings = ", ".join(f"{name} = {value}" for name, value in limits.items())
        cursor.execute(f"SET SESSION {settings}")
    finally:
        cursor.close()
