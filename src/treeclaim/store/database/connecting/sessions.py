# SPDX-License-Identifier: Apache-2.0
"""The sessions that the server has of this process, or may still have: both count against the pool.

A session in COMMIT that waits for a standby notices neither that its client has gone, nor that a
statement takes too long. It must not be cancelled either: the server would make the commit visible
before the standby has it. So a connection that was given up keeps its place in the pool until the
server has no session of its number any more. Those who write have a share of the places, and what they
gave up keeps its part of that, so that the other places are left for reads.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from time import monotonic
from typing import Any, Protocol, cast

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from treeclaim.gate import Gate
from treeclaim.store.database.connecting.connections import connected
from treeclaim.store.database.timeouts import POOL_SECONDS

_OPTION = "treeclaim_sessions"
"""The execution option in which an engine carries its `Sessions`."""

_PID = "treeclaim_pid"
"""Under which the pool's record of a connection has the number of its session."""

_LOOK_SECONDS = 1.0
"""Seconds between two checks of which sessions the server still has."""

_SHARE_OF_WRITERS = (2, 3)
"""The share of the connections that writers may take: the others are left for reads."""

_STILL_THERE = {
    "postgresql": (
        "SELECT pid FROM pg_stat_activity WHERE usename = current_user AND pid IN ({numbers})"
    ),
    "mysql": "SELECT id FROM information_schema.processlist WHERE id IN ({numbers})",
}
"""A session of another user has the number of ours only after that has ended."""


class Sessions:
    """The sessions of one engine; threads may share it."""

    def __init__(self, dialect: str, most: int) -> None:
        """Begin without sessions.

        Args:
            dialect: The kind of database.
            most: Places of the pool.
        """
        self._dialect = dialect
        self._most = most
        self._guard = threading.Lock()
        self._live: set[int] = set()
        self._abandoned: dict[int, bool] = {}
        """By number, whether it has a place of those who write."""
        self._writers = Gate(max(_SHARE_OF_WRITERS[0] * most // _SHARE_OF_WRITERS[1], 1))
        self._here = threading.local()
        self._look_at = 0.0

    @property
    def abandoned(self) -> int:
        """Return how many connections were given up whose sessions the server may still have."""
        return len(self._abandoned)

    @contextmanager
    def writing(self, engine: Engine) -> Iterator[None]:
        """Write in this block, in one of the places that are left for it.

        Raises:
            PoolTimeoutError: if there is none; at once if sessions that were given up have them all.
            DBAPIError: if the server cannot be asked which sessions it still has.
        """
        if not self._writers.acquire(0):
            if self._is_look_due():
                # Whoever connects looks.
                with connected(engine):
                    pass
            seconds = 0 if self._are_writers_abandoned() else POOL_SECONDS
            if not self._writers.acquire(seconds):
                raise PoolTimeoutError(
                    f"{self.abandoned} sessions that were given up are still at the server"
                )
        self._here.given_up = None
        try:
            yield
        finally:
            if not self._keeps_place(self._here.given_up):
                self._writers.release()

    def _are_writers_abandoned(self) -> bool:
        with self._guard:
            return sum(self._abandoned.values()) >= self._writers.most

    def _keeps_place(self, pid: int | None) -> bool:
        """Tell whether a session that was given up within a write has the place of that write now."""
        with self._guard:
            if pid is None or pid not in self._abandoned:
                return False
            self._abandoned[pid] = True
            return True

    def require_place(self) -> None:
        """Refuse to connect where all places are taken; a single connection may always be had.

        Raises:
            PoolTimeoutError: if they are.
        """
        with self._guard:
            if self._live and len(self._live) + len(self._abandoned) >= self._most:
                raise PoolTimeoutError("sessions that were given up have all other places")

    def note_begin(self, pid: int) -> None:
        """Note a new session."""
        with self._guard:
            self._live.add(pid)
            self._let_go({pid})

    def note_end(self, pid: int, *, is_abandoned: bool) -> None:
        """Note that a connection is closed; if it was given up, its session may go on."""
        with self._guard:
            if pid in self._live:
                self._live.discard(pid)
                if is_abandoned:
                    self._abandoned[pid] = False
                    self._here.given_up = pid

    def _is_look_due(self) -> bool:
        return bool(self._abandoned) and monotonic() >= self._look_at

    def look(self, connection: Any) -> None:
        """Ask the server, now and then, which of the sessions that were given up it still has.

        Args:
            connection: A connection of the driver, outside a transaction.
        """
        if not self._is_look_due():
            return
        with self._guard:
            self._look_at = monotonic() + _LOOK_SECONDS
            asked = set(self._abandoned)
        numbers = ", ".join(map(str, sorted(asked)))
        cursor = connection.cursor()
        try:
            cursor.execute(_STILL_THERE[self._dialect].format(numbers=numbers))
            present = {int(row[0]) for row in cursor.fetchall()}
        finally:
            cursor.close()
            connection.rollback()
        with self._guard:
            self._let_go(asked - present)

    def _let_go(self, pids: set[int]) -> None:
        for pid in pids:
            if self._abandoned.pop(pid, False):
                self._writers.release()


class _Numbered(Protocol):
    def thread_id(self) -> int: ...


def _number_of(connection: Any, dialect: str) -> int:
    if dialect == "postgresql":
        return int(connection.info.backend_pid)
    return int(cast("_Numbered", connection).thread_id())


def count_sessions(engine: Engine, most: int) -> None:
    """Count the sessions of an engine from now on.

    Args:
        engine: An engine for PostgreSQL or MariaDB that has not connected yet.
        most: Places of its pool.
    """
    dialect = engine.dialect.name
    errors = engine.dialect.loaded_dbapi.Error
    sessions = Sessions(dialect, most)
    engine.update_execution_options(**{_OPTION: sessions})

    @sa.event.listens_for(engine, "do_connect", insert=True)
    def _connecting(*_given: Any) -> None:
        sessions.require_place()

    # After all that may fail; what begins here is noted to end.
    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, record: Any) -> None:
        record.info[_PID] = _number_of(connection, dialect)
        sessions.note_begin(record.info[_PID])

    @sa.event.listens_for(engine, "invalidate")
    def _given_up(_connection: Any, record: Any, error: BaseException | None) -> None:
        if (pid := record.info.get(_PID)) is not None:
            sessions.note_end(pid, is_abandoned=error is not None)

    @sa.event.listens_for(engine, "close")
    @sa.event.listens_for(engine, "detach")
    def _ended(_connection: Any, record: Any) -> None:
        if (pid := record.info.get(_PID)) is not None:
            sessions.note_end(pid, is_abandoned=False)

    @sa.event.listens_for(engine, "checkout")
    def _lent(connection: Any, _record: Any, _proxy: Any) -> None:
        with suppress(errors):
            sessions.look(connection)


def places_to_write(engine: Engine) -> AbstractContextManager[None]:
    """Return what a write is done in; it has no limit where sessions are not counted, as on SQLite.

    Raises:
        PoolTimeoutError, DBAPIError: as `Sessions.writing`, on entering.
    """
    sessions = sessions_of(engine)
    return nullcontext() if sessions is None else sessions.writing(engine)


def sessions_of(engine: Engine) -> Sessions | None:
    """Return the sessions of an engine; None where they are not counted, as on SQLite."""
    return cast("Sessions | None", engine.get_execution_options().get(_OPTION))
