# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for each other at the Forest and at the probe."""

import threading

import pytest

from tests.servers import eventually
from tests.service import fresh_database
from tests.store.hosts import create_host, write_inventories
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.feed import probe as probe_module

SHORT = 0.2


@pytest.fixture
def store(tmp_path):
    new_store = Store(DatabaseSettings(fresh_database(tmp_path)))
    yield new_store
    new_store.close()


def generation_of(replica, provider):
    with replica.borrow_forest() as forest:
        return int(forest.generation.values[forest.row_of(provider)])


def change(store, provider):
    store.write(write_inventories, provider, {})


def test_reader_arriving_during_a_read_triggers_another(store, monkeypatch):
    replica = Replica(store)
    provider = create_host(store)
    assert generation_of(replica, provider) == 0
    results = []
    late_thread = threading.Thread(target=lambda: results.append(generation_of(replica, provider)))
    load = store.load_changes

    def slow_load(cursor):
        result = load(cursor)
        if not late_thread.ident:
            # Committed after this load, and before the other reader arrives.
            change(store, provider)
            late_thread.start()
            eventually(lambda: replica.turn.waiting_count == 1)
        return result

    monkeypatch.setattr(store, "load_changes", slow_load)
    assert generation_of(replica, provider) == 0
    late_thread.join(timeout=30)
    assert results == [1]


def test_wait_for_the_probe_times_out(store, monkeypatch):
    monkeypatch.setattr(probe_module, "TURN_SECONDS", SHORT)
    with store._probe._lock, pytest.raises(StoreUnavailableError):
        store.load_cursor()
    assert store.load_cursor() is not None
