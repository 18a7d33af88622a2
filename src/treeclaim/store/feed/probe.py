# SPDX-License-Identifier: Apache-2.0
"""Asks the change feed, at every read, whether anything is new."""

import contextlib
import os
import threading
from typing import Any

from sqlalchemy.engine import Engine

from treeclaim.model.changes import Positions
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.connections import autocommitting
from treeclaim.store.feed.news import POSITIONS_SQL


class Probe:
    """A connection of its own for one small query.

    It is outside of transactions, so that each query sees what is committed at that moment, and it
    is kept, because taking one from the pool would cost more than the query.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._connection: Any = None
        self._process = os.getpid()

    def positions(self) -> Positions:
        """Return the positions of all streams; a lost connection is replaced once.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        errors = self._engine.dialect.loaded_dbapi.Error
        with self._lock:
            if self._process != os.getpid():
                # A connection made before a fork is the parent's.
                self._process, self._connection = os.getpid(), None
            try:
                return self._ask()
            except errors:
                self._drop()
            try:
                return self._ask()
            except errors as error:
                self._drop()
                raise StoreUnavailableError(str(error)) from error

    def _ask(self) -> Positions:
        if self._connection is None:
            self._connection = autocommitting(self._engine)
        cursor = self._connection.cursor()
        try:
            cursor.execute(POSITIONS_SQL)
            return {row[0]: row[1] for row in cursor.fetchall()}
        finally:
            cursor.close()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()
