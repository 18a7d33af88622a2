# SPDX-License-Identifier: Apache-2.0
"""A database whose own tables a later release has migrated: used where that one allows it."""

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from tests.databases import EACH_DATABASE, empty_database
from tests.service import client_of, schema_on, start_on
from treeclaim.cli.main import main
from treeclaim.model.errors import SchemaRevisionError
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.connecting.engine import make_engine
from treeclaim.store.schema import later_releases, migrations
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import OWN_REVISIONS
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

LATER = "0099"
SCRIPT = """
import sqlalchemy as sa
from alembic import op

revision = "0099"
down_revision = "{newest}"
branch_labels = None
depends_on = None
usable_from = "{usable_from}"


def upgrade():
    op.add_column("treeclaim_feed", sa.Column("mood", sa.String(20)))
    op.create_table("treeclaim_moods", sa.Column("id", sa.Integer, primary_key=True))
"""


@pytest.fixture(params=EACH_DATABASE)
def url(request, tmp_path):
    """A database with the tables of this release."""
    with empty_database(request.param, tmp_path) as made:
        schema_on(made)
        yield made


def migrated_by_a_later_release(url, folder, usable_from):
    """Let a release with one more revision run its `db sync`."""
    scripts = folder / "migrations"
    if not scripts.exists():
        shutil.copytree(Path(migrations.__file__).parent, scripts)
    script = SCRIPT.format(newest=OWN_REVISIONS[-1], usable_from=usable_from)
    (scripts / "versions" / "0099_moods.py").write_text(script)
    configuration = schema.own_migrations()
    configuration.set_main_option("script_location", str(scripts))
    engine = make_engine(DatabaseSettings(url))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "own_migrations", lambda: configuration)
        patch.setattr(later_releases, "OWN_REVISIONS", (*OWN_REVISIONS, "0099"))
        schema.sync(engine)
    engine.dispose()


def state(url):
    """The revision of the own tables, and the columns of all tables."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        asked = "SELECT version_num FROM treeclaim_alembic_version"
        revision = connection.exec_driver_sql(asked).scalar()
        found = sa.inspect(connection)
        columns = {
            table: sorted(column["name"] for column in found.get_columns(table))
            for table in found.get_table_names()
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


@pytest.mark.parametrize("usable_from", [OWN_REVISIONS[0], OWN_REVISIONS[-1]])
def test_this_release_works_on_tables_of_a_later_one_that_allows_it(
    url, usable_from, tmp_path, capsys
):
    migrated_by_a_later_release(url, tmp_path, usable_from)
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
        found = client_of(application).get("/resource_providers").json()["resource_providers"]
        assert [provider["name"] for provider in found] == ["host"]
    assert state(url) == before
    migrated_by_a_later_release(url, tmp_path, usable_from)
    assert state(url) == before


@pytest.mark.parametrize("usable_from", [LATER, None])
def test_tables_that_only_a_later_release_can_use_are_refused_by_a_sentence(
    url, usable_from, tmp_path, capsys
):
    migrated_by_a_later_release(url, tmp_path, LATER)
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
    assert [found.subject for found in errors] == ["own tables"]
    assert state(url) == before


def test_each_sync_records_which_releases_can_use_the_tables(url):
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        asked = "SELECT usable_from FROM treeclaim_compatibility"
        assert connection.exec_driver_sql(asked).scalars().all() == [OWN_REVISIONS[0]]
    engine.dispose()


def test_the_revisions_that_are_known_are_those_that_there_are():
    scripts = ScriptDirectory.from_config(schema.own_migrations())
    there = tuple(script.revision for script in scripts.walk_revisions())
    assert tuple(reversed(there)) == OWN_REVISIONS
