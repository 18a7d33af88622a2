# SPDX-License-Identifier: Apache-2.0
"""Creates the schema, or adopts that of Placement, and checks its revisions (contract page 85)."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.model.errors import SchemaRevisionError, StoreUnavailableError
from treeclaim.store.database.engine import lend_connection
from treeclaim.store.database.failures import Failure, classify_failure, make_unavailable_error
from treeclaim.store.database.systems import extend_timeouts, get_system
from treeclaim.store.schema.tables import (
    OWN_REVISION,
    PLACEMENT_REVISION,
    SHARDS,
    alembic_version,
    feed_shards,
    make_shard,
    own_tables,
    own_version,
    placement,
    resource_providers,
)

Columns = Mapping[str, AbstractSet[str]]
"""Names of columns by table."""

_LOCK_WAIT = 60
"""Seconds to wait for another process that creates the schema."""


def sync(engine: Engine) -> None:
    """Create the missing tables; idempotent, and safe in concurrent processes.

    Raises:
        SchemaRevisionError: if the Placement tables or the own tables are at another revision.
        StoreUnavailableError: if the database does not respond.
    """
    try:
        # READ COMMITTED, because tables that another process has created must be visible after the wait.
        writing = get_system(engine).for_writing(engine)
        with lend_connection(writing) as connection, _schema_lock(connection):
            extend_timeouts(connection)
            revision = read_placement_revision(connection)
            if revision is None:
                _require_empty(connection)
                placement.create_all(connection)
                connection.execute(sa.insert(alembic_version), {"version_num": PLACEMENT_REVISION})
            else:
                _require_known(revision)
            if read_own_revision(connection) is None:
                _create_own_tables(connection)
            connection.commit()
    except SQLAlchemyError as error:
        raise make_unavailable_error(error) from error


def require_ready(engine: Engine) -> None:
    """Check that the schema is complete and at the required revisions.

    Raises:
        SchemaRevisionError: if it is not; the message has the remedy.
        StoreUnavailableError: if the database does not respond.
    """
    try:
        with lend_connection(engine) as connection:
            revision = read_placement_revision(connection)
            if revision is None:
                raise SchemaRevisionError(
                    "The database has no Placement schema yet. Run 'treeclaim db sync', or set "
                    "[placement_database]/sync_on_startup."
                )
            _require_known(revision)
            _require_own(connection)
    except SQLAlchemyError as error:
        raise make_unavailable_error(error) from error


def read_placement_revision(connection: Connection) -> str | None:
    """Return the revision of the Placement schema; None if it is not recorded."""
    return _read_revision(connection, alembic_version)


def read_own_revision(connection: Connection) -> str | None:
    """Return the revision of Treeclaim's own tables; None if they are incomplete.

    Raises:
        SchemaRevisionError: if their revision is unknown.
    """
    revision = _read_revision(connection, own_version)
    if revision not in (None, OWN_REVISION):
        raise SchemaRevisionError(
            f"Treeclaim's own tables in the database are at revision {revision}; this program "
            f"understands {OWN_REVISION} only. Nothing was changed. Use the release that created "
            "them, or restore an older backup."
        )
    return revision


def _read_revision(connection: Connection, table: sa.Table) -> str | None:
    if not sa.inspect(connection).has_table(table.name):
        return None
    revision = connection.execute(sa.select(table.c.version_num)).scalar()
    return None if revision is None else str(revision)


def stamp(engine: Engine, revision: str) -> None:
    """Record a revision of the Placement schema without changing any table."""
    with engine.begin() as connection:
        alembic_version.create(connection, checkfirst=True)
        connection.execute(sa.delete(alembic_version))
        connection.execute(sa.insert(alembic_version), {"version_num": revision})


def _require_known(revision: str) -> None:
    if revision != PLACEMENT_REVISION:
        raise SchemaRevisionError(
            f"The Placement schema in the database is at revision {revision}; this program "
            f"understands {PLACEMENT_REVISION} only. Run 'placement-manage db sync' of the Placement "
            f"release that has revision {PLACEMENT_REVISION}, and start again."
        )


def _require_own(connection: Connection) -> None:
    if read_own_revision(connection) is None:
        raise SchemaRevisionError(
            "The database has Placement's tables but not all of Treeclaim's own. Run 'treeclaim "
            "db sync', or set [placement_database]/sync_on_startup."
        )
    if missing_columns := find_missing_columns(own_tables, load_columns(connection)):
        raise SchemaRevisionError(
            f"The database has no {missing_columns[0]}, although Treeclaim's own tables are recorded at "
            f"revision {OWN_REVISION}. Restore it from a backup."
        )


def load_columns(connection: Connection) -> Columns:
    """Return the columns of all tables in a database."""
    columns = sa.inspect(connection).get_multi_columns()
    return {
        table: {column["name"] for column in table_columns}
        for (_, table), table_columns in columns.items()
    }


def find_missing_columns(tables: sa.MetaData, present_columns: Columns) -> list[str]:
    """Return the missing tables, then the missing columns of present tables."""
    every_table = [table for table in tables.sorted_tables if table is not alembic_version]
    return [table.name for table in every_table if table.name not in present_columns] + [
        f"{table.name}.{name}"
        for table in every_table
        if table.name in present_columns
        for name in sorted(set(table.columns.keys()) - present_columns[table.name])
    ]


def _require_empty(connection: Connection) -> None:
    """Refuse tables with rows but without a revision; an interrupted attempt leaves empty tables."""
    name = resource_providers.name
    if (
        sa.inspect(connection).has_table(name)
        and connection.execute(sa.select(resource_providers.c.id).limit(1)).first()
    ):
        raise SchemaRevisionError(
            "The database has resource providers, but no revision in alembic_version. If its "
            f"tables are known to be those of revision {PLACEMENT_REVISION}, run 'treeclaim db "
            f"stamp {PLACEMENT_REVISION}' first."
        )


def _create_own_tables(connection: Connection) -> None:
    """Create Treeclaim's own tables with the shards of the feed, and record their revision.

    This also completes an interrupted attempt, because MariaDB commits each statement separately.
    """
    for table in own_tables.sorted_tables:
        table.create(connection, checkfirst=True)
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    if connection.execute(sa.select(feed_shards.c.shard)).first() is None:
        shards = [make_shard(number) for number in range(SHARDS)]
        connection.execute(sa.insert(feed_shards), shards)
    connection.execute(sa.insert(own_version), {"version_num": OWN_REVISION})


@contextmanager
def _schema_lock(connection: Connection) -> Iterator[None]:
    """Admit one process at a time; raise `StoreUnavailableError` if the lock is not free in time."""
    system = get_system(connection)
    try:
        is_acquired = system.acquire_schema_lock(connection, _LOCK_WAIT)
    except DBAPIError as error:
        if classify_failure(error) is not Failure.LOCK_TIMEOUT:
            raise
        raise _lock_error() from error
    if not is_acquired:
        raise _lock_error()
    try:
        yield
    finally:
        system.release_schema_lock(connection)


def _lock_error() -> StoreUnavailableError:
    return StoreUnavailableError(
        f"Another process has been creating the schema for {_LOCK_WAIT} seconds. Run 'treeclaim "
        "db sync' again when it has ended."
    )
