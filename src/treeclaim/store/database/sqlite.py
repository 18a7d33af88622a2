# SPDX-License-Identifier: Apache-2.0
"""What SQLite needs: explicit transactions, one writer at a time, and each commit on the disk."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine

_WAIT = 30_000
"""Milliseconds that a writer waits for another one."""


def prepare(engine: Engine, *, synchronous: bool) -> None:
    """Set up each connection, and begin transactions as they are meant.

    Args:
        engine: Of a database in a file.
        synchronous: False trades durability for speed.
    """

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        # The driver would begin transactions by itself, and too late for a snapshot.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {_WAIT}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'OFF'}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writing = connection.get_execution_options().get("treeclaim_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def read_only(url: URL) -> URL:
    """Return the URL for connections that can change nothing, not even create the file."""
    if not url.database or url.database == ":memory:":
        return url
    path = f"file:{quote(str(Path(url.database).absolute()))}"
    return url.set(database=path).update_query_dict({"mode": "ro", "uri": "true"})
