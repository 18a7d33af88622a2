# SPDX-License-Identifier: Apache-2.0
"""Checks settings of a database server that endanger commits, or prevent writes."""

from collections.abc import Iterator, Mapping
from os import W_OK, access
from pathlib import Path

from sqlalchemy.engine import Connection

from treeclaim.store.database.requirements import (
    POOLER_ADVICE,
    SHARED_SESSIONS,
    find_unsupported_server,
    has_shared_sessions,
)
from treeclaim.store.database.systems import DatabaseSettings
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.takeover.findings import Finding, make_failure, make_success, make_warning

_CRASH = "a crash may lose committed changes"
_DURABLE: Mapping[str, tuple[str, str]] = {
    "fsync": ("on", _CRASH),
    "full_page_writes": ("on", _CRASH),
    "synchronous_commit": ("on", _CRASH),
    "innodb_flush_log_at_trx_commit": ("1", _CRASH),
    "sync_binlog": ("1", "after a crash, replicas may miss committed changes"),
}
"""Safe values of settings, and the danger of being off or another number."""

_READ_ONLY = (
    "default_transaction_read_only",
    "in_recovery",
    "read_only",
    "super_read_only",
    "innodb_read_only",
    "tx_read_only",
    "transaction_read_only",
)
"""Settings that prevent writes."""

_SETTINGS = (*_DURABLE, *_READ_ONLY, "log_bin", "wsrep_on")
_POSTGRESQL_SETTINGS = "SELECT name, setting FROM pg_settings WHERE name IN :names"


def check_server(connection: Connection, settings: DatabaseSettings) -> Iterator[Finding]:
    """Check the settings of the server of a connection."""
    refusal = find_unsupported_server(connection)
    if refusal is not None:
        yield make_failure("server", refusal, "Use one of these servers.")
        return
    kind = connection.dialect.name
    if kind == "sqlite":
        yield from check_sqlite(
            is_configured=settings.sqlite_synchronous,
            is_read_only=_is_file_read_only(connection),
        )
    elif kind == "postgresql":
        yield from check_settings(_load_postgresql_settings(connection))
        yield _check_sessions(settings)
    else:
        yield from check_settings(_load_mysql_settings(connection))


def check_sqlite(*, is_configured: bool, is_read_only: bool) -> Iterator[Finding]:
    """Check the option sqlite_synchronous, and the permissions of the file of SQLite."""
    if is_configured:
        yield make_success("durability", "PRAGMA synchronous will be FULL")
    else:
        yield make_warning(
            "durability",
            "PRAGMA synchronous will be OFF: a power failure may destroy the database",
            "Remove [placement_database]/sqlite_synchronous = false.",
        )
    if is_read_only:
        yield make_failure(
            "writing",
            "the database file or its folder cannot be written by this user",
            "Give the user of the service the right to write both.",
        )
    else:
        yield make_success("writing", "the database file can be written")


def check_settings(values: Mapping[str, str]) -> Iterator[Finding]:
    """Check the values of settings; `in_recovery` is on for a standby of PostgreSQL."""
    is_sound = True
    for name, (safe, danger) in _DURABLE.items():
        value = values.get(name, safe)
        is_used = name != "sync_binlog" or _is_on(values, "log_bin")
        if is_used and (value == "off" or (value.isdigit() and value != safe)):
            is_sound = False
            remedy = f"Set {name} = {safe} for the server, the database or the user."
            yield make_warning("durability", f"{name} = {value}: {danger}", remedy)
    if is_sound:
        yield make_success("durability", "every commit is written to disk")
    read_only = [
        name for name in _READ_ONLY if values.get(name, "off").lower() not in {"off", "0"}
    ]
    if read_only:
        yield make_failure(
            "writing",
            f"the server rejects writes ({', '.join(read_only)} = on)",
            "Connect to the primary server, or set these to off.",
        )
    else:
        yield make_success("writing", "the server accepts writes")
    if _is_on(values, "wsrep_on"):
        yield _check_galera(values)


def _check_sessions(settings: DatabaseSettings) -> Finding:
    if has_shared_sessions(settings):
        return make_failure(
            "sessions",
            f"{SHARED_SESSIONS[0].lower()}{SHARED_SESSIONS[1:]}, which affects other clients",
            POOLER_ADVICE,
        )
    return make_success("sessions", "each connection has a separate session")


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return values.get(name, "OFF").upper() in {"ON", "1"}


def _check_galera(values: Mapping[str, str]) -> Finding:
    state = values.get("wsrep_cluster_status", "unknown")
    if state.upper() == "PRIMARY" and _is_on(values, "wsrep_ready"):
        return make_success("galera", "the node belongs to the primary component and is ready")
    return make_failure(
        "galera",
        f"the node rejects queries: wsrep_cluster_status = {state}, "
        f"wsrep_ready = {values.get('wsrep_ready', 'unknown')}",
        "Connect to a node of the primary component.",
    )


def _is_file_read_only(connection: Connection) -> bool:
    row = connection.exec_driver_sql("PRAGMA database_list").first()
    file = str(row[2]) if row is not None else ""
    return bool(file) and not (access(file, W_OK) and access(Path(file).parent, W_OK))


def _load_postgresql_settings(connection: Connection) -> dict[str, str]:
    # The transaction of this check is read-only.
    names = [name for name in _SETTINGS if name != "transaction_read_only"]
    transaction = ReadTransaction(connection)
    values = dict(map(tuple, transaction.rows(_POSTGRESQL_SETTINGS, names=names)))
    is_standby = transaction.scalar("SELECT pg_is_in_recovery()")
    return values | {"in_recovery": "on" if is_standby else "off"}


def _load_mysql_settings(connection: Connection) -> dict[str, str]:
    quoted_names = ", ".join(f"'{name}'" for name in _SETTINGS)
    rows = [
        *connection.exec_driver_sql(
            f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({quoted_names})"
        ),
        *connection.exec_driver_sql(
            "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_ready')"
        ),
    ]
    return {str(name).lower(): str(value) for name, value in rows}
