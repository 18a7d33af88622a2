# SPDX-License-Identifier: Apache-2.0
"""Treeclaim's own tables: created, continued, and used as a later release has changed them."""

import pytest
import sqlalchemy as sa

from tests.databases import EACH_DATABASE, empty_database
from tests.service import client_of, schema_on, start_on
from treeclaim.cli.main import main
from treeclaim.model.errors import SchemaRevisionError
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.connecting.engine import make_engine
from treeclaim.store.schema import revisions
from treeclaim.store.schema.tables import OWN_REVISIONS, USABLE_FROM, streams
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

LATER = "0099"
CHANGES = (
    "ALTER TABLE treeclaim_feed ADD COLUMN mood VARCHAR(20)",
    "CREATE TABLE treeclaim_moods (id INTEGER PRIMARY KEY)",
    f"UPDATE treeclaim_alembic_version SET version_num = '{LATER}'",
)


@pytest.fixture(params=EACH_DATABASE)
def url(request, tmp_path):
    """A database with the tables of this release."""
    with empty_database(request.param, tmp_path) as made:
        schema_on(made)
        yield made


def migrate_as_later_release(url, usable_from):
    """Change the own tables as the `db sync` of a release with one more revision does."""
    engine = make_engine(DatabaseSettings(url))
    with engine.begin() as connection:
        for change in CHANGES:
            connection.exec_driver_sql(change)
        connection.execute(
            sa.text("UPDATE treeclaim_compatibility SET usable_from = :oldest"),
            {"oldest": usable_from},
        )
    engine.dispose()


def state(url):
    """The revision of the own tables, and the columns of all tables."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        asked = "SELECT version_num FROM treeclaim_alembic_version"
        revision = connection.exec_driver_sql(asked).scalar()
        result = sa.inspect(connection)
        columns = {
            table: sorted(column["name"] for column in result.get_columns(table))
            for table in result.get_table_names()
        }
        traits = connection.exec_driver_sql("SELECT count(*) FROM traits").scalar()
    engine.dispose()
    return revision, columns, traits


def synced(url, folder, capsys):
    """Return the exit status and the output of `db sync` of this release."""
    file = folder / "placement.conf"
    file.write_text(f"[placement_database]\nconnection = {url}\n")
    code = main(["db", "sync", "--config-file", str(file)])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_compatible_tables_of_a_later_release_work(url, tmp_path, capsys):
    migrate_as_later_release(url, OWN_REVISIONS[-1])
    before = state(url)
    code, said = synced(url, tmp_path, capsys)
    assert code == 0
    assert LATER in said
    assert "Nothing was changed" in said
    assert max(finding.level for finding in check(DatabaseSettings(url))) == Level.OK
    with start_on(url, tmp_path, **{"placement_database.sync_on_startup": True}) as application:
        client = client_of(application)
        assert client.post("/resource_providers", json={"name": "host"}).status_code == 200
    with start_on(url, tmp_path) as application:
        resource_providers = (
            client_of(application).get("/resource_providers").json()["resource_providers"]
        )
        assert [provider["name"] for provider in resource_providers] == ["host"]
    assert state(url) == before


@pytest.mark.parametrize("usable_from", [LATER, None])
def test_incompatible_tables_of_a_later_release_are_refused(url, usable_from, tmp_path, capsys):
    migrate_as_later_release(url, LATER)
    if usable_from is None:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE treeclaim_compatibility")
        engine.dispose()
    before = state(url)
    code, said = synced(url, tmp_path, capsys)
    assert code == 1
    assert "made by a later release" in said
    for sync in (True, False):
        refused = pytest.raises(SchemaRevisionError, match="made by a later release")
        with refused, start_on(url, tmp_path, **{"placement_database.sync_on_startup": sync}):
            pass
    errors = [found for found in check(DatabaseSettings(url)) if found.level is Level.ERROR]
    assert [error.subject for error in errors] == ["own tables"]
    assert state(url) == before


def test_each_sync_records_which_releases_can_use_the_tables(url):
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        asked = "SELECT usable_from FROM treeclaim_compatibility"
        assert connection.exec_driver_sql(asked).scalars().all() == [USABLE_FROM]
    engine.dispose()


def test_interrupted_sync_is_continued(url):
    complete = state(url)
    engine = make_engine(DatabaseSettings(url))
    with engine.begin() as connection:
        for table in ("treeclaim_conditions", "treeclaim_alembic_version"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        streams.indexes.copy().pop().drop(connection)
    with pytest.raises(SchemaRevisionError, match="Run 'treeclaim db sync'"):
        revisions.require_ready(engine)
    for _ in range(2):
        assert revisions.sync(engine) is None
    revisions.require_ready(engine)
    assert state(url) == complete
    with engine.connect() as connection:
        indexes = sa.inspect(connection).get_indexes(streams.name)
        assert [index["name"] for index in indexes] == [index.name for index in streams.indexes]
        numbers = sa.select(streams.c.epoch).where(streams.c.epoch.is_not(None))
        epochs = connection.execute(numbers).scalars().all()
    engine.dispose()
    assert epochs == [0]


def test_own_tables_without_a_column_are_refused(url):
    engine = make_engine(DatabaseSettings(url))
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE treeclaim_feed DROP COLUMN amounts")
    with pytest.raises(SchemaRevisionError, match="as an earlier release made them"):
        revisions.require_ready(engine)
    engine.dispose()
