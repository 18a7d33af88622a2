# SPDX-License-Identifier: Apache-2.0
"""No committed change is ever missed, none is seen half, whatever the writers do."""

import multiprocessing
import os
import random
import signal
from datetime import timedelta

import pytest

from tests.fresh_processes import FRESH
from tests.store.hosts import create_host
from treeclaim.forest.table.forest import Forest
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.feed import unread
from treeclaim.store.operations.catalogue import traits as trait_names
from treeclaim.store.operations.providers import providers

WRITERS = 3
ROUNDS = 25


class GaveUpError(Exception):
    """Rolls a transaction back."""


def new_provider(store, parent=None):
    """Create a provider with an inventory; return its uuid."""
    return create_host(store, 8, parent=parent)


def write_at_random(url, seed, shared, ready, begin):
    """Change providers in short, long and rolled-back transactions."""
    chance = random.Random(seed)
    store = Store(DatabaseSettings(url))
    ready.release()
    begin.wait()
    mine = [new_provider(store)]
    for _ in range(ROUNDS):
        action = chance.choice(["create", "child", "long", "undone", "trait", "delete", "shared"])
        if action == "create":
            mine.append(new_provider(store))
        elif action == "child":
            mine.append(new_provider(store, parent=chance.choice(mine)))
        elif action == "trait":
            store.write(trait_names.ensure, f"CUSTOM_{chance.randrange(40)}")
        elif action == "delete" and len(mine) > 1:
            store.write(delete_leaf, mine[-1])
            mine.pop()
        elif action == "shared":
            store.write(several, shared, chance.random() / 100)
        elif action == "long":
            store.write(several, mine[-3:], chance.random() / 20)
        elif action == "undone":
            with pytest.raises(GaveUpError):
                store.write(give_up, mine[-2:])
    store.close()


def several(transaction, uuids, pause):
    """Change some providers in one transaction that takes its time."""
    for uuid in sorted(uuids):
        providers.write_inventories(transaction, uuid, {})
        stop = multiprocessing.Event()
        stop.wait(pause)


def give_up(transaction, uuids):
    several(transaction, uuids, 0)
    raise GaveUpError


def delete_leaf(transaction, newest):
    """Delete the newest provider; it has no children."""
    providers.write_inventories(transaction, newest, {})
    providers.delete(transaction, newest)


def equal_to_fresh(store, forest):
    """Compare a Forest that followed the feed with one loaded now; return both pictures."""
    fresh = Forest()
    fresh.apply(store.changes(None))
    return forest.records(), fresh.records(), forest.catalogue, fresh.catalogue


@pytest.mark.slow
def test_a_reader_sees_everything_that_concurrent_writers_commit(store, database_url):
    shared = [new_provider(store) for _ in range(3)]
    ready, begin = FRESH.Semaphore(0), FRESH.Event()
    writers = [
        FRESH.Process(target=write_at_random, args=(database_url, seed, shared, ready, begin))
        for seed in range(WRITERS)
    ]
    for one in writers:
        one.start()
    for _ in writers:
        ready.acquire()
    replica = Replica(store)
    begin.set()
    chance = random.Random(WRITERS)
    while any(writer.is_alive() for writer in writers):
        if chance.random() < 1 / 3:
            # Of what the writers have just told, some or all; their streams are closed under them.
            store.housekeeper.prune(timedelta(seconds=chance.choice([-1, 0, 0.2])))
        # What a reader sees is a state that was committed: a fresh load can only be newer.
        with replica.current() as forest:
            seen = {record.uuid: record.generation for record in forest.records()}
        fresh = Forest()
        fresh.apply(store.changes(None))
        for record in fresh.records():
            assert seen.get(record.uuid, 0) <= record.generation
    for one in writers:
        one.join()
        assert one.exitcode == 0
    with replica.current() as forest:
        followed, fresh, names, fresh_names = equal_to_fresh(store, forest)
    assert followed == fresh
    assert names == fresh_names


def hold_a_transaction(url, provider, holding):
    """Change a provider and never commit."""
    store = Store(DatabaseSettings(url))

    def change_and_wait(transaction):
        providers.write_inventories(transaction, provider, {})
        holding.set()
        signal.pause()

    store.write(change_and_wait)


def test_a_writer_killed_before_its_commit_leaves_no_trace(store, database_url):
    victim, other = new_provider(store), new_provider(store)
    replica = Replica(store)
    with replica.current() as forest:
        before = forest.records()
    holding = FRESH.Event()
    writer = FRESH.Process(target=hold_a_transaction, args=(database_url, victim, holding))
    writer.start()
    assert holding.wait(60)
    with replica.current() as forest:
        assert forest.records() == before
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    store.write(providers.write_inventories, other, {})
    store.write(providers.write_inventories, victim, {})
    with replica.current() as forest:
        followed, fresh, _, _ = equal_to_fresh(store, forest)
    assert followed == fresh
    assert sum(one.generation for one in followed) == sum(one.generation for one in before) + 2


def test_unchanged_feed_returns_none(store):
    new_provider(store)
    changes = store.changes(None)
    assert store.changes(changes.cursor) is None
    store.write(trait_names.ensure, "CUSTOM_NEW")
    assert store.changes(changes.cursor).catalogue is not None


def test_large_backlog_is_replaced_by_full_load(store, monkeypatch):
    """A few changes among many providers are followed, however."""
    monkeypatch.setattr(unread, "_FEW", 2)
    for _ in range(20):
        new_provider(store)
    forest = Forest()
    first = store.changes(None)
    forest.apply(first)
    for is_complete, count in ((False, 3), (True, 8)):
        for _ in range(count):
            new_provider(store)
        changes = store.read(unread.changes_since, first.cursor)
        assert changes.complete is is_complete
        forest.apply(changes)
        first = changes
        mine, fresh, *_ = equal_to_fresh(store, forest)
        assert mine == fresh
