# SPDX-License-Identifier: Apache-2.0
"""Held amounts are read from the holds, without a scan of all allocations (contract page 100)."""

import pytest

from tests.clouds import flat
from tests.clouds.bulk import write_promises, write_servers, write_world
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.reading import holds

SERVERS, HOSTS = 2_000, 100
HOLDS = {"sqlite": 1_000, "postgresql": 100, "mariadb": 100}
"""SQLite looks up as many; for servers it may be right to read all."""

STATISTICS = {
    "allocations_resource_provider_class_used_idx": "700000 71 24 12",
    "allocations_consumer_id_idx": "700000 3",
    "allocations_resource_class_id_idx": "700000 233334",
    "consumers_consumer_type_id_idx": "300000 150000",
    "sqlite_autoindex_consumers_1": "300000 1",
    "sqlite_autoindex_treeclaim_holds_1": "100000 1",
    "treeclaim_holds_ends_at_idx": "100000 100000",
}
"""SQLite's, where 10,000 hosts have 200,000 servers and 100,000 holds."""


@pytest.fixture
def filled(empty_url, database_kind):
    """A database whose statistics show few holds and many other consumers."""
    world = flat(HOSTS)
    write_world(empty_url, world)
    write_servers(empty_url, world, SERVERS)
    write_promises(empty_url, world, holds=HOLDS[database_kind], requests=0)
    store = Store(DatabaseSettings(empty_url))
    with store.engine.connect() as connection:
        if connection.dialect.name == "mysql":
            connection.exec_driver_sql("ANALYZE TABLE allocations, consumers, treeclaim_holds")
        elif connection.dialect.name == "sqlite":
            for index, numbers in STATISTICS.items():
                changed = "UPDATE sqlite_stat1 SET stat = ? WHERE idx = ?"
                assert connection.exec_driver_sql(changed, (numbers, index)).rowcount == 1
        connection.commit()
    store.close()
    store = Store(DatabaseSettings(empty_url))
    yield store
    store.close()


def test_held_amounts_are_summed_by_provider_and_class(filled, database_kind):
    holds_of_host = HOLDS[database_kind] // HOSTS
    ids = {
        row.name: row.id
        for row in filled.read(lambda t: t.rows("SELECT id, name FROM resource_classes"))
    }
    expected = {
        "VCPU": 2 * holds_of_host,
        "MEMORY_MB": 1024 * holds_of_host,
        "DISK_GB": 10 * holds_of_host,
    }
    assert filled.read(holds.load_held_sums) == {
        (host, ids[name]): amount
        for host in range(1, HOSTS + 1)
        for name, amount in expected.items()
    }


def test_held_amounts_query_does_not_scan_allocations(filled):
    dialect = filled.engine.dialect
    explain = "EXPLAIN QUERY PLAN" if dialect.name == "sqlite" else "EXPLAIN"
    with filled.engine.connect() as connection:
        plan = [
            tuple(row) for row in connection.exec_driver_sql(f"{explain} {holds.HELD_EVERYWHERE}")
        ]
    on_allocations = [str(row) for row in plan if "allocations" in str(row)]
    assert on_allocations
    for step in on_allocations:
        scan_texts = {
            "sqlite": "SCAN allocations",
            "mysql": "'ALL'",
            "postgresql": "Seq Scan on alloc",
        }
        assert scan_texts[dialect.name] not in step, plan
