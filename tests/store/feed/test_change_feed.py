# SPDX-License-Identifier: Apache-2.0
"""The feed returns what was committed since a cursor, or everything where that is cheaper."""

from tests.store.feed.worlds_of_readers import picture_of
from tests.store.hosts import create_host
from treeclaim.forest.table.forest import Forest
from treeclaim.store.feed import unread
from treeclaim.store.operations.catalogue import traits as trait_names


def test_unchanged_feed_returns_none(store):
    create_host(store, 8)
    changes = store.changes(None)
    assert store.changes(changes.cursor) is None
    store.write(trait_names.ensure, "CUSTOM_NEW")
    assert store.changes(changes.cursor).catalogue is not None


def test_large_backlog_is_replaced_by_full_load(store, monkeypatch):
    """A few changes among many providers are followed, however."""
    monkeypatch.setattr(unread, "_FEW", 2)
    for _ in range(20):
        create_host(store, 8)
    forest, changes = Forest(), store.changes(None)
    forest.apply(changes)
    for is_complete, count in ((False, 3), (True, 8)):
        for _ in range(count):
            create_host(store, 8)
        changes = store.read(unread.load_changes, changes.cursor)
        assert changes.complete is is_complete
        forest.apply(changes)
        fresh = Forest()
        fresh.apply(store.changes(None))
        assert picture_of(forest) == picture_of(fresh)
