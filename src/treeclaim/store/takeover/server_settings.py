# SPDX-License-Identifier: Apache-2.0
"""Checks settings of a database server that endanger commits, or prevent writes."""

from collections.abc import Iterator, Mapping, Sequence
from os import W_OK, access
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.store.database.requirements import (
    ADVICE,
    SHARED,
    find_unsupported_server,
    is_lent_by_transaction,
)
from treeclaim.store.database.systems import DatabaseSettings
from treeclaim.store.takeover.findings import Finding, failed, passed, warned

_POSTGRESQL_DURABILITY = ("synchronous_commit", "fsync", "full_page_writes")
_POSTGRESQL_READ_ONLY = ("default_transaction_read_only", "in_recovery")
_MYSQL_READ_ONLY = (
    "read_only",
    "super_read_only",
    "innodb_read_only",
    "tx_read_only",
    "transaction_read_only",
)
_POSTGRESQL_SETTINGS = (
    *_POSTGRESQL_DURABILITY,
    "default_transaction_read_only",
)
_MYSQL_SETTINGS = (
    *_MYSQL_READ_ONLY,
    "innodb_flush_log_at_trx_commit",
    "log_bin",
    "sync_binlog",
    "wsrep_on",
)


def check_server(connection: Connection, settings: DatabaseSettings) -> Iterator[Finding]:
    """Check the settings of the server of a connection."""
    refusal = find_unsupported_server(connection)
    if refusal is not None:
        yield failed("server", refusal, "Use one of these.")
        return
    kind = connection.dialect.name
    if kind == "sqlite":
        yield from check_sqlite(
            configured=settings.sqlite_synchronous,
            is_read_only=_is_file_read_only(connection),
        )
    elif kind == "postgresql":
        yield from check_postgresql(_postgresql_settings(connection))
        yield _sessions(settings)
    else:
        yield from check_mysql(_mysql_settings(connection))


def check_sqlite(*, configured: bool, is_read_only: bool) -> Iterator[Finding]:
    """Check the option sqlite_synchronous, and the permissions of the file of SQLite."""
    danger = (
        "PRAGMA synchronous will be OFF: a power failure may destroy the database",
        "Remove [placement_database]/sqlite_synchronous = false.",
    )
    yield from _durability([] if configured else [danger], "PRAGMA synchronous will be FULL")
    if is_read_only:
        yield failed(
            "writing",
            "the database file or its folder cannot be written by this user",
            "Give the user of the service the right to write both.",
        )
    else:
        yield passed("writing", "the database file can be written")


def check_postgresql(values: Mapping[str, str]) -> Iterator[Finding]:
    """Check settings of PostgreSQL, by name; `in_recovery` is on for a standby."""
    dangers = [
        (
            f"{name} = off: what was committed may be lost in a crash",
            f"Set {name} = on in postgresql.conf, or for this database or user.",
        )
        for name in _POSTGRESQL_DURABILITY
        if values.get(name) == "off"
    ]
    yield from _durability(dangers, "fsync, full_page_writes and synchronous_commit are safe")
    yield _writing(
        [name for name in _POSTGRESQL_READ_ONLY if values.get(name) == "on"],
        "set default_transaction_read_only = off",
    )


def _durability(dangers: Sequence[tuple[str, str]], otherwise: str) -> Iterator[Finding]:
    """Yield a warning for each danger and its remedy, or one passed check."""
    for text, remedy in dangers:
        yield warned("durability", text, remedy)
    if not dangers:
        yield passed("durability", otherwise)


def _writing(read_only: Sequence[str], remedy: str) -> Finding:
    if not read_only:
        return passed("writing", "the server takes writes")
    return failed(
        "writing",
        f"the server takes no writes ({', '.join(read_only)} = on)",
        f"Connect to the primary server, or {remedy}.",
    )


def _sessions(settings: DatabaseSettings) -> Finding:
    """Report a pooler that lends sessions for single transactions."""
    if is_lent_by_transaction(settings):
        return failed(
            "sessions",
            f"{SHARED[0].lower()}{SHARED[1:]}: statements would meet those of others",
            ADVICE,
        )
    return passed("sessions", "each connection has one of its own")


def check_mysql(values: Mapping[str, str]) -> Iterator[Finding]:
    """Check variables of MariaDB and MySQL, by name."""
    required = {"innodb_flush_log_at_trx_commit": "what was committed may be lost in a crash"}
    if _is_on(values, "log_bin"):
        required["sync_binlog"] = "replicas may miss what was committed before a crash"
    dangers = [
        (f"{name} = {values[name]}: {text}", f"Set {name} = 1 in the server's configuration.")
        for name, text in required.items()
        if values.get(name, "1") != "1"
    ]
    yield from _durability(dangers, "every commit is written to disk")
    yield _writing(
        [name for name in _MYSQL_READ_ONLY if values.get(name, "OFF").upper() not in {"OFF", "0"}],
        "SET GLOBAL the variable to OFF",
    )
    if _is_on(values, "wsrep_on"):
        yield _galera(values)


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return values.get(name, "OFF").upper() in {"ON", "1"}


def _galera(values: Mapping[str, str]) -> Finding:
    state = values.get("wsrep_cluster_status", "unknown")
    if state.upper() == "PRIMARY" and _is_on(values, "wsrep_ready"):
        return passed("galera", "the node belongs to the primary component and is ready")
    return failed(
        "galera",
        f"the node takes no queries: wsrep_cluster_status = {state}, "
        f"wsrep_ready = {values.get('wsrep_ready', 'unknown')}",
        "Connect to a node of the primary component.",
    )


def _is_file_read_only(connection: Connection) -> bool:
    """Return whether permissions forbid writes to the file or its folder."""
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
        *connection.exec_driver_sql(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({quoted})"),
        *connection.exec_driver_sql(
            "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_ready')"
        ),
    ]
    return {str(name).lower(): str(value) for name, value in rows}
