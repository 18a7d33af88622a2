# SPDX-License-Identifier: Apache-2.0
"""Engines, made from the options of `[placement_database]`, and the connections that they lend."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ResourceClosedError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database import sqlite
from treeclaim.store.database.failures import (
    cause_of,
    invalidate_unfit,
    is_refusal,
    unavailable,
)
from treeclaim.store.database.incomparable_text import match_nothing_by_incomparable_text
from treeclaim.store.database.systems import KINDS, DatabaseSettings, system_of
from treeclaim.store.database.timeouts import POOL_SECONDS, TIMEOUTS_OPTION

_LOG = logging.getLogger(__name__)

REFUSED = (
    "The database server refuses this user, password or database; see "
    "[placement_database]/connection"
)


def make_engine(settings: DatabaseSettings) -> Engine:
    """Create the engine; it connects later.

    Raises:
        ArgumentError: for a URL that is none, or of another kind of database.
        ImportError: if the driver is not installed.
    """
    url = with_driver(make_url(settings.url))
    if url.get_backend_name() not in KINDS:
        raise ArgumentError(f"{url.drivername} is not supported; use {', '.join(KINDS)}")
    options: dict[str, Any] = {
        "pool_recycle": settings.connection_recycle_time,
        "pool_timeout": settings.pool_timeout or POOL_SECONDS,
        "echo": settings.connection_debug > 0,
        # Parameters in an error text would be names of projects and users.
        "hide_parameters": settings.connection_debug == 0,
        "execution_options": {TIMEOUTS_OPTION: settings.timeouts},
    }
    for name, value in (
        ("pool_size", settings.max_pool_size),
        ("max_overflow", settings.max_overflow),
    ):
        if value is not None:
            options[name] = value
    if url.get_backend_name() == "mysql":
        options["pool_reset_on_return"] = None
    engine = sa.create_engine(url, **options)
    system_of(engine).prepare(engine, settings)
    match_nothing_by_incomparable_text(engine)
    sa.event.listen(engine, "handle_error", invalidate_unfit)
    return engine


@contextmanager
def connected(engine: Engine) -> Iterator[Connection]:
    """Lend a connection for one transaction.

    Raises:
        DBAPIError: as for any statement. Errors of the driver itself, which SQLAlchemy passes on
            while it sets the isolation level, are wrapped too: such a connection is lost. So is
            the first one of an engine that is closed before SQLAlchemy has asked about the server.
    """
    errors = engine.dialect.loaded_dbapi.Error
    try:
        connection = engine.connect()
    except (errors, ResourceClosedError) as error:
        raise OperationalError(None, None, error, connection_invalidated=True) from error
    try:
        yield connection
    finally:
        # A commit is not undone if the connection cannot be returned.
        with suppress(errors):
            connection.close()


def autocommitting(engine: Engine) -> Any:
    """Return a connection of the driver for small queries, out of the pool and in autocommit mode.

    Raises:
        The driver's own errors.
    """
    try:
        pooled = engine.raw_connection()
    except DBAPIError as error:
        raise error.orig or error from error
    pooled.detach()
    connection: Any = pooled.dbapi_connection
    system_of(engine).make_autocommitting(connection)
    return connection


def await_database(engine: Engine, *, attempts: int, pause: float) -> None:
    """Wait until the database can be reached, as `max_retries` and `retry_interval` say.

    Args:
        engine: The engine of the database. Without a server the first failure is final.
        attempts: Attempts after the first; -1 for no limit.
        pause: Seconds between them.

    Raises:
        StoreUnavailableError: if it could not be reached. At once if it answers, but refuses the
            user, password or database, because waiting does not help.
    """
    for attempt in count():
        try:
            with connected(engine):
                return
        except DBAPIError as error:
            if is_refusal(error.orig):
                raise StoreUnavailableError(REFUSED, cause=cause_of(error)) from error
            if not system_of(engine).is_server or attempt == attempts:
                raise unavailable(error) from error
            _LOG.warning(
                "The database cannot be reached, next attempt in %s s: %s", pause, cause_of(error)
            )
        time.sleep(pause)


def make_read_only_engine(settings: DatabaseSettings) -> Engine:
    """Create an engine for reading, whose connections create no file of SQLite.

    Raises:
        SQLAlchemyError: if the URL is not one of a database.
        ImportError: if its driver is not installed.
    """
    url = with_driver(make_url(settings.url))
    if url.get_backend_name() == "sqlite":
        return sa.create_engine(sqlite.read_only(url))
    extended = replace(settings, timeouts=settings.timeouts.extended())
    return make_engine(extended).execution_options(postgresql_readonly=True)


def with_driver(url: URL) -> URL:
    """Name the installed driver where a URL names none; use one dialect for MariaDB and MySQL."""
    drivers: Mapping[str, str] = {
        "mysql": "mysql+pymysql",
        "mariadb": "mysql+pymysql",
        "postgresql": "postgresql+psycopg",
        "postgres": "postgresql+psycopg",
        "postgresql+psycopg2": "postgresql+psycopg",
    }
    chosen = drivers.get(url.drivername, url.drivername)
    return url.set(drivername=chosen.replace("mariadb+", "mysql+", 1))


def database_words(error: Exception) -> str:
    """Return the fault of a database URL, or of its driver, as a sentence."""
    if isinstance(error, ImportError):
        return f"the driver is not installed: {error}"
    text = str(error).splitlines()[0]
    if text.startswith("Can't load plugin"):
        return f"there is no such driver ({text})"
    return text
