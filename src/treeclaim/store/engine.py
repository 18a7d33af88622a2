# SPDX-License-Identifier: Apache-2.0
"""Connections to the database, and all that differs between SQLite, PostgreSQL and MariaDB."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, ExceptionContext, make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.model.errors import StoreUnavailableError

_LOG = logging.getLogger(__name__)

_SQLITE_WAIT = 30_000
"""Milliseconds that a writer waits for another one on SQLite."""

_RETRYABLE_MYSQL = {1205, 1213, 1020}
"""Lock wait timeout, deadlock (also Galera's certification failure), record has changed."""

_UNFIT_MYSQL = {1047, 1053, 1290, 1836}
"""A Galera node outside of the cluster, a server shutting down, two ways to say read-only."""

_UNFIT_POSTGRESQL = {"25006"}
"""A read-only transaction: the server has become a standby."""

_MYSQL_INCORRECT_STRING = 1366

_GALERA = "treeclaim_galera"
"""What is known of a connection: whether its server is a node of a Galera cluster."""

_GALERA_SYNC_WAIT = 7
"""Before reads, updates, deletions and insertions: wait for what other nodes have committed."""

_RETRYABLE_POSTGRESQL = {"40001", "40P01", "55P03"}
"""Serialisation failure, deadlock, lock not available."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How to reach the database; the options of `[placement_database]`.

    Attributes:
        url: SQLAlchemy URL.
        sqlite_synchronous: False trades durability for speed on SQLite.
        connection_recycle_time: Seconds after which a connection is replaced.
        max_pool_size, max_overflow, pool_timeout: Of the connection pool; None for the default.
        mysql_sql_mode: SQL mode of MariaDB and MySQL sessions; empty leaves the server's.
        connection_debug: Above 0 logs SQL statements, above 50 results too.
    """

    url: str = field(repr=False)
    sqlite_synchronous: bool = True
    connection_recycle_time: int = 3600
    max_pool_size: int | None = None
    max_overflow: int | None = None
    pool_timeout: int | None = None
    mysql_sql_mode: str = "TRADITIONAL"
    connection_debug: int = 0


def make_engine(settings: DatabaseSettings) -> Engine:
    """Create the engine; nothing is connected yet."""
    url = _with_driver(make_url(settings.url))
    options: dict[str, Any] = {
        "pool_recycle": settings.connection_recycle_time,
        "echo": settings.connection_debug > 0,
    }
    for name, value in (
        ("pool_size", settings.max_pool_size),
        ("max_overflow", settings.max_overflow),
        ("pool_timeout", settings.pool_timeout),
    ):
        if value is not None:
            options[name] = value
    engine = sa.create_engine(url, **options)
    if engine.dialect.name == "sqlite":
        _prepare_sqlite(engine, synchronous=settings.sqlite_synchronous)
    elif engine.dialect.name == "mysql":
        _prepare_mysql(engine, settings.mysql_sql_mode)
    sa.event.listen(engine, "handle_error", _give_up_unfit)
    return engine


def await_database(engine: Engine, *, attempts: int, pause: float) -> None:
    """Wait until the database can be reached, as `max_retries` and `retry_interval` say.

    Args:
        engine: Of the database. SQLite has nobody to wait for.
        attempts: Attempts after the first; -1 for endless ones.
        pause: Seconds between them.

    Raises:
        StoreUnavailableError: if it could not be reached.
    """
    for attempt in count():
        try:
            with engine.connect():
                return
        except DBAPIError as error:
            if engine.dialect.name == "sqlite" or attempt == attempts:
                raise StoreUnavailableError(str(error.orig)) from error
            _LOG.warning(
                "The database cannot be reached, next attempt in %s s: %s", pause, error.orig
            )
        time.sleep(pause)


def make_engine_that_only_reads(settings: DatabaseSettings) -> Engine:
    """Create an engine whose connections can change nothing, not even create a file of SQLite.

    Raises:
        SQLAlchemyError: if the URL is not one of a database.
        ImportError: if its driver is not installed.
    """
    url = _with_driver(make_url(settings.url))
    if url.get_backend_name() == "sqlite":
        if url.database and url.database != ":memory:":
            path = f"file:{quote(str(Path(url.database).absolute()))}"
            url = url.set(database=path).update_query_dict({"mode": "ro", "uri": "true"})
        return sa.create_engine(url)
    if url.get_backend_name() == "postgresql":
        return sa.create_engine(url, execution_options={"postgresql_readonly": True})
    engine = sa.create_engine(url)

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        connection.exec_driver_sql("START TRANSACTION READ ONLY")

    return engine


def _with_driver(url: URL) -> URL:
    """Choose the drivers that are installed where a URL names none."""
    drivers: Mapping[str, str] = {
        "mysql": "mysql+pymysql",
        "mariadb": "mysql+pymysql",
        "mariadb+pymysql": "mysql+pymysql",
        "postgresql": "postgresql+psycopg",
        "postgres": "postgresql+psycopg",
        "postgresql+psycopg2": "postgresql+psycopg",
    }
    return url.set(drivername=drivers.get(url.drivername, url.drivername))


def _prepare_sqlite(engine: Engine, *, synchronous: bool) -> None:
    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        # The driver would begin transactions by itself, and too late for a snapshot.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {_SQLITE_WAIT}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'OFF'}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writing = connection.get_execution_options().get("treeclaim_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _prepare_mysql(engine: Engine, sql_mode: str) -> None:
    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        if sql_mode:
            cursor.execute("SET SESSION sql_mode = %s", (sql_mode,))
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        record.info[_GALERA] = _wait_for_other_nodes(cursor)
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        # For this transaction only: whatever must be undone afterwards could fail afterwards.
        if connection.get_execution_options().get("treeclaim_writing", False):
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")


def _wait_for_other_nodes(cursor: Any) -> bool:
    """On a Galera cluster, let each transaction see all that was committed before it anywhere.

    Tells whether it is one.
    """
    cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
    found = cursor.fetchone()
    if found is None or found[1] != "ON":
        return False
    cursor.execute(f"SET SESSION wsrep_sync_wait = {_GALERA_SYNC_WAIT}")
    return True


def is_galera(connection: Connection) -> bool:
    """Tell whether a connection's server is a node of a Galera cluster."""
    return bool(connection.info.get(_GALERA))


def _give_up_unfit(context: ExceptionContext) -> None:
    """Treat a server that refuses its work as lost, so that the next one is another, or fit."""
    original = context.original_exception
    number = original.args[0] if original.args else None
    state = getattr(original, "sqlstate", None)
    if number in _UNFIT_MYSQL or state in _UNFIT_POSTGRESQL:
        context.is_disconnect = True


@contextmanager
def connected(engine: Engine) -> Iterator[Connection]:
    """Give a connection for one transaction.

    Raises:
        DBAPIError: as for any statement. A driver's own error, which SQLAlchemy lets through
            where it sets the isolation of a connection, becomes one too: that connection is lost.
    """
    errors = engine.dialect.loaded_dbapi.Error
    try:
        connection = engine.connect()
    except errors as error:
        raise OperationalError(None, None, error, connection_invalidated=True) from error
    try:
        yield connection
    finally:
        # What was committed stays so, even if the connection cannot be given back.
        with suppress(errors):
            connection.close()


def writing(engine: Engine) -> Engine:
    """Return the engine with transactions fit for writing.

    READ COMMITTED, where a statement sees what was committed while it waited for a lock; on
    SQLite the one write lock is taken at the beginning.
    """
    if engine.dialect.name in {"sqlite", "mysql"}:
        return engine.execution_options(treeclaim_writing=True)
    return engine.execution_options(isolation_level="READ COMMITTED")


def reading(engine: Engine) -> Engine:
    """Return the engine with transactions that see one consistent snapshot."""
    if engine.dialect.name in {"sqlite", "mysql"}:
        return engine
    return engine.execution_options(isolation_level="REPEATABLE READ")


def autocommitting(engine: Engine) -> Any:
    """Return a connection of the driver itself, outside the pool and without transactions.

    Raises:
        The driver's own errors.
    """
    try:
        pooled = engine.raw_connection()
    except DBAPIError as error:
        raise error.orig or error from error
    pooled.detach()
    connection: Any = pooled.dbapi_connection
    if engine.dialect.name == "postgresql":
        connection.autocommit = True
    elif engine.dialect.name == "mysql":
        connection.autocommit(True)
    return connection


def is_refused_value(error: DBAPIError) -> bool:
    """Tell whether the database cannot hold a value, such as a text with a NUL character."""
    number = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return isinstance(error, DataError) or number == _MYSQL_INCORRECT_STRING


def is_retryable(error: DBAPIError) -> bool:
    """Tell whether the same transaction may succeed if it is run again.

    A broken uniqueness counts: another transaction was first, and what it wrote is seen now.
    """
    if isinstance(error, IntegrityError):
        return True
    original = error.orig
    if getattr(original, "sqlstate", None) in _RETRYABLE_POSTGRESQL:
        return True
    number = original.args[0] if original is not None and original.args else None
    if number in _RETRYABLE_MYSQL:
        return True
    return getattr(original, "sqlite_errorname", "").startswith("SQLITE_BUSY")
