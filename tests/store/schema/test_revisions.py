# SPDX-License-Identifier: Apache-2.0
"""Creating the schema is idempotent and concurrent; own tables of another revision are refused."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from tests.service import schema_on, start_on
from treeclaim.cli.main import main
from treeclaim.model.errors import SchemaRevisionError
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.engine import make_engine
from treeclaim.store.schema import revisions
from treeclaim.store.schema.tables import SHARDS, feed_shards, mixes, resource_providers

LATER = "0099"


def migrate_as_later_release(url):
    """Change the own tables as a release with one more revision does."""
    engine = make_engine(DatabaseSettings(url))
    with engine.begin() as connection:
        for change in (
            "ALTER TABLE treeclaim_feed ADD COLUMN mood VARCHAR(20)",
            f"UPDATE treeclaim_alembic_version SET version_num = '{LATER}'",
        ):
            connection.exec_driver_sql(change)
    engine.dispose()


def state(url):
    """Return the revision of the own tables, the columns of all tables, and the row counts of Placement's tables."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        query = "SELECT version_num FROM treeclaim_alembic_version"
        revision = connection.exec_driver_sql(query).scalar()
        inspector = sa.inspect(connection)
        columns = {
            table: sorted(column["name"] for column in inspector.get_columns(table))
            for table in inspector.get_table_names()
        }
        rows = {
            table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()
            for table in columns
            if not table.startswith("treeclaim_")
        }
    engine.dispose()
    return revision, columns, rows


def test_tables_of_a_later_release_are_refused(database_url, tmp_path, capsys):
    migrate_as_later_release(database_url)
    before = state(database_url)
    file = tmp_path / "placement.conf"
    file.write_text(f"[placement_database]\nconnection = {database_url}\n")
    assert main(["db", "sync", "--config-file", str(file)]) == 1
    assert f"at revision {LATER}" in capsys.readouterr().err
    for sync in (True, False):
        refused = pytest.raises(SchemaRevisionError, match=f"at revision {LATER}")
        with (
            refused,
            start_on(database_url, tmp_path, **{"placement_database.sync_on_startup": sync}),
        ):
            pass
    assert state(database_url) == before


def test_interrupted_sync_is_continued(database_url):
    complete = state(database_url)
    engine = make_engine(DatabaseSettings(database_url))
    with engine.begin() as connection:
        for table in ("treeclaim_conditions", "treeclaim_alembic_version"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        mixes.indexes.copy().pop().drop(connection)
    for message in ("not all of Treeclaim's own", "no Placement schema yet"):
        with pytest.raises(SchemaRevisionError, match=f"{message}.* Run 'treeclaim"):
            revisions.require_ready(engine)
        with engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM alembic_version")
            connection.exec_driver_sql("DROP TABLE IF EXISTS users")
    for _ in range(2):
        revisions.sync(engine)
    revisions.require_ready(engine)
    assert state(database_url) == complete
    with engine.connect() as connection:
        indexes = sa.inspect(connection).get_indexes(mixes.name)
        assert [index["name"] for index in indexes] == [index.name for index in mixes.indexes]
        shards = connection.execute(sa.select(feed_shards.c.shard)).scalars().all()
    engine.dispose()
    assert sorted(shards) == list(range(SHARDS))


def test_own_tables_without_a_column_are_refused(database_url):
    engine = make_engine(DatabaseSettings(database_url))
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE treeclaim_feed DROP COLUMN amounts")
    with pytest.raises(SchemaRevisionError, match=r"has no treeclaim_feed\.amounts"):
        revisions.require_ready(engine)
    engine.dispose()


def sync_at_once(url):
    """Create the schema from two threads at the same moment."""
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(schema_on, url) for _ in range(2)]:
            future.result(60)


@pytest.mark.slow
def test_concurrent_and_repeated_schema_syncs_agree(database_url):
    complete = state(database_url)
    for _ in range(3):
        metadata, engine = sa.MetaData(), sa.create_engine(database_url)
        metadata.reflect(engine)
        metadata.drop_all(engine)
        engine.dispose()
        for _ in range(2):
            sync_at_once(database_url)
            assert state(database_url) == complete


def test_used_tables_without_a_revision_are_refused(database_url):
    engine = make_engine(DatabaseSettings(database_url))
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM alembic_version")
        connection.execute(sa.insert(resource_providers), {"uuid": "uuid", "name": "name"})
    before = state(database_url)
    with pytest.raises(SchemaRevisionError, match="db stamp a082b8bb98d0"):
        revisions.sync(engine)
    assert state(database_url) == before
    engine.dispose()
