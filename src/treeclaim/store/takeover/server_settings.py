# SPDX-License-Identifier: Apache-2.0
"""Checks settings of a database server that endanger commits, or prevent writes."""

from collections.abc import Iterator, Mapping
from os import W_OK, access
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.store.database.connecting.engine import DatabaseSettings
from treeclaim.store.database.connecting.pooling import ADVICE, SHARED, is_lent_by_transaction
from treeclaim.store.database.connecting.requirements import find_unsupported_server
from treeclaim.store.takeover.findings import Finding, failed, passed, warned

_ISOLATION_LEVELS = {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}
_DURABILITY = "durability"
_WRITING = "writing"
_ISOLATION = "isolation"
_GALERA = "galera"
_SESSIONS = "sessions"
_SERVER = "server"

_POSTGRESQL_SETTINGS = (
    "default_transaction_isolation",
    "default_transaction_read_only",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
)
_MYSQL_SETTINGS = (
    "innodb_flush_log_at_trx_commit",
    "innodb_read_only",
    "log_bin",
    "read_only",
    "super_read_only",
    "sync_binlog",
    "transaction_isolation",
    "transaction_read_only",
    "tx_isolation",
    "tx_read_only",
    "wsrep_on",
    "wsrep_sync_wait",
)
_READS_WAIT = 1
"""The bit of wsrep_sync_wait that makes reads wait."""


def findings(connection: Connection, settings: DatabaseSettings) -> Iterator[Finding]:
    """Check the settings of the server of a connection."""
    refusal = find_unsupported_server(connection)
    if refusal is not None:
        yield failed(_SERVER, refusal, "Use one of these.")
        return
    kind = connection.dialect.name
    if kind == "sqlite":
        yield from of_sqlite(
            configured=settings.sqlite_synchronous,
            is_read_only=_is_file_read_only(connection),
        )
    elif kind == "postgresql":
        yield from of_postgresql(_postgresql_settings(connection))
        yield _sessions(settings)
    else:
        yield from of_mysql(_mysql_settings(connection))


def of_sqlite(*, configured: bool, is_read_only: bool) -> Iterator[Finding]:
    """Judge SQLite.

    Args:
        configured: The option sqlite_synchronous.
        is_read_only: Whether the file or its folder cannot be written.
    """
    if configured:
        yield passed(_DURABILITY, "PRAGMA synchronous will be FULL")
    else:
        yield warned(
            _DURABILITY,
            "PRAGMA synchronous will be OFF: a power failure may destroy the database",
            "Remove [placement_database]/sqlite_synchronous = false.",
        )
    if is_read_only:
        yield failed(
            _WRITING,
            "the database file or its folder cannot be written by this user",
            "Give the user of the service the right to write both.",
        )
    else:
        yield passed(_WRITING, "the database file can be written")


def of_postgresql(values: Mapping[str, str]) -> Iterator[Finding]:
    """Judge PostgreSQL by its settings, by name; `in_recovery` is on for a standby."""
    unsafe = [
        name
        for name in ("synchronous_commit", "fsync", "full_page_writes")
        if values.get(name) == "off"
    ]
    for name in unsafe:
        yield warned(
            _DURABILITY,
            f"{name} = off: what was committed may be lost in a crash",
            f"Set {name} = on in postgresql.conf, or for this database or user.",
        )
    if not unsafe:
        yield passed(_DURABILITY, "fsync, full_page_writes and synchronous_commit are safe")
    read_only = [
        name
        for name in ("default_transaction_read_only", "in_recovery")
        if values.get(name) == "on"
    ]
    if read_only:
        yield failed(
            _WRITING,
            f"the server takes no writes ({', '.join(read_only)} = on)",
            "Connect to the primary server, or set default_transaction_read_only = off.",
        )
    else:
        yield passed(_WRITING, "the server takes writes")
    yield _isolation(values.get("default_transaction_isolation"))


def _sessions(settings: DatabaseSettings) -> Finding:
    """Look whether a pooler is in between that lends sessions for single transactions."""
    if is_lent_by_transaction(settings):
        return failed(
            _SESSIONS,
            f"{SHARED[0].lower()}{SHARED[1:]}: statements would meet those of others",
            ADVICE,
        )
    return passed(_SESSIONS, "each connection has one of its own")


def of_mysql(values: Mapping[str, str]) -> Iterator[Finding]:
    """Judge MariaDB and MySQL by their variables, by name."""
    yield from _mysql_durability(values)
    read_only = [
        name
        for name in (
            "read_only",
            "super_read_only",
            "innodb_read_only",
            "tx_read_only",
            "transaction_read_only",
        )
        if values.get(name, "OFF").upper() not in {"OFF", "0"}
    ]
    if read_only:
        yield failed(
            _WRITING,
            f"the server takes no writes ({', '.join(read_only)} is on)",
            "Connect to the primary server, or SET GLOBAL the variable to OFF.",
        )
    else:
        yield passed(_WRITING, "the server takes writes")
    yield _isolation(values.get("transaction_isolation", values.get("tx_isolation")))
    if values.get("wsrep_on", "OFF").upper() == "ON":
        yield from _galera(values)


def _mysql_durability(values: Mapping[str, str]) -> Iterator[Finding]:
    flush = values.get("innodb_flush_log_at_trx_commit", "1")
    binlog = values.get("sync_binlog", "1")
    is_logging = values.get("log_bin", "OFF").upper() in {"ON", "1"}
    if flush != "1":
        yield warned(
            _DURABILITY,
            f"innodb_flush_log_at_trx_commit = {flush}: what was committed may be lost in a crash",
            "Set innodb_flush_log_at_trx_commit = 1 in the server's configuration.",
        )
    if is_logging and binlog != "1":
        yield warned(
            _DURABILITY,
            f"sync_binlog = {binlog}: replicas may miss what was committed before a crash",
            "Set sync_binlog = 1 in the server's configuration.",
        )
    if flush == "1" and (not is_logging or binlog == "1"):
        yield passed(_DURABILITY, "every commit is written to disk")


def _isolation(found: str | None) -> Finding:
    level = (found or "unknown").upper().replace("-", " ")
    if level in _ISOLATION_LEVELS:
        return passed(_ISOLATION, f"{level} by default")
    return warned(
        _ISOLATION,
        f"{level} by default: what another one has not committed may be seen",
        "Set the server's default to READ COMMITTED or REPEATABLE READ.",
    )


def _galera(values: Mapping[str, str]) -> Iterator[Finding]:
    wait = int(values.get("wsrep_sync_wait", "0"))
    if wait & _READS_WAIT:
        yield passed(_GALERA, f"wsrep_sync_wait = {wait}: a read waits for other nodes' writes")
    else:
        yield warned(
            _GALERA,
            f"wsrep_sync_wait = {wait}: a read on one node may miss what another one committed",
            "Let all processes connect to the same node, or set [placement_database]/"
            "connection_parameters = init_command=SET SESSION wsrep_sync_wait=1.",
        )
    state = values.get("wsrep_cluster_status", "unknown")
    if state.upper() == "PRIMARY" and values.get("wsrep_ready", "OFF").upper() == "ON":
        yield passed(_GALERA, "the node belongs to the primary component and is ready")
    else:
        yield failed(
            _GALERA,
            f"the node takes no queries: wsrep_cluster_status = {state}, "
            f"wsrep_ready = {values.get('wsrep_ready', 'unknown')}",
            "Connect to a node of the primary component.",
        )


def _is_file_read_only(connection: Connection) -> bool:
    """Return whether the file may not be written; ask the system, open nothing."""
    row = connection.exec_driver_sql("PRAGMA database_list").first()
    file = str(row[2]) if row is not None else ""
    return bool(file) and not (access(file, W_OK) and access(Path(file).parent, W_OK))


def _postgresql_settings(connection: Connection) -> dict[str, str]:
    rows = connection.execute(
        sa.text("SELECT name, setting FROM pg_settings WHERE name IN :names").bindparams(
            sa.bindparam("names", _POSTGRESQL_SETTINGS, expanding=True)
        )
    )
    standby = connection.execute(sa.select(sa.func.pg_is_in_recovery())).scalar()
    return {str(name): str(value) for name, value in rows} | {
        "in_recovery": "on" if standby else "off"
    }


def _mysql_settings(connection: Connection) -> dict[str, str]:
    quoted = ", ".join(f"'{name}'" for name in _MYSQL_SETTINGS)
    rows = [
        *connection.exec_driver_sql(f"SHOW VARIABLES WHERE Variable_name IN ({quoted})"),
        *connection.exec_driver_sql(
            "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_ready')"
        ),
    ]
    return {str(name).lower(): str(value) for name, value in rows}
