# SPDX-License-Identifier: Apache-2.0
"""The connection by which a process polls the change feed at each read of a Forest."""

import contextlib
import threading
from typing import Any

from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.engine import open_autocommit
from treeclaim.store.database.failures import Failure, Outages, describe_cause, is_silence
from treeclaim.store.database.systems import get_system, get_timeouts
from treeclaim.store.database.timeouts import PROBE_SECONDS

TURN_SECONDS = 2 * PROBE_SECONDS
"""Seconds that a thread waits for the connection. The thread before it connects and sends one query at most, so after
a longer wait the database counts as silent."""


class Probe:
    """A connection in autocommit mode for small queries; thread-safe.

    It stays open and uses the driver: a checkout from the pool, or an execution by SQLAlchemy, would cost more
    than the query.
    """

    def __init__(self, engine: Engine, outages: Outages) -> None:
        self._engine = engine
        self._outages = outages
        self._lock = threading.Lock()
        self._connection: Any = None
        self._connections = 0

    def read_version(self) -> tuple[int, int] | None:
        """Return a value that changes with every commit; None on databases without it.

        Raises:
            StoreUnavailableError: if the database does not respond.
        """
        query = get_system(self._engine).change_number
        if query is None:
            return None
        ((number,),), connection = self._run(query, ())
        return connection, number

    def fetch_rows(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query in the driver's parameter style; replace a lost connection once.

        Raises:
            StoreUnavailableError: if the database does not respond.
        """
        return self._run(sql, parameters)[0]

    def _run(self, sql: str, parameters: Any) -> tuple[list[tuple[Any, ...]], int]:
        """Return the rows of a query, and the number of its connection."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            raise StoreUnavailableError(Failure.SILENT.value)
        try:
            return self._query_twice(sql, parameters), self._connections
        finally:
            self._lock.release()

    def _query_twice(self, sql: str, parameters: Any) -> list[tuple[Any, ...]]:
        is_repeated = False
        while True:
            try:
                return self._query(sql, parameters)
            except (self._engine.dialect.loaded_dbapi.Error, SQLAlchemyError) as error:
                self._drop()
                is_silent = is_silence(error)
                # A retry after silence would wait as long again.
                if is_silent or is_repeated:
                    failure = Failure.SILENT if is_silent else Failure.LOST
                    raise self._outages.make_unavailable_error(
                        failure, describe_cause(error)
                    ) from error
                is_repeated = True

    def _query(self, sql: str, parameters: Any) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = open_autocommit(self._engine)
            self._connections += 1
            seconds = min(PROBE_SECONDS, get_timeouts(self._engine).silence)
            get_system(self._engine).set_read_timeout(self._connection, seconds)
        with contextlib.closing(self._connection.cursor()) as cursor:
            cursor.execute(sql, parameters)
            rows = list(cursor.fetchall())
        self._outages.record_success()
        return rows

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Close the connection, unless a query is stuck on it."""
        if not self._lock.acquire(timeout=TURN_SECONDS):
            return
        try:
            self._drop()
        finally:
            self._lock.release()
