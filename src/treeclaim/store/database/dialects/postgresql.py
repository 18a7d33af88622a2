# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL: settings of its sessions, and a client that detects a silent server."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import ConnectionPoolEntry

from treeclaim.store.database.clock import set_clock
from treeclaim.store.database.driver import Ready
from treeclaim.store.database.timeouts import Timeouts

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

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an answer.

        Raises:
            ServerSilentError: if nothing came for too long.
        """
        if self.silence is None:
            return super().wait(gen, *args, **options)
        return super().wait(self._with_timeout(gen, self.silence), *args, **options)

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
        engine: Of the connections.
        timeouts: Of all waiting.
        transaction_pooling: Whether a pooler lends a session for one transaction only. Then each
            transaction is told for itself, and no statement is prepared: the next one would look for
            it in another session, or find that of somebody else.
    """
    own = _parameters(timeouts)
    settings = _ASSUMED | _limits(timeouts)
    of_session = _REPORTED if transaction_pooling else _REPORTED | settings
    forced = _DRIVER | ({"prepare_threshold": None} if transaction_pooling else {})

    @sa.event.listens_for(engine, "do_connect")
    def _connecting(_dialect: Any, _record: Any, given: Any, parameters: dict[str, Any]) -> Any:
        # Options of the URL take precedence, but for what the driver has to know.
        return BoundedConnection.connect(*given, **(own | parameters | forced))

    # Before SQLAlchemy asks the server about itself.
    @sa.event.listens_for(engine, "connect", insert=True)
    def _connected(connection: Any, record: ConnectionPoolEntry) -> None:
        connection.silence = timeouts.silence
        connection.autocommit = True
        said = connection.execute(f"{_set_config(of_session, local=False)}, {_SECONDS}")
        set_clock(record, said.fetchone()[-1])
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

_SECONDS = "CAST(extract(epoch FROM clock_timestamp()) AS TEXT)"

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
"""What statements take for granted besides; a server, a database or a user may say otherwise."""


def _limits(timeouts: Timeouts) -> dict[str, str]:
    """Return the settings that limit all waiting."""
    limits = {
        "statement_timeout": timeouts.statement,
        "lock_timeout": timeouts.lock,
        "idle_in_transaction_session_timeout": timeouts.idle,
    }
    return {name: str(seconds * _MILLISECONDS) for name, seconds in limits.items()}


def _set_config(values: Mapping[str, str], *, local: bool) -> str:
    """Return one statement that sets options, for the session or for the transaction."""
    calls = (
        f"set_config('{name}', '{value}', {str(local).lower()})" for name, value in values.items()
    )
    return f"SELECT {', '.join(calls)}"


_BY_INDEX = {"enable_seqscan": "off", "jit": "off"}
"""Has rows read by an index wherever there is one.

A session keeps the plan of a statement until somebody analyses its tables. What was planned while a
table was empty reads all of it, however large it has become: in a new cloud, or a restored one, each
claim took longer than the one before. What has no index seems so dear then that the server would
compile its plan first, which takes longer than the statement."""

TRANSACTION_BY_INDEX = Ready(_set_config(_BY_INDEX, local=True))
"""For the rest of a transaction."""


def make_autocommitting(connection: BoundedConnection) -> None:
    """Let each query of a connection be a transaction, and read by indexes.

    Raises:
        Error: of the driver.
    """
    connection.autocommit = True
    if connection.each_query is None:
        connection.execute(_set_config(_BY_INDEX, local=False))


@contextmanager
def settings_of_query(connection: Any) -> Iterator[None]:
    """Execute a query in the block, of a connection that commits each, under its settings.

    Raises:
        Error: of the driver.
    """
    said = connection.each_query if isinstance(connection, BoundedConnection) else None
    if said is None:
        yield
        return
    # What is sent together is one transaction, in one round trip.
    together = psycopg.Pipeline.is_supported()
    with connection.pipeline() if together else connection.transaction():
        connection.execute(said)
        yield


def limit_of_lock_waits(seconds: int) -> Ready:
    """Return what sets the timeout of one lock, for the rest of a transaction."""
    return Ready(
        "SELECT set_config('lock_timeout', %(timeout)s, true)",
        {"timeout": str(seconds * _MILLISECONDS)},
    )


def extend_timeouts(connection: Connection, timeouts: Timeouts) -> None:
    """Set the timeouts of reading everything, for the rest of a transaction."""
    connection.exec_driver_sql(_set_config(_limits(timeouts.extended()), local=True))
    driver: Any = connection.connection.dbapi_connection
    driver.silence = timeouts.load_silence
