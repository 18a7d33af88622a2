# SPDX-License-Identifier: Apache-2.0
"""Transactions of claims, and the plans of their statements."""

import uuid
from contextlib import closing

import pytest
import sqlalchemy as sa

from tests.databases import EACH_SERVER
from tests.servers import eventually
from tests.store.hosts import create_host, make_claim
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.compiled import compile_text
from treeclaim.store.database.driver import send
from treeclaim.store.operations.allocations import claims as allocations
from treeclaim.store.operations.allocations.ledger import INVENTORIES
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.reading.consumers import load_consumer
from treeclaim.store.schema.tables import consumers, projects

ON_POSTGRESQL, ON_MARIADB = (
    pytest.mark.parametrize("database_kind", [kind], indirect=True) for kind in EACH_SERVER
)

ROW_COUNT = 5000

MANY_ROWS = f"""
INSERT INTO consumers (uuid, project_id, user_id, generation)
SELECT 'other ' || number, 1, 1, 1 FROM generate_series(1, {ROW_COUNT}) number;
INSERT INTO allocations (consumer_id, resource_provider_id, resource_class_id, used)
SELECT uuid, 999, 0, 1 FROM consumers WHERE length(uuid) < 36;
INSERT INTO treeclaim_feed (shard, position, previous, kind, object_id, created_at, format)
SELECT MOD(number, 8), -number, 0, 'provider', 999, now(), 1 FROM generate_series(1, {ROW_COUNT}) number
"""
"""Rows as other programs write them on PostgreSQL; the feed rows are older than the cursors of readers."""

PLANNED = ("allocations", "consumers", "inventories", "resource_providers", "treeclaim_feed")


@pytest.fixture
def hosts(store):
    """The uuids of two hosts with 200 units of VCPU each."""
    return [create_host(store, 200) for _ in range(2)]


def test_connection_returns_to_the_pool_without_a_transaction(store):
    row = {"uuid": str(uuid.uuid4()), "project_id": 1, "user_id": 1, "generation": 1}
    with store.engine.connect() as connection:
        connection.execute(sa.insert(consumers).values(row))
    with store.engine.connect() as connection:
        count = sa.select(sa.func.count()).select_from(consumers)
        assert connection.execute(count).scalar() == 0


@pytest.mark.parametrize("database_kind", EACH_SERVER, indirect=True)
def test_each_transaction_sets_its_own_isolation_level(store):
    count = "SELECT COUNT(*) FROM projects"

    def count_new_rows(transaction):
        """Return the number of concurrently committed rows that the transaction sees."""
        before = transaction.scalar(count)
        with store.engine.begin() as rival:
            rival.execute(sa.insert(projects).values(external_id=str(uuid.uuid4())))
        return transaction.scalar(count) - before

    for _ in range(3):
        assert store.write(count_new_rows) == 1
        assert store.read(count_new_rows) == 0


@ON_MARIADB
def test_claim_finds_names_under_any_collation(store, hosts):
    """Tables of later Placement releases have the default of the server at that time."""
    with store.engine.begin() as connection:
        for table, collation in (("consumer_types", "unicode_ci"), ("projects", "general_ci")):
            connection.exec_driver_sql(
                f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_{collation}"
            )
    consumer = str(uuid.uuid4())
    store.replace_allocations([make_claim(consumer, {hosts[0]: 1})])
    store.replace_allocations([make_claim(consumer, {hosts[1]: 1}, 1)])
    assert store.read(load_consumer, consumer)[0]["project_id"] == "p"


def count_scanned_rows(store):
    """Return the number of rows that PostgreSQL read by sequential scans, by table.

    A server process reports them when it ends.
    """
    other_backends = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    )
    with store.engine.connect() as connection:
        own_pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        eventually(
            lambda: connection.exec_driver_sql(other_backends, (own_pid,)).scalar() == 0,
            "the other sessions have not ended",
        )
        counted = connection.exec_driver_sql(
            "SELECT relname, seq_tup_read FROM pg_stat_user_tables"
        ).all()
    return dict(tuple(row) for row in counted)


@pytest.mark.slow
@ON_POSTGRESQL
def test_cached_plans_of_empty_tables_do_not_cause_full_scans(store, hosts, database_url):
    """Neither by claims in groups, nor by a reader that follows them."""
    store.engine.dispose()
    with closing(Store(DatabaseSettings(database_url))) as other_store:

        def claim_and_follow(host):
            cursor = other_store.load_changes(None).cursor
            # The driver prepares a statement after five executions, and the server caches a generic plan
            # after five more.
            for _ in range(12):
                claims = [make_claim(str(uuid.uuid4()), {host: 1}) for _ in range(16)]
                requests = [ClaimRequest([claim]) for claim in claims]
                assert other_store.write(allocations.write_group, requests) == [None] * 16
                cursor = other_store.load_changes(cursor).cursor

        claim_and_follow(hosts[0])
        with store.engine.begin() as connection:
            for statement in MANY_ROWS.split(";"):
                connection.exec_driver_sql(statement)
        claim_and_follow(hosts[1])
    store.engine.dispose()
    scanned = count_scanned_rows(store)
    # The insertion of MANY_ROWS reads its earlier rows once.
    assert {name: scanned[name] for name in PLANNED if scanned[name] > 2 * ROW_COUNT} == {}


def prepare_inventory_query(store, columns, count, providers):
    """Fill the table of inventories; return the query of claims for the inventories of providers."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO inventories (resource_provider_id, resource_class_id, total, reserved, "
            f"min_unit, max_unit, step_size, allocation_ratio) SELECT {columns}, 8, 0, 1, 8, 1, 1.0 "
            f"FROM {count}"
        )
    values = {"provider_ids": list(providers), "class_ids": [0, 1, 2]}
    return compile_text(INVENTORIES).bind(store.engine.dialect, values)


@pytest.mark.slow
@ON_POSTGRESQL
def test_claim_reads_only_inventories_of_its_providers(store):
    """Even if the server has no statistics yet, as in a new database."""
    numbers = "number / 3, MOD(number, 3)", "generate_series(3, 3002) number"
    query = prepare_inventory_query(store, *numbers, range(1, 9))
    with store.engine.begin() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN {query.sql}", query.parameters).scalars().all()
    assert any("uniq_inventories0resource_provider" in line for line in plan), plan


@pytest.mark.slow
@ON_MARIADB
def test_large_claim_reads_only_inventories_of_its_providers(store):
    """MariaDB must not use the index of classes, which it prefers because of the few classes."""
    numbers = "seq DIV 3, MOD(seq, 3)", "seq_3_to_30002"
    query = prepare_inventory_query(store, *numbers, range(1, 1001, 2))
    with store.engine.begin() as connection:
        connection.exec_driver_sql("FLUSH STATUS")
        rows = send(connection, query).rows
        counted = connection.exec_driver_sql("SHOW STATUS LIKE 'Handler_read%%'").all()
    read_count = sum(int(count) for _, count in counted)
    # Reads of inventories, classes and usage, and of the list of classes for each provider.
    assert len(rows) == 1500
    assert read_count < 5 * len(rows), counted
