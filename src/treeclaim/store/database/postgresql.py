# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: session settings, and a connection with a read timeout."""

from collections.abc import Generator, Mapping
from time import monotonic
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg.types.string import TextLoader
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.systems import DatabaseSettings, System, set_clock
from treeclaim.store.database.timeouts import KEEPALIVE_PROBES, MILLISECONDS, Timeouts

_LOCK_NUMBER = 0x7472_6565


class ServerSilentError(psycopg.OperationalError):
    """The server sent nothing for too long; the connection was closed."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection with a read timeout, which psycopg does not have.

    TCP detects a lost machine, but neither a stopped process nor a proxy without its backend.

    Attributes:
        silence: Seconds without a byte after which it is closed; None for no limit.
    """

    silence: float | None = None

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for a response; raise `ServerSilentError` after `silence`."""
        if self.silence is None:
            return super().wait(gen, *args, **options)
        return super().wait(self._with_timeout(gen, self.silence), *args, **options)

    def _with_timeout(self, gen: Any, silence: float) -> Generator[Any, Any, Any]:
        """Wrap psycopg's generator, which receives a falsy value at short intervals while no data arrives."""
        try:
            wait_state = next(gen)
            last_data_at = monotonic()
            while True:
                ready_state = yield wait_state
                if ready_state:
                    last_data_at = monotonic()
                elif monotonic() - last_data_at > silence:
                    self.pgconn.finish()
                    raise ServerSilentError(f"the server was silent for {silence:g} seconds")
                wait_state = gen.send(ready_state)
        except StopIteration as end:
            return end.value


def _read_version(connection: Connection) -> tuple[int, int]:
    """Return the version that a server reports; a compatible server reports that of PostgreSQL."""
    driver: Any = connection.connection.dbapi_connection
    number: int = driver.info.server_version
    return divmod(number, 10_000)


def _list_parameters(timeouts: Timeouts) -> dict[str, Any]:
    return {
        "connect_timeout": timeouts.connect,
        "keepalives": 1,
        "keepalives_idle": timeouts.keepalive,
        "keepalives_interval": timeouts.keepalive,
        "keepalives_count": KEEPALIVE_PROBES,
        "tcp_user_timeout": timeouts.tcp * MILLISECONDS,
    }


_DRIVER = {"client_encoding": "UTF8"}
"""A database in SQL_ASCII, as initdb creates it under LANG=C, has no encoding: the driver would return bytes."""

_SERVER_TIME = "CAST(extract(epoch FROM clock_timestamp()) AS TEXT)"

_REPORTED_SETTINGS = {
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
}
"""Settings that the driver relies on too. The server reports their changes, so poolers restore them in each session
that they lend."""

_ASSUMED_SETTINGS = {
    # All digits of a ratio.
    "extra_float_digits": "3",
    # Arrays of values may contain nulls.
    "array_nulls": "on",
    "transform_null_equals": "off",
    # A session keeps its plans until the tables are analysed. A plan for an empty table would scan the table
    # after it has grown: in a new or restored cloud, each claim took longer than the one before.
    "enable_seqscan": "off",
    # Without seqscan, a query that has no index gets so high a cost that the server would compile its plan,
    # which takes longer than the statement.
    "jit": "off",
}
"""Further settings that statements rely on; the defaults of a server, database or user may differ."""


def _list_limits(timeouts: Timeouts) -> dict[str, str]:
    limits = {
        "statement_timeout": timeouts.statement,
        "lock_timeout": timeouts.lock,
        "idle_in_transaction_session_timeout": timeouts.idle,
    }
    return {name: str(seconds * MILLISECONDS) for name, seconds in limits.items()}


def _set_config(values: Mapping[str, str], *, local: bool) -> str:
    """Return one statement that sets options, for the transaction if `local`, else for the session.

    It skips unknown options, so that an unsupported server is refused by its name, not by an error.
    """
    is_local = str(local).lower()
    calls = (
        f"CASE WHEN current_setting('{name}', true) IS NOT NULL "
        f"THEN set_config('{name}', '{value}', {is_local}) END"
        for name, value in values.items()
    )
    return f"SELECT {', '.join(calls)}"


class _PostgreSQL(System):
    """PostgreSQL. A statement sets the options of a session, because PgBouncer rejects startup options."""

    def prepare(self, engine: Engine, settings: DatabaseSettings) -> None:
        # SQLAlchemy's own function fails for a version text without the name PostgreSQL.
        dialect: Any = engine.dialect
        dialect._get_server_version_info = _read_version  # noqa: SLF001
        timeouts = settings.timeouts
        defaults = _list_parameters(timeouts)
        required_settings = _REPORTED_SETTINGS | _ASSUMED_SETTINGS | _list_limits(timeouts)

        @sa.event.listens_for(engine, "do_connect")
        def _connect(
            _dialect: Any, _record: Any, arguments: Any, parameters: dict[str, Any]
        ) -> Any:
            # The URL overrides the defaults, but not the encoding.
            return BoundedConnection.connect(*arguments, **(defaults | parameters | _DRIVER))

        # Inserted first: SQLAlchemy's own listener reads settings of the server.
        @sa.event.listens_for(engine, "connect", insert=True)
        def _set_session(connection: Any, record: ConnectionPoolEntry) -> None:
            connection.silence = timeouts.silence
            # `orjson` parses JSON in less time than the driver.
            connection.adapters.register_loader("json", TextLoader)
            connection.autocommit = True
            row = connection.execute(
                f"{_set_config(required_settings, local=False)}, {_SERVER_TIME}"
            )
            set_clock(record, row.fetchone()[-1])
            connection.autocommit = False

        @sa.event.listens_for(engine, "checkout")
        def _restore_timeout(connection: Any, _record: Any, _proxy: Any) -> None:
            connection.silence = timeouts.silence

    def for_writing(self, engine: Engine) -> Engine:
        return engine.execution_options(isolation_level="READ COMMITTED")

    def for_reading(self, engine: Engine) -> Engine:
        return engine.execution_options(isolation_level="REPEATABLE READ")

    def enable_autocommit(self, connection: Any) -> None:
        connection.autocommit = True

    def acquire_schema_lock(self, connection: Connection, seconds: int) -> bool:
        # The lock lasts until the transaction ends. A timeout raises an error of the database.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(seconds * MILLISECONDS, 1)}")
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NUMBER)))
        return True

    def extend_timeouts(self, connection: Connection, timeouts: Timeouts, deadline: float) -> None:
        del deadline
        connection.exec_driver_sql(_set_config(_list_limits(timeouts.make_extended()), local=True))
        driver: Any = connection.connection.dbapi_connection
        self.set_read_timeout(driver, timeouts.load_silence)

    def set_read_timeout(self, connection: Any, seconds: float) -> None:
        connection.silence = seconds


SYSTEM = _PostgreSQL()
