# SPDX-License-Identifier: Apache-2.0
"""Asks the change feed, at every read, whether anything is new."""

import contextlib
import os
import threading
from collections.abc import Iterator
from time import monotonic
from typing import Any

from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.changes import Positions
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database import patience
from treeclaim.store.database.connections import autocommitting
from treeclaim.store.database.failures import Trouble, cause_of, is_silence
from treeclaim.store.database.outages import Outages
from treeclaim.store.database.waits import PROBE_SECONDS
from treeclaim.store.feed.news import POSITIONS_SQL

TURN_SECONDS = 2 * PROBE_SECONDS
"""That a thread waits for its turn. Who is before it waits for one answer, or for one connection
and one answer; so whoever does not get its turn by then meets a database that is in trouble."""


class Probe:
    """A connection of its own for one small query.

    It is outside of transactions, so that each query sees what is committed at that moment, and it
    is kept, because taking one from the pool would cost more than the query.
    """

    def __init__(self, engine: Engine, outages: Outages) -> None:
        self._engine = engine
        self._outages = outages
        self._lock = threading.Lock()
        self._failed_at = 0.0
        self._connection: Any = None
        self._process = os.getpid()

    def positions(self) -> Positions:
        """Return the positions of all streams; a lost connection is replaced once.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        errors = (self._engine.dialect.loaded_dbapi.Error, SQLAlchemyError)
        with self._turn():
            if self._process != os.getpid():
                # A connection made before a fork is the parent's.
                self._process, self._connection = os.getpid(), None
            try:
                return self._ask()
            except errors as error:
                self._drop()
                # Another attempt would wait as long again.
                if is_silence(error):
                    raise self._failed(error) from error
            try:
                return self._ask()
            except errors as error:
                self._drop()
                raise self._failed(error) from error

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one thread ask at a time; what it learns of a lost database holds for who waited.

        Raises:
            StoreUnavailableError: if there was no turn, or the database failed meanwhile.
        """
        began = monotonic()
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise StoreUnavailableError(Trouble.SILENT.value)
        try:
            if self._failed_at > began:
                raise StoreUnavailableError(Trouble.SILENT.value)
            yield
        finally:
            self._lock.release()

    def _failed(self, error: BaseException) -> StoreUnavailableError:
        self._failed_at = monotonic()
        trouble = Trouble.SILENT if is_silence(error) else Trouble.LOST
        metrics.UNAVAILABLE.inc()
        self._outages.failed(trouble.value, cause_of(error))
        return StoreUnavailableError(trouble.value, cause=cause_of(error))

    def _ask(self) -> Positions:
        if self._connection is None:
            self._connection = autocommitting(self._engine)
            most = patience.waits_of(self._engine).silence
            patience.listen(self._connection, min(PROBE_SECONDS, most))
        cursor = self._connection.cursor()
        try:
            cursor.execute(POSITIONS_SQL)
            found = {row[0]: row[1] for row in cursor.fetchall()}
        finally:
            cursor.close()
        self._outages.answered()
        return found

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Close the connection; one that is waited on closes with its process."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            return
        try:
            self._drop()
        finally:
            self._lock.release()
