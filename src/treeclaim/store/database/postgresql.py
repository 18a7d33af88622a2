# SPDX-License-Identifier: Apache-2.0
"""What PostgreSQL needs: limits in its sessions, and a client that notices silence."""

from collections.abc import Generator
from time import monotonic
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from treeclaim.store.database.waits import Waits

_MILLISECONDS = 1000
_PROBES = 2
"""Signs of life asked for in vain; with the idleness before them they make up the limit."""


class ServerSilentError(psycopg.OperationalError):
    """The server sent nothing for too long; the connection was given up."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that is given up when its server falls silent.

    The library waits for an answer without end. TCP notices a machine that is gone, but not a
    process that is stopped, nor a proxy that has lost what is behind it.

    Attributes:
        silence: Seconds without a byte; None for no limit.
    """

    silence: float | None = None

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an answer.

        Raises:
            ServerSilentError: if nothing came for too long.
        """
        if self.silence is None:
            return super().wait(gen, *args, **options)
        return super().wait(self._listening(gen, self.silence), *args, **options)

    def _listening(self, gen: Any, silence: float) -> Generator[Any, Any, Any]:
        """Hand on what the library's generator wants and gets, and look at the time.

        It is given something falsy at short intervals while the socket has nothing.
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


def prepare(engine: Engine, waits: Waits) -> None:
    """Bound all waiting of an engine.

    The limits are set in the session, not at its start: PgBouncer refuses sessions that start
    with options.
    """
    own = _parameters(waits)

    @sa.event.listens_for(engine, "do_connect")
    def _connecting(_dialect: Any, _record: Any, given: Any, parameters: dict[str, Any]) -> Any:
        # What the operator's URL says wins.
        return BoundedConnection.connect(*given, **(own | parameters))

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.silence = waits.silence
        connection.autocommit = True
        connection.execute(_settings(waits, local=False))
        connection.autocommit = False

    @sa.event.listens_for(engine, "checkout")
    def _lent(connection: Any, _record: Any, _proxy: Any) -> None:
        connection.silence = waits.silence


def _parameters(waits: Waits) -> dict[str, Any]:
    return {
        "connect_timeout": waits.connect,
        "keepalives": 1,
        "keepalives_idle": waits.keepalive,
        "keepalives_interval": waits.keepalive,
        "keepalives_count": _PROBES,
        "tcp_user_timeout": waits.tcp * _MILLISECONDS,
    }


def _settings(waits: Waits, *, local: bool) -> str:
    """Return one statement that sets all limits, for the session or for the transaction."""
    limits = {
        "statement_timeout": waits.statement,
        "lock_timeout": waits.lock,
        "idle_in_transaction_session_timeout": waits.idle,
    }
    calls = (
        f"set_config('{name}', '{seconds * _MILLISECONDS}', {str(local).lower()})"
        for name, seconds in limits.items()
    )
    return f"SELECT {', '.join(calls)}"


def take_time(connection: Connection, waits: Waits) -> None:
    """Let the rest of a transaction read everything."""
    connection.exec_driver_sql(_settings(waits.unhurried(), local=True))
    driver: Any = connection.connection.dbapi_connection
    driver.silence = waits.load_silence
