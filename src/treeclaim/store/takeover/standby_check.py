# SPDX-License-Identifier: Apache-2.0
"""Checks the standby that `[placement_database]/slave_connection` names, and says how it is read."""

from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.changes import Positions
from treeclaim.store.database.connecting.engine import (
    DatabaseSettings,
    has_standbys,
    make_read_only_engine,
)
from treeclaim.store.database.failures.kinds import cause_of
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.unread import present_cursor
from treeclaim.store.standby.servers import positions_on
from treeclaim.store.standby.standby import covers
from treeclaim.store.takeover.findings import Finding, passed, warned

OPTION = "[placement_database]/slave_connection"

_STANDBY = "standby"
_WAITS = (
    "a read after a commit waits until the standby shows it, and goes to the primary where that takes "
    "longer than 0.2 s"
)


def findings(connection: Connection, settings: DatabaseSettings) -> Iterator[Finding]:
    """Check the standby of some settings; nothing is found without one.

    Args:
        connection: To the primary, which has the tables of the feed.
        settings: How to connect.
    """
    if settings.standby_url is None:
        return
    if not has_standbys(settings):
        yield warned(
            _STANDBY,
            "it has no effect: it is no server of the kind that the connection names",
            f"Remove {OPTION}.",
        )
        return
    before = present_cursor(ReadTransaction(connection)).positions
    try:
        engine = make_read_only_engine(replace(settings, url=settings.standby_url))
        try:
            with engine.connect() as standby, standby.begin():
                rows = ReadTransaction(standby).rows(positions_on(engine))
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        yield warned(
            _STANDBY,
            f"it does not answer, so the primary is read: {cause_of(error)}",
            f"Look at {OPTION}: address, port, name, user and password.",
        )
        return
    yield _judged({row.identity: row.position for row in rows}, before)
    yield passed(_STANDBY, _replication(connection))


def _judged(reached: Positions, before: Positions) -> Finding:
    if not reached:
        return warned(
            _STANDBY,
            "it is no standby, or an empty one, so the primary is read",
            "Name a server that follows the primary; on MariaDB it has read_only = ON.",
        )
    if not reached.keys() & before.keys():
        return warned(
            _STANDBY,
            "it is the standby of another database, so the primary is read",
            f"Name one of the same database in {OPTION}.",
        )
    if not covers(reached, before):
        return warned(
            _STANDBY,
            "it is behind at this moment; while it is, the primary is read",
            "See whether its replication goes on.",
        )
    return passed(_STANDBY, "it has all that the primary has")


def _replication(connection: Connection) -> str:
    """Return what the primary's replication means for those who read the standby."""
    if connection.dialect.name == "postgresql":
        level = connection.exec_driver_sql("SHOW synchronous_commit").scalar()
        names = connection.exec_driver_sql("SHOW synchronous_standby_names").scalar()
        if level == "remote_apply" and names:
            return (
                "synchronous_commit = remote_apply: the standbys that commits wait for show each of "
                "them before it is answered, so reads there need not wait"
            )
        return (
            f"synchronous_commit = {level}, synchronous_standby_names = '{names}': commits are "
            f"answered before the standby shows them; {_WAITS}"
        )
    row = connection.exec_driver_sql("SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'").first()
    if row is not None and row[1] == "ON":
        return (
            "semi-synchronous replication: a standby has received a commit when it is answered, and "
            f"may not show it yet; {_WAITS}"
        )
    return f"asynchronous replication: commits are answered before the standby has them; {_WAITS}"
