# SPDX-License-Identifier: Apache-2.0
"""SQLite: explicit transactions, one writer at a time, and durable commits."""

import os
import sqlite3
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

from treeclaim.model.timing import has_passed
from treeclaim.store.database.driver import DriverStatement, send
from treeclaim.store.database.systems import DatabaseSettings, System
from treeclaim.store.database.timeouts import MILLISECONDS, Timeouts

_OWNER_ONLY = 0o600
"""Permissions of a new database file; SQLite copies them to its journal files."""

_STEPS_BETWEEN_CHECKS = 100_000
"""Instructions of SQLite's virtual machine: some milliseconds."""

# As SQLAlchemy stores times.
sqlite3.register_adapter(datetime, lambda time: time.isoformat(" ", "microseconds"))

_MEMORY = ":memory:"
_URI = "file:"


class _SQLite(System):
    """SQLite. A writing transaction acquires the only write lock when it begins."""

    is_server = False
    reuses_ids = True
    change_number = "PRAGMA data_version"

    def prepare(self, engine: Engine, settings: DatabaseSettings) -> None:
        @sa.event.listens_for(engine, "do_connect")
        def _connect(_dialect: Any, _record: Any, arguments: Any, _parameters: Any) -> None:
            if arguments:
                _create_private(str(arguments[0]))

        @sa.event.listens_for(engine, "connect")
        def _set_session(connection: Any, _record: Any) -> None:
            # In other modes, the driver begins a transaction too late for a snapshot.
            connection.isolation_level = None
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {settings.timeouts.sqlite_lock * MILLISECONDS}")
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.execute(
                f"PRAGMA synchronous = {'FULL' if settings.sqlite_synchronous else 'OFF'}"
            )
            cursor.execute("PRAGMA foreign_keys = ON")
            cursor.close()

        @sa.event.listens_for(engine, "reset")
        def _reset(connection: Any, _record: Any, _state: Any) -> None:
            connection.set_progress_handler(None, 0)

        @sa.event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            writing = connection.get_execution_options().get("treeclaim_writing", False)
            send(connection, DriverStatement("BEGIN IMMEDIATE" if writing else "BEGIN"))

    def extend_timeouts(self, connection: Connection, timeouts: Timeouts, deadline: float) -> None:
        del timeouts
        # SQLite has no statement timeout. The pool's reset removes the handler.
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(lambda: has_passed(deadline), _STEPS_BETWEEN_CHECKS)


SYSTEM = _SQLite()


def _create_private(path: str) -> None:
    """Create a missing file with `_OWNER_ONLY`; SQLite would make it readable for all users."""
    if path.startswith(_URI):
        parts = urlsplit(path)
        path = "" if "mode=" in parts.query or "immutable=" in parts.query else unquote(parts.path)
    if path in {"", _MEMORY}:
        return
    # SQLite reports a missing folder itself.
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _OWNER_ONLY))


def read_only(url: URL) -> URL:
    """Return the URL for connections that cannot write, and do not create the file."""
    if not url.database or url.database == _MEMORY:
        return url
    path = f"file:{quote(str(Path(url.database).absolute()))}"
    return url.set(database=path).update_query_dict({"mode": "ro", "uri": "true"})
