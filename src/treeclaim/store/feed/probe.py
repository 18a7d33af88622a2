# SPDX-License-Identifier: Apache-2.0
"""The connection by which a process looks at the change feed, at every read of a Forest."""

import contextlib
import os
import threading
from time import monotonic
from typing import Any

from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.engine import autocommitting
from treeclaim.store.database.failures import Failure, Outages, cause_of, is_silence
from treeclaim.store.database.systems import system_of, timeouts_of
from treeclaim.store.database.timeouts import PROBE_SECONDS

TURN_SECONDS = 2 * PROBE_SECONDS
"""Seconds that a thread waits for the connection. The thread before it needs one answer, or one connection
and one answer; so if this passes, the database is in trouble."""


class Probe:
    """A connection for small queries; threads may share it.

    It uses no transactions, so each query sees what is committed at that moment. It is kept,
    because a checkout from the pool would cost more than the query; and what it sends is the
    driver's own SQL, as SQLAlchemy would cost more than the query too.
    """

    def __init__(self, engine: Engine, outages: Outages) -> None:
        """Begin without a connection.

        Args:
            engine: The engine of the database.
            outages: Logs when it fails, and when it answers again.
        """
        self._engine = engine
        self._outages = outages
        self._lock = threading.Lock()
        self._silent_at = 0.0
        self._connection: Any = None
        self._connections = 0
        self._process = os.getpid()

    def rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, as the driver has them; replace a lost connection once.

        Args:
            sql: As the driver takes it.
            parameters: As the driver takes them.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        return self._answer(sql, parameters)[0]

    def version(self) -> tuple[int, int] | None:
        """Return what is the same as before only if nothing was committed meanwhile.

        Returns:
            Which connection it is, as numbers of two cannot be compared, and its number; None where
            the database has no such number.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        query = system_of(self._engine).change_number
        if query is None:
            return None
        ((number,),), connection = self._answer(query, ())
        return connection, number

    def _answer(self, sql: str, parameters: Any) -> tuple[list[tuple[Any, ...]], int]:
        """Return the rows of a query, and the number of the connection that it was asked by.

        Raises:
            StoreUnavailableError: as `rows`.
        """
        self._take_turn()
        try:
            return self._asked_again(sql, parameters), self._connections
        finally:
            self._lock.release()

    def _asked_again(self, sql: str, parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; ask once more if the connection was lost."""
        if self._process != os.getpid():
            # A connection from before a fork belongs to the parent.
            self._process, self._connection = os.getpid(), None
        errors = (self._engine.dialect.loaded_dbapi.Error, SQLAlchemyError)
        try:
            return self._query(sql, parameters)
        except errors as error:
            self._drop()
            # Another attempt would wait as long again.
            if is_silence(error):
                raise self._outage_error(error) from error
        try:
            return self._query(sql, parameters)
        except errors as error:
            self._drop()
            raise self._outage_error(error) from error

    def _take_turn(self) -> None:
        """Admit one thread at a time; silence also counts for those that waited meanwhile.

        They would wait for it one after the other. A connection that was lost is told at once, so they ask
        for themselves: the database may have answered again when they came.

        Raises:
            StoreUnavailableError: if the wait timed out, or the database was silent meanwhile.
        """
        began = monotonic()
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise StoreUnavailableError(Failure.SILENT.value)
        if self._silent_at > began:
            self._lock.release()
            raise StoreUnavailableError(Failure.SILENT.value)

    def _outage_error(self, error: BaseException) -> StoreUnavailableError:
        trouble = Failure.SILENT if is_silence(error) else Failure.LOST
        if trouble is Failure.SILENT:
            self._silent_at = monotonic()
        return self._outages.unavailable(trouble.value, cause_of(error))

    def _query(self, sql: str, parameters: Any) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = autocommitting(self._engine)
            self._connections += 1
            most = timeouts_of(self._engine).silence
            system_of(self._engine).set_read_timeout(self._connection, min(PROBE_SECONDS, most))
        with contextlib.closing(self._connection.cursor()) as cursor:
            cursor.execute(sql, parameters)
            rows = list(cursor.fetchall())
        self._outages.answered()
        return rows

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Close the connection, unless a query is stuck on it; the process closes that one at exit."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            return
        try:
            self._drop()
        finally:
            self._lock.release()
