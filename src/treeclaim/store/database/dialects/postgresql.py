# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: settings of its sessions, and a client that detects a silent server."""

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.abilities import Abilities, asked_abilities, note_abilities
from treeclaim.store.database.clock import set_clock
from treeclaim.store.database.driver import Ready
from treeclaim.store.database.timeouts import Timeouts

ABILITIES = Abilities("PostgreSQL", is_shared_by_poolers=True, holds_nul=False)
CHANGE_NUMBER: str | None = None

_LOCK_NUMBER = 0x7472_6565
_MILLISECONDS = 1000
_PROBES = 2
"""Keepalive probes without an answer; with the idle time before them they make up the timeout."""


class ServerSilentError(psycopg.OperationalError):
    """The server sent nothing for too long; the connection was closed."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection with a read timeout.

    The library has none. TCP detects a machine that is gone, but not a stopped process, nor a
    proxy that has lost its backend.

    Attributes:
        silence: Seconds without a byte until it is closed; None for no limit.
        each_query: Settings for each query outside of a transaction, where the next one may meet
            another session; None where a session has them from its start.
    """

    silence: float | None = None
    each_query: str | None = None

    @contextmanager
    def settings_of_query(self) -> Iterator[None]:
        """Execute a query in the block, of a connection that commits each, under its settings.

        Raises:
            Error: of the driver.
        """
        # What is sent together is one transaction, in one round trip.
        together = psycopg.Pipeline.is_supported()
        with self.pipeline() if together else self.transaction():
            self.execute(self.each_query or "")
            yield

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an answer.

        Raises:
            ServerSilentError: if nothing came for too long.
        """
        if self.silence is None:
            return super().wait(gen, *args, **options)
        return super().wait(self._with_timeout(gen, self.silence), *args, **options)

    def set_autocommit(self, value: bool) -> None:  # noqa: FBT001 - psycopg's
        """Set it, if it changes; SQLAlchemy does for each transaction, twice."""
        if value != self.autocommit:
            super().set_autocommit(value)

    def set_isolation_level(self, value: psycopg.IsolationLevel | None) -> None:
        """Set it, if it changes; SQLAlchemy does for each transaction, twice."""
        if value != self.isolation_level:
            super().set_isolation_level(value)

    def _with_timeout(self, gen: Any, silence: float) -> Generator[Any, Any, Any]:
        """Pass on what the library's generator yields and receives, and check the time.

        While the socket has nothing, it receives something falsy at short intervals.
        """
        try:
            wanted = next(gen)
            heard = monotonic()
            while True:
                ready = yield wanted
                if ready:
                    heard = monotonic()
                elif monotonic() - heard > silence:
                    self.pgconn.finish()
                    raise ServerSilentError(f"the server was silent for {silence:g} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


def prepare(engine: Engine, timeouts: Timeouts, *, transaction_pooling: bool = False) -> None:
    """Say to each session what statements and driver take for granted, and set its timeouts.

    That is said after the start of a session: PgBouncer refuses startup options.

    Args:
        engine: The engine of the connections.
        timeouts: The timeouts of everything that waits.
        transaction_pooling: Whether a pooler lends a session for one transaction only. Then each
            transaction is told for itself, and no statement is prepared: the next one would look for
            it in another session, or find that of somebody else.
    """
    # SQLAlchemy would look for the name PostgreSQL in what the server calls itself.
    dialect: Any = engine.dialect
    dialect._get_server_version_info = _version_of  # noqa: SLF001
    defaults = _parameters(timeouts)
    settings = _ASSUMED | _limits(timeouts)
    of_session = _REPORTED if transaction_pooling else _REPORTED | settings
    forced = _DRIVER | ({"prepare_threshold": None} if transaction_pooling else {})

    @sa.event.listens_for(engine, "do_connect")
    def _connecting(_dialect: Any, _record: Any, given: Any, parameters: dict[str, Any]) -> Any:
        # Options of the URL take precedence, except for what the driver has to know.
        return BoundedConnection.connect(*given, **(defaults | parameters | forced))

    # Before SQLAlchemy asks the server about itself.
    @sa.event.listens_for(engine, "connect", insert=True)
    def _connected(connection: Any, record: ConnectionPoolEntry) -> None:
        connection.silence = timeouts.silence
        connection.autocommit = True
        said = connection.execute(f"{_set_config(of_session, local=False)}, {_ASKED}")
        *_, server, has_jit, told = said.fetchone()
        set_clock(record, told)
        name = _END_OF_NAME.split(server)[0]
        note_abilities(record, replace(ABILITIES, server=name, compiles_plans=has_jit))
        connection.autocommit = False
        if transaction_pooling:
            connection.each_query = _set_config(settings | _BY_INDEX, local=True)

    if transaction_pooling:

        @sa.event.listens_for(engine, "begin")
        def _begun(connection: Connection) -> None:
            connection.exec_driver_sql(_set_config(settings, local=True))

    @sa.event.listens_for(engine, "checkout")
    def _lent(connection: Any, _record: Any, _proxy: Any) -> None:
        connection.silence = timeouts.silence


def _version_of(connection: Connection) -> tuple[int, int]:
    """Return the version of PostgreSQL that a server says to be, or to be compatible with."""
    driver: Any = connection.connection.dbapi_connection
    number: int = driver.info.server_version
    return divmod(number, 10_000)


def for_writing(engine: Engine) -> Engine:
    """Return the engine with transactions whose statements see what is committed when they begin."""
    return engine.execution_options(isolation_level="READ COMMITTED")


def for_reading(engine: Engine) -> Engine:
    """Return the engine with transactions that see one snapshot."""
    return engine.execution_options(isolation_level="REPEATABLE READ")


_SHARED_LOCK = "FROM (SELECT 1) AS nothing FOR KEY SHARE"
_ISOLATION = f"SELECT current_setting('transaction_isolation') {_SHARED_LOCK}"
_ISOLATION_OF_YUGABYTE = f"SELECT yb_get_effective_transaction_isolation_level() {_SHARED_LOCK}"
"""YugabyteDB says `read committed` also where it gives `repeatable read`."""


def isolation(connection: Connection) -> str:
    """Return the isolation that a transaction has, whatever was asked for, in small letters.

    Raises:
        DBAPIError: as for any statement; also where the server has no shared row locks.
    """
    found = asked_abilities(connection) or ABILITIES
    is_yugabyte = "-YB-" in found.server
    asked = _ISOLATION_OF_YUGABYTE if is_yugabyte else _ISOLATION
    return str(connection.exec_driver_sql(asked).scalar())


def take_lock(connection: Connection, seconds: int) -> bool:
    """Take the lock under which the schema is made, until the transaction ends.

    Raises:
        DBAPIError: if others have it for longer than some seconds; where there is no such lock.
    """
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(seconds * _MILLISECONDS, 1)}")
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NUMBER)))
    return True


def give_lock_back(_connection: Connection) -> None:
    """Leave that to the end of the transaction."""


def allow_long_texts(_connection: Connection) -> None:
    """Leave texts as long as they are."""


def _parameters(timeouts: Timeouts) -> dict[str, Any]:
    return {
        "connect_timeout": timeouts.connect,
        "keepalives": 1,
        "keepalives_idle": timeouts.keepalive,
        "keepalives_interval": timeouts.keepalive,
        "keepalives_count": _PROBES,
        "tcp_user_timeout": timeouts.tcp * _MILLISECONDS,
    }


_DRIVER = {"client_encoding": "UTF8"}
"""A database in SQL_ASCII, which initdb makes under LANG=C, names no encoding, and the driver would
give bytes in place of text."""

_END_OF_NAME = re.compile(r" on | \(|,")
"""Ends the name and version in what a server calls itself; what it was built for follows."""

_ASKED = "version(), current_setting('jit', true) IS NOT NULL, CAST(extract(epoch FROM clock_timestamp()) AS TEXT)"

_REPORTED = {
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "DateStyle": "ISO, YMD",
    "TimeZone": "UTC",
}
"""What the driver takes for granted too. The server reports their changes, so a pooler knows them, and
sets them again in each session that it lends."""

_ASSUMED = {
    # All digits of a ratio.
    "extra_float_digits": "3",
    # Lists of values may have some that are missing.
    "array_nulls": "on",
    "transform_null_equals": "off",
}
"""Other settings that statements rely on; a server, a database or a user may set them otherwise."""


def _limits(timeouts: Timeouts) -> dict[str, str]:
    """Return the settings that limit all waiting."""
    limits = {
        "statement_timeout": timeouts.statement,
        "lock_timeout": timeouts.lock,
        "idle_in_transaction_session_timeout": timeouts.idle,
    }
    return {name: str(seconds * _MILLISECONDS) for name, seconds in limits.items()}


_IF_KNOWN = {
    name: f"CASE WHEN current_setting('{name}', true) IS NOT NULL THEN {{}} END"
    for name in ("array_nulls", "jit", "transform_null_equals")
}
"""What servers that take PostgreSQL's statements may not know: there it is as it has to be."""


def _set_config(values: Mapping[str, str], *, local: bool) -> str:
    """Return one statement that sets options, for the session or for the transaction."""
    is_local = str(local).lower()
    calls = (
        _IF_KNOWN.get(name, "{}").format(f"set_config('{name}', '{value}', {is_local})")
        for name, value in values.items()
    )
    return f"SELECT {', '.join(calls)}"


_BY_INDEX = {"enable_seqscan": "off", "jit": "off"}
"""Has rows read by an index wherever there is one.

A session keeps the plan of a statement until somebody analyses its tables. What was planned while a
table was empty reads all of it, however large it has become: in a new cloud, or a restored one, each
claim took longer than the one before. What has no index seems so dear then that the server would
compile its plan first, which takes longer than the statement."""

_TRANSACTION_BY_INDEX = {
    # Every transaction that writes says so: where it is known that the server can, it does not look.
    True: Ready(
        "SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"
    ),
    False: Ready("SELECT set_config('enable_seqscan', 'off', true)"),
}


def by_index(connection: Connection) -> Ready:
    """Return what has rows read by an index for the rest of a transaction."""
    return _TRANSACTION_BY_INDEX[(asked_abilities(connection) or ABILITIES).compiles_plans]


def make_autocommitting(connection: Any) -> None:
    """Let each query of a connection be a transaction, and read by indexes.

    Raises:
        Error: of the driver.
    """
    connection.autocommit = True
    if connection.each_query is None:
        connection.execute(_set_config(_BY_INDEX, local=False))


def limit_of_lock_waits(seconds: int) -> Ready:
    """Return what sets the timeout of one lock, for the rest of a transaction."""
    return Ready(
        "SELECT set_config('lock_timeout', %(timeout)s, true)",
        {"timeout": str(seconds * _MILLISECONDS)},
    )


def extend_timeouts(connection: Connection, timeouts: Timeouts, _deadline: float) -> None:
    """Set the timeouts of reading everything, for the rest of a transaction."""
    connection.exec_driver_sql(_set_config(_limits(timeouts.extended()), local=True))
    driver: Any = connection.connection.dbapi_connection
    driver.silence = timeouts.load_silence
