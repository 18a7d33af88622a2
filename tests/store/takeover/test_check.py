# SPDX-License-Identifier: Apache-2.0
"""`treeclaim db check` finds obstacles to a takeover, and changes nothing."""

import select
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

import pytest
import sqlalchemy as sa

from tests.databases import GaleraNode
from tests.ports import free_port
from tests.service import schema_on
from treeclaim.model.errors import SchemaRevisionError
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.engine import make_engine
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import alembic_version, placement
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level
from treeclaim.store.takeover.server_settings import check_settings, check_sqlite

SAFE_MYSQL = {
    "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "OFF",
    "read_only": "OFF",
}
SAFE_POSTGRESQL = {
    "default_transaction_read_only": "off",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
}
GALERA = SAFE_MYSQL | {
    "wsrep_on": "ON",
    "wsrep_cluster_status": "Primary",
    "wsrep_ready": "ON",
}


def execute(url, *statements):
    """Change a database as another program would, without foreign keys."""
    engine = sa.create_engine(url)
    off = {
        "sqlite": "PRAGMA foreign_keys = OFF",
        "postgresql": "SET session_replication_role = replica",
        "mysql": "SET foreign_key_checks = 0",
    }
    with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql(off[engine.dialect.name])
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def findings(url):
    """Return the findings without the server's durability: test servers may be unsafe."""
    return [finding for finding in check(DatabaseSettings(url)) if finding.subject != "durability"]


def trouble(url):
    """Return level, subject and text of the findings that need action."""
    return [
        (finding.level, finding.subject, finding.text)
        for finding in findings(url)
        if finding.level
    ]


def dump(url):
    """All rows of all tables, and the schema itself."""
    metadata = schema_of(url)
    return columns_of(metadata), rows_of(url, metadata)


def schema_of(url):
    engine = sa.create_engine(url)
    metadata = sa.MetaData()
    metadata.reflect(engine)
    engine.dispose()
    return metadata


def columns_of(metadata):
    """Name, type and whether it may be NULL of each column, by table."""
    return {
        table.name: [(column.name, str(column.type), column.nullable) for column in table.columns]
        for table in metadata.sorted_tables
    }


def rows_of(url, metadata):
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        content = {
            table.name: sorted(map(repr, connection.execute(sa.select(table))))
            for table in metadata.sorted_tables
        }
    engine.dispose()
    return content


def insert(table, **values):
    """The statement that inserts a row; the values are SQL."""
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(map(str, values.values()))})"


def provider(**links):
    """The statement that inserts the provider 1."""
    row = {"id": 1, "uuid": "'uuid'", "name": "'name'", "generation": 0}
    return insert("resource_providers", **row, **links)


def inventory(provider_id, class_id):
    """The statement that inserts an inventory of eight units."""
    key = {"resource_provider_id": provider_id, "resource_class_id": class_id}
    units = {"reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0}
    return insert("inventories", **key, total=8, **units)


def allocation(provider_id, consumer, class_id=0):
    """The statement that inserts an allocation of one unit."""
    key = {"resource_provider_id": provider_id, "resource_class_id": class_id}
    return insert("allocations", **key, consumer_id=f"'{consumer}'", used=1)


CONSUMER = insert("consumers", uuid="'known'", project_id=1, user_id=1)
PROJECT = insert("projects", id=1, external_id="'p'")
USER = insert("users", id=1, external_id="'u'")
AGGREGATE = insert("placement_aggregates", id=1, uuid="'a'")
OF_7 = {"resource_provider_id": 7}

GONE = "of a provider that does not exist"
DAMAGE = [
    (Level.ERROR, "resource_providers", "1 without a root provider", provider()),
    (
        Level.ERROR,
        "resource_providers",
        "1 whose root does not exist",
        provider(root_provider_id=7),
    ),
    (
        Level.ERROR,
        "resource_providers",
        "1 whose parent does not exist",
        provider(root_provider_id=1, parent_provider_id=7),
    ),
    (Level.WARNING, "inventories", f"2 {GONE}", inventory(7, 0), inventory(8, 0)),
    (Level.WARNING, "allocations", f"1 {GONE}", PROJECT, USER, CONSUMER, allocation(7, "known")),
    *(
        (Level.WARNING, table, f"1 {GONE}", AGGREGATE, insert(table, **OF_7, **values))
        for table, values in (
            ("resource_provider_traits", {"trait_id": 1}),
            ("resource_provider_aggregates", {"aggregate_id": 1}),
            ("treeclaim_attributes", {"name": "'ecc'", "value": "'true'"}),
        )
    ),
    (
        Level.WARNING,
        "consumers",
        "2 that hold allocations but have no record",
        *(provider(root_provider_id=1), allocation(1, "new"), allocation(1, "new", 1)),
        allocation(1, "x"),
    ),
    (
        Level.ERROR,
        "inventories",
        "1 of a resource class that does not exist",
        *(provider(root_provider_id=1), inventory(1, 99999)),
    ),
    (
        Level.ERROR,
        "resource_provider_traits",
        "1 of a trait that does not exist",
        provider(root_provider_id=1),
        insert("resource_provider_traits", resource_provider_id=1, trait_id=99999),
    ),
    (Level.ERROR, "consumers", "1 of a project that does not exist", USER, CONSUMER),
    (Level.ERROR, "consumers", "1 of a user that does not exist", PROJECT, CONSUMER),
]


def test_check_accepts_synced_database_and_warns_of_empty_one(empty_url):
    if empty_url.startswith("sqlite"):
        sa.create_engine(empty_url).connect().close()
    assert trouble(empty_url) == [
        (Level.WARNING, "schema", "the database is empty: there is nothing to take over")
    ]
    engine = make_engine(DatabaseSettings(empty_url))
    schema.sync(engine)
    engine.dispose()
    assert trouble(empty_url) == []


@pytest.mark.slow
def test_each_damage_is_reported_with_advice_and_without_changes(store, database_url):
    tables = ["allocations", "inventories", "resource_provider_traits", "consumers", "projects"]
    tables += ["users", "resource_provider_aggregates", "placement_aggregates"]
    tables += ["resource_providers", "treeclaim_attributes"]
    clean = [f"DELETE FROM {table}" for table in tables]
    # Reflection of the tables takes longer than the other work together.
    metadata = schema_of(database_url)
    for level, subject, text, *statements in DAMAGE:
        execute(database_url, *clean, *statements)
        before = rows_of(database_url, metadata)
        (damage,) = [finding for finding in findings(database_url) if finding.level]
        assert (damage.level, damage.subject, damage.text) == (level, subject, text)
        assert damage.remedy
        assert rows_of(database_url, metadata) == before
    assert columns_of(schema_of(database_url)) == columns_of(metadata)


def test_suggested_deletion_repairs_the_damage(store, database_url):
    execute(database_url, inventory(7, 0))
    (damage,) = [finding for finding in findings(database_url) if finding.level]
    execute(database_url, damage.remedy.partition("Then: ")[2].rstrip(";"))
    assert trouble(database_url) == []


def test_unknown_revision_is_an_error(store, database_url):
    schema.stamp(store.engine, "cafe00000000")
    ((level, subject, text),) = trouble(database_url)
    assert (level, subject) == (Level.ERROR, "schema")
    assert "cafe00000000" in text


def test_missing_tables_columns_and_revisions_are_named(store, database_url):
    execute(
        database_url,
        "DROP TABLE users",
        "ALTER TABLE projects DROP COLUMN updated_at",
        "DROP TABLE alembic_version",
    )
    (revision, revision_text), (tables, tables_text) = [
        ((level, subject), text) for level, subject, text in trouble(database_url)
    ]
    assert [revision, tables] == [(Level.ERROR, "schema"), (Level.ERROR, "tables")]
    assert "alembic_version" in revision_text
    assert tables_text in {
        "missing: users, projects.updated_at",
        "missing: projects.updated_at, users",
    }


def test_own_tables_of_another_revision_are_errors_and_incomplete_ones_warnings(
    store, database_url
):
    execute(database_url, "DROP TABLE treeclaim_feed")
    ((level, subject, text),) = trouble(database_url)
    assert (level, subject) == (Level.ERROR, "own tables")
    assert text == "missing: treeclaim_feed"
    execute(database_url, "DELETE FROM treeclaim_alembic_version")
    assert trouble(database_url) == [(Level.WARNING, "own tables", "not complete")]
    execute(database_url, "INSERT INTO treeclaim_alembic_version VALUES ('9999')")
    ((level, subject, text),) = trouble(database_url)
    assert (level, subject) == (Level.ERROR, "own tables")
    assert "at revision 9999" in text


def test_database_without_own_tables_is_ok(empty_url):
    engine = sa.create_engine(empty_url)
    placement.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(alembic_version), {"version_num": "a082b8bb98d0"})
    engine.dispose()
    assert trouble(empty_url) == []


def test_read_only_server_is_an_error(store, database_url):
    kind = store.engine.dialect.name
    if kind == "sqlite":
        pytest.skip("SQLite has no server")
    if kind == "postgresql":
        name = store.engine.url.database
        change = f"ALTER DATABASE {name} SET default_transaction_read_only = on"
        back = "SELECT 1"
    else:
        change, back = "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0"
    execute(database_url, change)
    try:
        assert [finding[:2] for finding in trouble(database_url)] == [(Level.ERROR, "writing")]
    finally:
        execute(database_url, back)


def test_unsafe_settings_of_a_running_server_are_reported(store, database_url):
    kind = store.engine.dialect.name
    if kind == "sqlite":
        unsafe = check(DatabaseSettings(database_url, sqlite_synchronous=False))
        levels = [(finding.subject, finding.level) for finding in unsafe]
        assert ("durability", Level.WARNING) in levels
        return
    if kind == "postgresql":
        name = store.engine.url.database
        change = f"ALTER DATABASE {name} SET synchronous_commit = off"
        back, word = "SELECT 1", "synchronous_commit = off"
    else:
        change = "SET GLOBAL innodb_flush_log_at_trx_commit = 2"
        back = "SET GLOBAL innodb_flush_log_at_trx_commit = 1"
        word = "innodb_flush_log_at_trx_commit = 2"
    execute(database_url, change)
    try:
        every_finding = check(DatabaseSettings(database_url))
        assert any(
            finding.level is Level.WARNING and word in finding.text for finding in every_finding
        )
    finally:
        execute(database_url, back)


@pytest.mark.parametrize(
    ("judged", "level", "word"),
    [
        (check_settings(SAFE_MYSQL), Level.OK, ""),
        (check_settings(SAFE_MYSQL | {"innodb_flush_log_at_trx_commit": "0"}), 1, "flush_log"),
        (check_settings(SAFE_MYSQL | {"sync_binlog": "0"}), Level.OK, ""),
        (check_settings(SAFE_MYSQL | {"log_bin": "ON", "sync_binlog": "0"}), 1, "sync_binlog = 0"),
        (check_settings(SAFE_MYSQL | {"log_bin": "ON", "sync_binlog": "1"}), Level.OK, ""),
        (check_settings(SAFE_MYSQL | {"super_read_only": "ON"}), 2, "super_read_only"),
        (check_settings(GALERA), Level.OK, ""),
        (check_settings(GALERA | {"wsrep_cluster_status": "non-Primary"}), 2, "non-Primary"),
        (check_settings(GALERA | {"wsrep_ready": "OFF"}), 2, "wsrep_ready = OFF"),
        (check_settings(SAFE_POSTGRESQL), Level.OK, ""),
        (check_settings(SAFE_POSTGRESQL | {"synchronous_commit": "local"}), Level.OK, ""),
        (check_settings(SAFE_POSTGRESQL | {"fsync": "off"}), 1, "fsync = off"),
        (check_settings(SAFE_POSTGRESQL | {"full_page_writes": "off"}), 1, "full_page_writes"),
        (check_settings(SAFE_POSTGRESQL | {"in_recovery": "on"}), 2, "in_recovery"),
        (check_sqlite(configured=True, is_read_only=False), Level.OK, ""),
        (check_sqlite(configured=True, is_read_only=True), 2, "cannot be written"),
    ],
    ids=range(16),
)
def test_each_unsafe_setting_is_reported(judged, level, word):
    every_finding = list(judged)
    assert max(finding.level for finding in every_finding) == level
    assert any(word in finding.text for finding in every_finding if finding.level == level)
    assert all(finding.remedy for finding in every_finding if finding.level)


@pytest.mark.slow
def test_galera_node_is_recognized(galera, tmp_path):
    server = GaleraNode(0, [free_port()])
    try:
        with server.database(tmp_path) as url:
            schema_on(url)
            assert trouble(url) == []
            with racers_on(url) as racers:
                race(racers)
            assert trouble(url) == []
    finally:
        server.stop()


def test_unreachable_database_is_one_error(tmp_path):
    for url in (
        f"sqlite:///{tmp_path / 'none.db'}",
        "postgresql://nobody@127.0.0.1:1/none",
        "mysql+pymysql://nobody@127.0.0.1:1/none",
        "oracle+none://x/y",
    ):
        (finding,) = check(DatabaseSettings(url))
        assert (finding.level, finding.subject) == (Level.ERROR, "connection")
    assert list(tmp_path.iterdir()) == []


SYNC = """
import sys
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.schema import revisions as schema
for line in sys.stdin:
    store = Store(DatabaseSettings(sys.argv[1]))
    schema.sync(store.engine)
    store.write(standard_names.sync_standard_names)
    store.close()
    print("done", flush=True)
"""


@pytest.mark.slow
def test_concurrent_and_repeated_schema_syncs_agree(empty_url):
    with racers_on(empty_url) as racers:
        for _ in range(3):
            race(racers)
            columns, rows = dump(empty_url)
            assert rows["alembic_version"] == ["('a082b8bb98d0',)"]
            assert trouble(empty_url) == []
            race(racers)
            columns_again, rows_again = dump(empty_url)
            del rows["treeclaim_feed_shards"], rows_again["treeclaim_feed_shards"]
            assert (columns_again, rows_again) == (columns, rows)
            metadata, engine = sa.MetaData(), sa.create_engine(empty_url)
            metadata.reflect(engine)
            metadata.drop_all(engine)
            engine.dispose()


def test_used_tables_without_a_revision_are_refused(store, database_url):
    execute(database_url, "DELETE FROM alembic_version", provider(root_provider_id=1))
    before = dump(database_url)
    with pytest.raises(SchemaRevisionError, match="db stamp a082b8bb98d0"):
        schema.sync(store.engine)
    assert dump(database_url) == before


@contextmanager
def racers_on(url):
    """Two processes that sync the schema at each line of their input."""
    command = [sys.executable, "-c", SYNC, url]
    start = partial(
        subprocess.Popen, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with start() as first, start() as second:
        try:
            yield first, second
        finally:
            first.kill()
            second.kill()


def race(racers):
    """Let both sync at the same moment; a failure is on the error output."""
    for process in racers:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in racers:
        assert select.select([process.stdout], [], [], 60)[0], "it does not come to an end"
        assert process.stdout.readline() == "done\n"
