# SPDX-License-Identifier: Apache-2.0
"""What differs from server to server: read-only sessions, and what makes a standby."""

from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.connecting.connections import reading
from treeclaim.store.database.connecting.engine import (
    DatabaseSettings,
    has_standbys,
    make_engine,
)
from treeclaim.store.database.dialects import mariadb, session_timeouts
from treeclaim.store.database.failures.kinds import cause_of
from treeclaim.store.database.failures.outages import Outages
from treeclaim.store.feed.polling import FeedPoller
from treeclaim.store.feed.probe import Probe
from treeclaim.store.schema.tables import streams

HURRY_SECONDS = 2
"""Seconds to connect to a standby and ask how far it has come. Others wait for the Forest meanwhile, and
the primary can be asked instead."""

_IS_STANDBY = {
    "postgresql": "pg_is_in_recovery()",
    # A number, or a word in later releases.
    "mysql": "CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')",
}
_POSITIONS = {
    name: CompiledStatement(
        sa.select(
            sa.func.coalesce(streams.c.identity, streams.c.id).label("identity"),
            streams.c.position,
        ).where(sa.literal_column(condition))
    )
    for name, condition in _IS_STANDBY.items()
}


def engine_of(settings: DatabaseSettings) -> Engine | None:
    """Return an engine whose transactions read one snapshot of the standby; None without one.

    Raises:
        SQLAlchemyError, ImportError, ValueError: as `make_engine`.
    """
    if settings.standby_url is None or not has_standbys(settings):
        return None
    hurried = replace(settings.timeouts, connect=min(settings.timeouts.connect, HURRY_SECONDS))
    engine = make_engine(replace(settings, url=settings.standby_url, timeouts=hurried))
    if engine.dialect.name == "mysql":
        mariadb.only_read(engine)
        return reading(engine)
    return reading(engine).execution_options(postgresql_readonly=True)


def positions_on(engine: Engine) -> CompiledStatement:
    """Return the query that asks how far all streams have come there; no rows on a server that is not a standby.

    What has been promoted has a history of its own, or will have one soon.
    """
    return _POSITIONS[engine.dialect.name]


def poller_of(engine: Engine, probe: Probe) -> FeedPoller:
    """Return what looks at the feed there; it sees no stream on a server that is not a standby."""
    return FeedPoller(probe, engine.dialect, _IS_STANDBY[engine.dialect.name])


class StandbyProbe(Probe):
    """Looks at the feed of a standby; its callers report its failures."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, Outages(), HURRY_SECONDS)

    def _failed(self, error: BaseException) -> StoreUnavailableError:
        return StoreUnavailableError(cause_of(error))


def hurry(connection: Connection) -> None:
    """Let a connection fail soon if the server is silent."""
    session_timeouts.set_read_timeout(connection.connection.dbapi_connection, HURRY_SECONDS)


def take_time(connection: Connection) -> None:
    """Give a connection the usual time again."""
    usual = session_timeouts.timeouts_of(connection).silence
    session_timeouts.set_read_timeout(connection.connection.dbapi_connection, usual)
