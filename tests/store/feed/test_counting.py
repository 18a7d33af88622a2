# SPDX-License-Identifier: Apache-2.0
"""A reader of the feed counts claims, and loads providers or everything only if necessary."""

import uuid
from contextlib import closing
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from tests.store.feed.worlds_of_readers import Reader
from tests.store.hosts import create_host, make_claim
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import UsageChange
from treeclaim.model.provider import Inventory
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.feed import polling, unread
from treeclaim.store.feed.rows import read_amounts, write_amounts
from treeclaim.store.operations.catalogue.standard_names import sync_standard_names
from treeclaim.store.schema.tables import (
    LONGEST_AMOUNTS,
    feed,
    resource_classes,
    resource_providers,
    traits,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.fixture
def hosts(store):
    """Three hosts with 100 units of two classes each."""
    stock = {"VCPU": Inventory(100), "DISK_GB": Inventory(100)}
    return [create_host(store, stock) for _ in range(3)]


@pytest.fixture
def other(store, database_url):
    """The store of a second process."""
    with closing(Store(DatabaseSettings(database_url))) as other_store:
        yield other_store


def claim(store, *providers):
    store.replace_allocations([make_claim(str(uuid.uuid4()), dict.fromkeys(providers, 1))])


def assert_current(store, reader):
    """Compare a reader's contents with those of a full load."""
    fresh = Reader(store)
    fresh.catch_up()
    assert reader.picture() == fresh.picture()


def test_claim_committed_before_large_load_is_counted_once(store, hosts, other, monkeypatch):
    monkeypatch.setattr(polling, "_MOST_PROVIDERS", 0)
    reader = Reader(store)
    reader.catch_up()
    create_host(other, parent=hosts[0])
    original_read = store.read

    def claimed_first(operation, *arguments):
        monkeypatch.undo()
        claim(other, hosts[0])
        return original_read(operation, *arguments)

    monkeypatch.setattr(store, "read", claimed_first)
    for _ in range(2):
        reader.catch_up()
        assert_current(store, reader)


@pytest.mark.parametrize(("table", "name"), [(traits, "HW_NUMA_ROOT"), (resource_classes, "VCPU")])
def test_new_standard_name_reaches_readers(store, other, table, name):
    """A new version of a library adds only traits or only classes."""
    with store.engine.begin() as connection:
        connection.execute(sa.delete(table).where(table.c.name == name))
    reader = Reader(store)
    reader.catch_up()
    assert other.write(sync_standard_names) == 1
    reader.catch_up()
    assert_current(store, reader)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (polling, "_MOST_ROWS"),
        (polling, "_MOST_PROVIDERS"),
    ],
)
def test_reader_far_behind_catches_up_to_the_same_state(
    store, hosts, other, database_url, monkeypatch, module, name
):
    monkeypatch.setattr(module, name, 2)
    reader = Reader(store)
    reader.catch_up()
    with closing(Store(DatabaseSettings(database_url))) as third:
        for times in range(4):
            for writer in (other, third, store):
                for _ in range(times):
                    claim(writer, hosts[0])
                    create_host(writer, parent=hosts[1])
            reader.catch_up()
            assert_current(store, reader)


@pytest.mark.parametrize("most", [2, 3])
def test_claim_at_the_limit_of_rows_is_read_completely(store, hosts, other, monkeypatch, most):
    """A claim of three providers is one commit of three rows."""
    monkeypatch.setattr(polling, "_MOST_ROWS", most)
    reader = Reader(store)
    reader.catch_up()
    claim(other, *hosts)
    reader.catch_up()
    assert_current(store, reader)


def test_generation_raised_outside_the_feed_causes_full_load(store, hosts, other):
    replica = Replica(store)
    with replica.borrow_forest():
        claim(other, hosts[0])
    with store.engine.begin() as connection:
        connection.execute(
            sa.update(resource_providers).values(generation=resource_providers.c.generation + 5)
        )
    claim(other, hosts[0])
    with replica.borrow_forest() as forest:
        fresh = Forest()
        fresh.apply(store.load_changes(None))
        assert forest.records() == fresh.records()


def test_row_of_another_format_causes_full_load(store, hosts, other):
    reader = Reader(store)
    reader.catch_up()
    claim(other, hosts[0])
    with store.engine.begin() as connection:
        connection.execute(sa.update(feed).values(format=2))
    assert reader.catch_up()


def test_amounts_too_long_for_their_column_are_not_counted():
    large_change = UsageChange(dict.fromkeys(range(100), 1), 1, 12, 0.0)
    assert write_amounts(large_change) is None
    change = UsageChange(dict.fromkeys(range(1000, 1014), 2**31 - 1), 1, 2**31 - 1, 0.0)
    text = write_amounts(change)
    assert text is not None
    assert len(text) <= LONGEST_AMOUNTS
    assert read_amounts(None, AT) is None


def test_large_backlog_is_replaced_by_full_load(store, monkeypatch):
    """Few changes among many providers need no full load."""
    monkeypatch.setattr(polling, "_MOST_ROWS", 2)
    monkeypatch.setattr(unread, "_FEW_ITEMS", 2)
    for _ in range(20):
        create_host(store, 8)
    reader = Reader(store)
    reader.catch_up()
    for is_complete, count in ((False, 3), (True, 8)):
        for _ in range(count):
            create_host(store, 8)
        assert reader.catch_up() is is_complete
        assert_current(store, reader)
    assert store.load_changes(reader.cursor) is None
