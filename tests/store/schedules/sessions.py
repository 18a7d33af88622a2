# SPDX-License-Identifier: Apache-2.0
"""Sessions: threads that run operations of the store and stop before each statement."""

import queue
import threading
from dataclasses import dataclass
from itertools import count

import psycopg
import pymysql
import sqlalchemy as sa

from tests.store.schedules.footprints import (
    BEGIN_WRITING,
    COMMIT,
    NOTHING,
    ROLLBACK,
    Footprint,
    Transaction,
    query,
)
from tests.store.schedules.pictures import Follower
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.postgresql import BoundedConnection
from treeclaim.store.database.timeouts import Timeouts

LIMIT = 120.0
"""Seconds without progress after which a session counts as stuck. Statements take milliseconds, but a machine may pause."""

PATIENT = Timeouts(lock=240, statement=240, load=240, write=240, idle=240)
"""Timeouts that are never reached, because a timeout would change the schedule."""


class StuckError(Exception):
    """A session neither continues nor waits for a lock."""


class AbandonedError(Exception):
    """Ends the thread of a session of an abandoned schedule."""


@dataclass(frozen=True)
class NextStatement:
    """The next statement of a session."""

    statement: str
    footprint: Footprint


@dataclass(frozen=True)
class SessionEnd:
    """The operations of a session have ended."""

    results: tuple[str, ...]


class Session:
    """A client of the database, with its own store and connection.

    Attributes:
        next_step: The next statement; None while a statement runs or waits.
        footprint: Footprint of that statement.
        failed: Whether its last statement failed.
        results: The results of its operations; None until all have ended.
        backend: The server's id of its connection.
        writing: Whether it holds SQLite's write lock.
        touched: The union of the footprints of its statements since the last reset.
        follower: Its reader of the feed, if it uses one.
        observed: The results of its statements as texts.
    """

    def __init__(self, name, url):
        self.name = name
        self.store = Store(DatabaseSettings(url, sqlite_synchronous=False, timeouts=PATIENT))
        self.backend = None
        self._thread = None
        self.touched = NOTHING
        self._reset()
        engine = self.store.engine
        sa.event.listen(engine, "before_cursor_execute", self._statement)
        sa.event.listen(engine, "commit", lambda _: self._end(COMMIT))
        sa.event.listen(engine, "rollback", lambda _: self._end(ROLLBACK))
        sa.event.listen(engine, "after_cursor_execute", self._executed)
        sa.event.listen(engine, "checkout", _disable_read_timeout)
        sa.event.listen(engine, "handle_error", self._failure)
        self._intercept_probe()

    def _reset(self):
        self.next_step = None
        self.footprint = None
        self.failed = False
        self.results = None
        self.writing = False
        self.observed = []
        self._transaction = Transaction()
        self._abandoned = False
        self._reports = queue.SimpleQueue()
        self._permits = threading.Semaphore(0)

    def _intercept_probe(self):
        # No event of SQLAlchemy reports the queries of the probe.
        fetch = self.store._probe.fetch_rows

        def rows(sql, parameters=()):
            self._reach(sql, query(sql))
            rows = fetch(sql, parameters)
            self.observed.append(repr(rows))
            return rows

        setattr(self.store._probe, "fetch_rows", rows)  # noqa: B010 - no method is replaced by mypy's rules

    def meet(self, changes, shard):
        """Begin in a new world; writes advance the `shard`, and readers start from the `changes`."""
        self._reset()
        choice = self.store._writer._shards
        setattr(choice, "draw", lambda _connection: shard)  # noqa: B010 - as above
        self.follower = None
        self._start = changes

    def start(self, script):
        """Run a script up to the first statement."""
        self._thread = threading.Thread(target=self._run, args=(script,), daemon=True)
        self._thread.start()
        if not self.reported(LIMIT):
            raise StuckError(self.name)

    def take_observed(self):
        """Return the observations since the last call."""
        observed, self.observed = self.observed, []
        return observed

    def advance(self):
        """Let the next statement run; `reported` returns whether it has ended."""
        if self.next_step == BEGIN_WRITING:
            self.writing = True
        elif self.next_step in {COMMIT, ROLLBACK}:
            self.writing = False
        self.next_step = None
        self.failed = False
        self._permits.release()

    def reported(self, seconds=0.0):
        """Wait until the session reaches its next statement or its end; return whether it does in time."""
        try:
            report = self._reports.get(timeout=seconds) if seconds else self._reports.get_nowait()
        except queue.Empty:
            return False
        if isinstance(report, SessionEnd):
            self.results = report.results
        elif isinstance(report, BaseException):
            raise report
        else:
            self.next_step, self.footprint = report.statement, report.footprint
        return True

    @property
    def is_running(self):
        """Whether the session executes a statement or waits in it."""
        return self.next_step is None and self.results is None

    def abandon(self):
        """Abandon the remaining operations."""
        self._abandoned = True
        self._permits.release()
        self._thread.join(timeout=LIMIT)

    def close(self):
        """Close its connections."""
        self.store.close()

    def read(self):
        """Let its reader catch up; return the reader's contents."""
        self.follower = self.follower or Follower(self._start)
        return self.follower.catch_up(self.store)

    def _run(self, script):
        try:
            results = script(self)
        except AbandonedError:
            return
        except BaseException as error:  # noqa: BLE001
            self._reports.put(error)
            return
        self._reports.put(SessionEnd(results))

    def _statement(self, connection, _cursor, statement, parameters, *_):
        self.backend = _read_backend_id(connection)
        footprint = self._transaction.statement(
            statement, parameters, is_snapshot=_reads_a_snapshot(connection)
        )
        self._reach(statement, footprint)

    def _end(self, how):
        self._reach(how, self._transaction.end(committed=how == COMMIT))

    def _executed(self, connection, cursor, *_):
        rows = _describe_result(cursor, connection.dialect.name)
        # An unknown result differs from all others.
        self.observed.append(f"unknown {self.name} {next(_UNKNOWN)}" if rows is None else rows)

    def _failure(self, context):
        self.failed = True
        error = context.original_exception
        self.observed.append(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")

    def _reach(self, statement, footprint):
        self.touched |= footprint
        if threading.current_thread() is not self._thread:
            return
        if not self._abandoned:
            self._reports.put(NextStatement(statement, footprint))
            self._permits.acquire()
        if self._abandoned and statement not in {COMMIT, ROLLBACK}:
            raise AbandonedError


def _reads_a_snapshot(connection):
    """Return whether a transaction reads one snapshot; see `treeclaim.store.database.systems`."""
    options = connection.get_execution_options()
    if connection.dialect.name == "postgresql":
        return options["isolation_level"] == "REPEATABLE READ"
    return not options.get("treeclaim_writing", False)


def _disable_read_timeout(connection, *_):
    """Disable the read timeout: only the scheduler ends a wait, and reading the clock costs time."""
    if isinstance(connection, BoundedConnection):
        connection.silence = None


_UNKNOWN = count()


def _describe_result(cursor, dialect):
    """Return the result of a statement as a text without fetching it; None if that is impossible."""
    if dialect == "postgresql" and type(cursor) is psycopg.Cursor:
        result = cursor.pgresult
        if result is None:
            # `executemany` has no single result.
            return f"{cursor.rowcount}"
        rows = [
            tuple([result.get_value(row, column) for column in range(result.nfields)])
            for row in range(result.ntuples)
        ]
        return f"{cursor.rowcount} {rows}"
    if dialect == "mysql" and type(cursor) is pymysql.cursors.Cursor:
        position = cursor.rownumber
        fetched = cursor.fetchall()
        cursor.rownumber = position
        return f"{cursor.rowcount} {cursor.lastrowid} {fetched}"
    return None


def _read_backend_id(connection):
    driver = connection.connection.dbapi_connection
    if connection.dialect.name == "postgresql":
        return driver.info.backend_pid
    return driver.thread_id() if connection.dialect.name == "mysql" else None
