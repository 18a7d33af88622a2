# SPDX-License-Identifier: Apache-2.0
"""Databases for the exploration: fast filling, and detection of sessions that wait for locks."""

import re
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import ClassVar

import pymysql
import sqlalchemy as sa
from pymysql.constants import CLIENT
from sqlalchemy.engine import make_url

from tests.databases import empty_database, server_of
from tests.store.schedules.contents import FIRST_ID, numbers_in, query_of_all, text_of_rows
from tests.store.schedules.sessions import BEGIN_WRITING, Session
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.engine import open_autocommit
from treeclaim.store.schema import revisions
from treeclaim.store.schema.tables import own_tables, placement

SESSIONS = 3
"""Most sessions of a schedule."""

_PURGE_INTERVAL = 0.0005
"""Seconds between two checks of a purge."""

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""Creation time of all rows of a world."""


class Place:
    """A database with the schema, and sessions on it.

    Attributes:
        kind: Kind of the database.
        locks_until_the_end: Whether only the end or the failure of a transaction releases its locks.
        store: Reads the database after a schedule.
        sessions: Sessions for schedules.
        known_ids: Ids that the present world sets.
    """

    locks_until_the_end = False

    def __init__(self, kind, url):
        self.kind = kind
        url = self.tuned(make_url(url)).render_as_string(hide_password=False)
        self.store = Store(DatabaseSettings(url, sqlite_synchronous=False))
        revisions.sync(self.store.engine)
        tables = [*placement.sorted_tables, *own_tables.sorted_tables]
        self._tables = [table for table in tables if not table.name.endswith("alembic_version")]
        self._all_rows = query_of_all(kind, self._tables)
        self._filled_with = None
        self._beginnings = {}
        self.known_ids = frozenset()
        self.prepare()
        self._own_rows = self._rows_of_own_tables()
        self.sessions = [Session(f"s{number + 1}", url) for number in range(SESSIONS)]

    def tuned(self, url):
        """Return the URL with options for fast transactions and fast detection of deadlocks."""
        return url

    def prepare(self):
        """Prepare the database once, after its schema was created."""

    def _rows_of_own_tables(self):
        with self.store.engine.connect() as connection:
            return {
                table.name: [dict(row) for row in connection.execute(table.select()).mappings()]
                for table in own_tables.sorted_tables
            }

    def script(self, world):
        """Return the SQL that replaces all contents of the database by a world."""
        # The shards of the feed stay.
        rows = {
            table.name: [*self._own_rows.get(table.name, ()), *world.rows.get(table.name, ())]
            for table in self._tables
        }
        statements = [sa.delete(table) for table in reversed(self._tables)]
        statements += [
            self._insert(table, rows[table.name]) for table in self._tables if rows.get(table.name)
        ]
        return ";\n".join(self._literal(statement) for statement in statements) + ";"

    def _insert(self, table, rows):
        common = dict.fromkeys(name for row in rows for name in row)
        if "created_at" in table.c:
            common["created_at"] = BEGINNING
        return sa.insert(table).values([{**common, **row} for row in rows])

    def _literal(self, statement):
        compiled = statement.compile(
            dialect=self.store.engine.dialect, compile_kwargs={"literal_binds": True}
        )
        return str(compiled)

    def fill(self, script):
        """Execute the script of a world."""
        if script != self._filled_with:
            self._filled_with, self.known_ids = script, numbers_in(script)
            self._keep(script)
        self._execute(script)

    def beginning(self, world, make):
        """Return the cached beginning of a world; `make` creates it from the script and a store of the filled database."""
        if world not in self._beginnings:
            script = self.script(world)
            self.fill(script)
            self._beginnings[world] = make(script, self.store)
        return self._beginnings[world]

    def _keep(self, script):
        """Prepare a script for many executions."""

    def _execute(self, script):
        """Execute a script in one transaction."""
        raise NotImplementedError

    def contents(self):
        """Return all rows as one text."""
        return text_of_rows(map(" ".join, self._ask(self._all_rows)), self.known_ids)

    def _ask(self, question):
        """Return the rows of a query outside of transactions."""
        raise NotImplementedError

    def may_advance(self, session):
        """Return whether a session can execute its next statement."""
        return True

    def waiting(self, sessions):
        """Return the sessions that wait for a lock now."""
        raise NotImplementedError

    def close(self):
        """Close all connections."""
        for session in self.sessions:
            session.close()
        self.store.close()


class SqlitePlace(Place):
    """SQLite: a second writer always waits."""

    def prepare(self):
        self._filler = sqlite3.connect(
            self.store.engine.url.database, isolation_level=None, check_same_thread=False
        )
        self._filler.execute("PRAGMA synchronous = OFF")

    def _execute(self, script):
        self._filler.executescript(f"BEGIN IMMEDIATE;\n{script}\nCOMMIT;")

    def _ask(self, question):
        return self._filler.execute(question).fetchall()

    def may_advance(self, session):
        return session.next_step != BEGIN_WRITING or not any(
            session.writing for session in self.sessions
        )

    def waiting(self, sessions):
        return []

    def close(self):
        self._filler.close()
        super().close()


class PostgresqlPlace(Place):
    """PostgreSQL, whose table of locks is always current."""

    locks_until_the_end = True

    def tuned(self, url):
        # The session that waits last detects a deadlock, because the other sessions have checked before.
        # A generic plan halves the cost of a statement.
        settings = {
            "deadlock_timeout": "1ms",
            "synchronous_commit": "off",
            "plan_cache_mode": "force_generic_plan",
            "jit": "off",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        folder = str(server_of(self.kind).folder)
        return url.set(host=None).update_query_dict({"options": options, "host": folder})

    def prepare(self):
        self._administrator = open_autocommit(self.store.engine)
        self._administrator.silence = None
        # Scripts of worlds skip the checks of foreign keys.
        self._administrator.execute("SET session_replication_role = replica")
        sequences = self._ask("SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'")
        for (sequence,) in sequences:
            self._ask(f"SELECT setval('{sequence}', {FIRST_ID})")

    def _ask(self, question):
        return self._administrator.execute(question).fetchall()

    def _keep(self, script):
        # The statements of a procedure are planned once; planning is most of their work.
        self._administrator.execute(
            f"CREATE OR REPLACE PROCEDURE fill() LANGUAGE plpgsql AS $fill$BEGIN {script} END$fill$"
        )

    def _execute(self, script):
        self._administrator.execute("CALL fill()")

    def waiting(self, sessions):
        rows = self._ask("SELECT pid FROM pg_locks WHERE NOT granted")
        pids = {pid for (pid,) in rows}
        return [session for session in sessions if session.backend in pids]

    def close(self):
        self._administrator.close()
        super().close()


class MariadbPlace(Place):
    """MariaDB, whose monitor is current, while its tables of locks are 100 ms old."""

    def tuned(self, url):
        socket = str(server_of(self.kind).folder / "socket")
        return url.set(host=None).update_query_dict({"unix_socket": socket})

    _WAITS = re.compile(r"LOCK WAIT .*?\nMariaDB thread id (\d+),", re.DOTALL)
    _UNPURGED = (
        "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"
    )
    _PURGE_SECONDS = 60
    """Timeout of a purge, which takes milliseconds."""

    _SETTINGS: ClassVar = {
        # Only a power failure would lose commits.
        "innodb_flush_log_at_trx_commit": 2,
        # Each schedule waits for a small purge.
        "innodb_purge_threads": 1,
        "innodb_purge_rseg_truncate_frequency": 1,
    }

    def prepare(self):
        self._administrator = self._connected()
        self._wakers = [self._connected() for _ in range(12)]
        self._waking = ThreadPoolExecutor(len(self._wakers))
        self._usual = {name: self._ask(f"SELECT @@{name}")[0][0] for name in self._SETTINGS}
        self._set(self._SETTINGS)
        self._ask("SET foreign_key_checks = 0")
        for table in self._tables:
            if table.autoincrement_column is not None:
                self._ask(f"ALTER TABLE {table.name} AUTO_INCREMENT = {FIRST_ID}")

    def _set(self, settings):
        for name, value in settings.items():
            self._ask(f"SET GLOBAL {name} = {value}")

    def _connected(self):
        url = self.store.engine.url
        return pymysql.connect(
            unix_socket=url.query["unix_socket"],
            user=url.username,
            database=url.database,
            client_flag=CLIENT.MULTI_STATEMENTS,
            autocommit=True,
        )

    def _ask(self, question):
        with self._administrator.cursor() as cursor:
            cursor.execute(question)
            rows = cursor.fetchall()
            while cursor.nextset():
                pass
            return rows

    def _execute(self, script):
        self._ask(f"BEGIN;\n{script}\nCOMMIT;")
        self._purge()

    def _purge(self):
        """Purge deleted rows of earlier schedules from the indexes.

        An INSERT next to a deleted name locks it, so that an INSERT of another name waits; without deleted names
        it would not. The server purges within a second. A statement makes it purge at once, but then sleeps for
        100 ms, so a separate connection sends it.
        """
        self._waking.submit(self._wake, self._wakers)
        deadline = time.monotonic() + self._PURGE_SECONDS
        while self._ask(self._UNPURGED)[0][0]:
            if time.monotonic() > deadline:
                raise TimeoutError("MariaDB did not purge deleted rows")
            time.sleep(_PURGE_INTERVAL)

    @staticmethod
    def _wake(wakers):
        waker = wakers.pop()
        with waker.cursor() as cursor:
            cursor.execute("SET GLOBAL innodb_max_purge_lag_wait = 0")
        wakers.append(waker)

    def waiting(self, sessions):
        ((_, _, monitor),) = self._ask("SHOW ENGINE INNODB STATUS")
        # The text before that describes past deadlocks.
        _, _, present = monitor.partition("LIST OF TRANSACTIONS FOR EACH SESSION")
        pids = {
            int(number)
            for part in present.split("---TRANSACTION ")
            for number in self._WAITS.findall(part)
        }
        return [session for session in sessions if session.backend in pids]

    def close(self):
        self._waking.shutdown()
        for waker in self._wakers:
            waker.close()
        self._set(self._usual)
        self._administrator.close()
        super().close()


_PLACES = {"sqlite": SqlitePlace, "postgresql": PostgresqlPlace, "mariadb": MariadbPlace}


@contextmanager
def place_of(kind, folder):
    """Yield a place on an empty database of a kind."""
    with empty_database(kind, folder) as url:
        place = _PLACES[kind](kind, url)
        try:
            yield place
        finally:
            with suppress(sa.exc.DBAPIError):
                place.close()
