# SPDX-License-Identifier: Apache-2.0
"""Sessions: threads that run operations of the store and stop before each statement."""

import queue
import threading
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tests.store.schedules.pictures import Follower
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.feed import streams

COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
BEGIN_WRITING = "BEGIN IMMEDIATE"
"""How a writer of SQLite begins; it takes the one write lock."""

_LIMIT = 20.0
"""Seconds without any progress after which a session counts as stuck; statements take some ms."""


class StuckError(Exception):
    """A session neither goes on nor waits for a lock."""


class AbandonedError(BaseException):
    """Ends the thread of a session whose schedule was given up."""


@dataclass(frozen=True)
class Finished:
    """The operations of a session are done."""

    results: tuple[str, ...]


class Session:
    """One client of the database, with a store and a connection of its own.

    Attributes:
        name: As in scripts.
        next_step: The statement before which it stands; None while it runs or waits.
        results: Of its operations, once all are done.
        backend: The server's number of its connection.
        writing: Whether it holds SQLite's write lock.
        statements: All that it ever sent.
        follower: Its reader of the feed, if it was asked.
    """

    def __init__(self, name, url):
        self.name = name
        self.store = Store(DatabaseSettings(url, sqlite_synchronous=False))
        self.backend = None
        self._thread = None
        self.statements = set()
        self._begin_anew()
        sa.event.listen(self.store.engine, "before_cursor_execute", self._statement)
        sa.event.listen(self.store.engine, "commit", lambda _: self._reach(COMMIT))
        sa.event.listen(self.store.engine, "rollback", lambda _: self._reach(ROLLBACK))
        self._stop_before_the_probe()

    def _begin_anew(self):
        self.next_step = None
        self.results = None
        self.writing = False
        self._abandoned = False
        self._reports = queue.SimpleQueue()
        self._permits = threading.Semaphore(0)

    def _stop_before_the_probe(self):
        """The probe asks beside SQLAlchemy, so none of its events tells of it."""
        ask = self.store._probe.rows

        def rows(sql, parameters=()):
            self._reach(sql)
            return ask(sql, parameters)

        setattr(self.store._probe, "rows", rows)  # noqa: B010 - no method is replaced by mypy's rules

    # -- in the scheduler's thread -----------------------------------------------------------

    def meet(self, changes, known=()):
        """Begin in a new world, which its reader has seen already.

        Args:
            changes: What its reader knows.
            known: The streams that the world begins with; the first is its own, all moved lately.
        """
        self._begin_anew()
        # Nothing is left of the streams of the world before.
        pool = streams.StreamPool()
        pool._idle += [replace(stream) for stream in known[:1]]
        self.store._committer._streams = pool
        self.store._looks._lately = tuple((stream.identity, stream.id) for stream in known)
        self.follower = None
        self._start = changes

    def start(self, script):
        """Run a script up to the first statement."""
        self._thread = threading.Thread(target=self._run, args=(script,), daemon=True)
        self._thread.start()
        if not self.reported(_LIMIT):
            raise StuckError(self.name)

    def advance(self):
        """Execute the statement before which it stands; `reported` tells when that is done."""
        if self.next_step == BEGIN_WRITING:
            self.writing = True
        elif self.next_step in {COMMIT, ROLLBACK}:
            self.writing = False
        self.next_step = None
        self._permits.release()

    def reported(self, seconds=0.0):
        """Whether it has come to its next statement, or to its end, within some time."""
        try:
            report = self._reports.get(timeout=seconds) if seconds else self._reports.get_nowait()
        except queue.Empty:
            return False
        if isinstance(report, Finished):
            self.results = report.results
        elif isinstance(report, BaseException):
            raise report
        else:
            self.next_step = report
        return True

    @property
    def is_running(self):
        """Whether it executes a statement, or waits in it."""
        return self.next_step is None and self.results is None

    def abandon(self):
        """Give up the operations that are not done."""
        self._abandoned = True
        self._permits.release()
        self._thread.join(timeout=_LIMIT)

    def close(self):
        """Close its connections."""
        self.store.close()

    # -- in the session's own thread ---------------------------------------------------------

    def read(self):
        """Let its reader catch up; return what that one knows then."""
        self.follower = self.follower or Follower(self._start)
        return [sorted(map(str, part)) for part in self.follower.look(self.store)]

    def _run(self, script):
        try:
            results = script(self)
        except AbandonedError:
            return
        except BaseException as error:  # noqa: BLE001
            self._reports.put(error)
            return
        self._reports.put(Finished(results))

    def _statement(self, connection, _cursor, statement, *_):
        self.backend = _backend(connection)
        self.statements.add(statement)
        self._reach(statement)

    def _reach(self, statement):
        if threading.current_thread() is not self._thread or self._abandoned:
            return
        self._reports.put(statement)
        self._permits.acquire()
        if self._abandoned:
            raise AbandonedError


def _backend(connection):
    driver = connection.connection.dbapi_connection
    if connection.dialect.name == "postgresql":
        return driver.info.backend_pid
    return driver.thread_id() if connection.dialect.name == "mysql" else None
