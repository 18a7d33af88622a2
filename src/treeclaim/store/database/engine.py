# SPDX-License-Identifier: Apache-2.0
"""Creates engines from the options of `[placement_database]`, and lends their connections."""

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
    describe_cause,
    invalidate_unfit,
    is_refusal,
    make_unavailable_error,
)
from treeclaim.store.database.incomparable_text import replace_incomparable_text
from treeclaim.store.database.systems import KINDS, DatabaseSettings, get_system
from treeclaim.store.database.timeouts import POOL_SECONDS, TIMEOUTS_OPTION

_LOG = logging.getLogger(__name__)

REFUSED = (
    "The database server refuses this user, password or database; see "
    "[placement_database]/connection"
)


def make_engine(settings: DatabaseSettings) -> Engine:
    """Create an engine without connecting.

    Raises:
        ArgumentError: if the URL is invalid, or names an unsupported kind of database.
        ImportError: if the driver is not installed.
    """
    url = add_driver(make_url(settings.url))
    if url.get_backend_name() not in KINDS:
        raise ArgumentError(f"{url.drivername} is not supported; use {', '.join(KINDS)}")
    options: dict[str, Any] = {
        "pool_recycle": settings.connection_recycle_time,
        "pool_timeout": settings.pool_timeout or POOL_SECONDS,
        "echo": settings.connection_debug > 0,
        # Parameters would put names of projects and users into error texts.
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
    get_system(engine).prepare(engine, settings)
    replace_incomparable_text(engine)
    sa.event.listen(engine, "handle_error", invalidate_unfit)
    return engine


@contextmanager
def lend_connection(engine: Engine) -> Iterator[Connection]:
    """Lend a connection for one transaction.

    Raises:
        DBAPIError: as for any statement.
    """
    # SQLAlchemy does not wrap errors of the driver while it sets the isolation level, nor the error for a
    # first connection that is closed before it has read the version of the server.
    errors = engine.dialect.loaded_dbapi.Error
    try:
        connection = engine.connect()
    except (errors, ResourceClosedError) as error:
        raise OperationalError(None, None, error, connection_invalidated=True) from error
    try:
        yield connection
    finally:
        # Returning the connection may fail after a successful commit.
        with suppress(errors):
            connection.close()


def open_autocommit(engine: Engine) -> Any:
    """Open a connection of the driver outside of the pool, in autocommit mode; raises the driver's errors."""
    try:
        pooled_connection = engine.raw_connection()
    except DBAPIError as error:
        raise error.orig or error from error
    pooled_connection.detach()
    connection: Any = pooled_connection.dbapi_connection
    get_system(engine).enable_autocommit(connection)
    return connection


def await_database(engine: Engine, *, attempts: int, pause: float) -> None:
    """Connect to the database, and retry after a pause in seconds, at most `attempts` times; -1 for no limit.

    Raises:
        StoreUnavailableError: if every attempt failed. A failure of SQLite, and a refusal of the user,
            password or database, is final.
    """
    for attempt in count():
        try:
            with lend_connection(engine):
                return
        except DBAPIError as error:
            if is_refusal(error.orig):
                raise StoreUnavailableError(REFUSED, cause=describe_cause(error)) from error
            if not get_system(engine).is_server or attempt == attempts:
                raise make_unavailable_error(error) from error
            _LOG.warning(
                "The database cannot be reached, next attempt in %s s: %s",
                pause,
                describe_cause(error),
            )
        time.sleep(pause)


def make_read_only_engine(settings: DatabaseSettings) -> Engine:
    """Create an engine for reading that does not create a missing file of SQLite.

    Raises:
        ArgumentError, ImportError: as `make_engine`.
    """
    url = add_driver(make_url(settings.url))
    if url.get_backend_name() == "sqlite":
        return sa.create_engine(sqlite.read_only(url))
    extended_settings = replace(settings, timeouts=settings.timeouts.make_extended())
    return make_engine(extended_settings).execution_options(postgresql_readonly=True)


def add_driver(url: URL) -> URL:
    """Add the default driver to a URL without a driver; map MariaDB to SQLAlchemy's dialect for MySQL."""
    drivers: Mapping[str, str] = {
        "mysql": "mysql+pymysql",
        "mariadb": "mysql+pymysql",
        "postgresql": "postgresql+psycopg",
        "postgres": "postgresql+psycopg",
        "postgresql+psycopg2": "postgresql+psycopg",
    }
    drivername = drivers.get(url.drivername, url.drivername)
    return url.set(drivername=drivername.replace("mariadb+", "mysql+", 1))


def describe_engine_error(error: Exception) -> str:
    """Return the text for an error of `make_engine`."""
    if isinstance(error, ImportError):
        return f"the driver is not installed: {error}"
    text = str(error).splitlines()[0]
    if text.startswith("Can't load plugin"):
        return f"there is no such driver ({text})"
    return text
