# SPDX-License-Identifier: Apache-2.0
"""`treeclaim db check` finds obstacles to a takeover, and changes nothing."""

import pytest
import sqlalchemy as sa

from tests.databases import EACH_SERVER, GaleraNode
from tests.ports import free_port
from tests.service import schema_on
from tests.store.schema.test_revisions import sync_at_once
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.engine import make_engine
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import own_tables, placement
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
    """Return the findings, except for durability, because test servers may be unsafe."""
    return [finding for finding in check(DatabaseSettings(url)) if finding.subject != "durability"]


def trouble(url):
    """Return level, subject and text of the findings that need action."""
    return [
        (finding.level, finding.subject, finding.text)
        for finding in findings(url)
        if finding.level
    ]


def rows_of(url):
    """Return all rows by table."""
    engine = sa.create_engine(url)
    tables = [*placement.sorted_tables, *own_tables.sorted_tables]
    with engine.connect() as connection:
        rows = {
            table.name: sorted(map(repr, connection.execute(sa.select(table)))) for table in tables
        }
    engine.dispose()
    return rows


def insert(table, **values):
    """Return the statement that inserts a row; the values are SQL."""
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(map(str, values.values()))})"


def provider(**links):
    """Return the statement that inserts the provider 1."""
    row = {"id": 1, "uuid": "'uuid'", "name": "'name'", "generation": 0}
    return insert("resource_providers", **row, **links)


def inventory(provider_id, class_id):
    """Return the statement that inserts an inventory of eight units."""
    key = {"resource_provider_id": provider_id, "resource_class_id": class_id}
    units = {"reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0}
    return insert("inventories", **key, total=8, **units)


def allocation(provider_id, consumer, class_id=0):
    """Return the statement that inserts an allocation of one unit."""
    key = {"resource_provider_id": provider_id, "resource_class_id": class_id}
    return insert("allocations", **key, consumer_id=f"'{consumer}'", used=1)


CONSUMER = insert("consumers", uuid="'known'", project_id=1, user_id=1)
PROJECT = insert("projects", id=1, external_id="'p'")
USER = insert("users", id=1, external_id="'u'")
AGGREGATE = insert("placement_aggregates", id=1, uuid="'a'")
OF_7 = {"resource_provider_id": 7}

WITHOUT_PROVIDER = "of a provider that does not exist"
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
    (Level.WARNING, "inventories", f"2 {WITHOUT_PROVIDER}", inventory(7, 0), inventory(8, 0)),
    (
        Level.WARNING,
        "allocations",
        f"1 {WITHOUT_PROVIDER}",
        PROJECT,
        USER,
        CONSUMER,
        allocation(7, "known"),
    ),
    *(
        (Level.WARNING, table, f"1 {WITHOUT_PROVIDER}", AGGREGATE, insert(table, **OF_7, **values))
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
    for level, subject, text, *statements in DAMAGE:
        execute(database_url, *clean, *statements)
        before = rows_of(database_url)
        (damage,) = [finding for finding in findings(database_url) if finding.level]
        assert (damage.level, damage.subject, damage.text) == (level, subject, text)
        assert damage.remedy
        assert rows_of(database_url) == before


def test_suggested_deletion_repairs_the_damage(store, database_url):
    execute(database_url, inventory(7, 0))
    (damage,) = [finding for finding in findings(database_url) if finding.level]
    execute(database_url, damage.remedy.partition("Then: ")[2].rstrip(";"))
    assert trouble(database_url) == []


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (
            ["UPDATE alembic_version SET version_num = 'cafe00000000'"],
            [(Level.ERROR, "schema", "cafe00000000")],
        ),
        (
            [
                "DROP TABLE users",
                "ALTER TABLE projects DROP COLUMN updated_at",
                "DROP TABLE alembic_version",
            ],
            [
                (Level.ERROR, "schema", "alembic_version"),
                (Level.ERROR, "tables", "missing: users, projects.updated_at"),
            ],
        ),
        (
            ["DROP TABLE treeclaim_feed"],
            [(Level.ERROR, "own tables", "missing: treeclaim_feed")],
        ),
        (
            ["DROP TABLE treeclaim_feed", "DELETE FROM treeclaim_alembic_version"],
            [(Level.WARNING, "own tables", "not complete")],
        ),
        (
            ["UPDATE treeclaim_alembic_version SET version_num = '9999'"],
            [(Level.ERROR, "own tables", "at revision 9999")],
        ),
        ([f"DROP TABLE {table.name}" for table in own_tables.sorted_tables], []),
    ],
    ids=["revision", "tables", "own table", "own tables", "own revision", "no own tables"],
)
def test_other_schemas_are_named(store, database_url, statements, expected):
    execute(database_url, *statements)
    reported = trouble(database_url)
    assert [finding[:2] for finding in reported] == [finding[:2] for finding in expected]
    assert all(
        finding[2] in reported_finding[2]
        for reported_finding, finding in zip(reported, expected, strict=True)
    )


@pytest.mark.parametrize("database_kind", EACH_SERVER, indirect=True)
@pytest.mark.parametrize(
    ("subject", "level", "postgresql_setting", "mysql_setting"),
    [
        ("writing", Level.ERROR, "default_transaction_read_only = on", "read_only = 1"),
        (
            "durability",
            Level.WARNING,
            "synchronous_commit = off",
            "innodb_flush_log_at_trx_commit = 2",
        ),
    ],
)
def test_unsafe_settings_of_a_running_server_are_reported(
    store, database_url, subject, level, postgresql_setting, mysql_setting
):
    if store.engine.dialect.name == "postgresql":
        name, _, value = postgresql_setting.partition(" = ")
        change = f"ALTER DATABASE {store.engine.url.database} SET {name} = {value}"
        back = "SELECT 1"
    else:
        name, _, value = mysql_setting.partition(" = ")
        change, back = f"SET GLOBAL {name} = {value}", f"SET GLOBAL {name} = DEFAULT"
    execute(database_url, change)
    try:
        reported = {finding.subject: finding for finding in check(DatabaseSettings(database_url))}
        assert reported[subject].level is level
        assert name in reported[subject].text
    finally:
        execute(database_url, back)


def test_unsafe_settings_of_sqlite_are_reported(tmp_path):
    url = f"sqlite:///{tmp_path / 'placement.db'}"
    schema_on(url)
    unsafe = check(DatabaseSettings(url, sqlite_synchronous=False))
    assert ("durability", Level.WARNING) in [
        (finding.subject, finding.level) for finding in unsafe
    ]


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
        (check_sqlite(is_configured=True, is_read_only=False), Level.OK, ""),
        (check_sqlite(is_configured=True, is_read_only=True), 2, "cannot be written"),
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
            sync_at_once(url)
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
