# SPDX-License-Identifier: Apache-2.0
"""A hub sends every change to every watch, despite failures."""

import json
import math
import threading
from uuid import uuid4

import pytest

from tests.api.resources.extension.clouds import uuid_of
from treeclaim.model.changes import write_cursor
from treeclaim.store.feed.news import load_roots
from treeclaim.store.operations.providers import providers
from treeclaim.watching import EventStream, Hub, LongPoll


@pytest.fixture
def hub(store):
    """A hub that polls often."""
    return Hub(store, 0.01)


def add(store, name, parent=None):
    """Create a provider; return its uuid."""
    parent_uuid = None if parent is None else uuid_of(parent)
    store.write(providers.create, uuid=uuid_of(name), name=name, parent_uuid=parent_uuid)
    return uuid_of(name)


def change(store, name, **parent):
    """Rename a provider; move it below the provider with the UUID `parent`, if any."""
    store.write(providers.update, uuid_of(name), name=f"{name} {uuid4()}", **parent)


def publish_commits(hub):
    """Make a hub publish all commits, as a joining watch does."""
    LongPoll(hub, math.inf, "").close()


def restrict_to_trees(watch, store, names):
    """Restrict a watch to the trees of some providers."""
    watch.narrow(store.read(load_roots, [uuid_of(name) for name in names]))
    return watch


def start_stream(hub, store, names=None):
    """Start a stream of some trees, or of all."""
    watch = EventStream(hub, math.inf)
    return watch if names is None else restrict_to_trees(watch, store, names)


def read_changes(watch):
    """Return the new changes of a stream by UUID; None if there are none."""
    piece = watch.take()
    if piece is None or piece.startswith(b":"):
        return None
    data = next(line for line in piece.split(b"\n") if line.startswith(b"data: "))
    changes = json.loads(data.removeprefix(b"data: "))["changes"]
    return {change["uuid"]: change.get("what", "deleted") for change in changes}


def set_wake_event(watch):
    """Return an event that is set when a watch is woken."""
    event = threading.Event()
    watch.wake = event.set
    return event


def test_watcher_gets_news_after_a_failed_round(store, hub, monkeypatch):
    watch = start_stream(hub, store)
    woken = set_wake_event(watch)
    failed = threading.Event()

    def fail():
        monkeypatch.undo()
        failed.set()
        raise MemoryError

    monkeypatch.setattr(store, "load_cursor", fail)
    assert failed.wait(60)
    name = add(store, "host")
    assert woken.wait(60)
    assert read_changes(watch).keys() == {name}
    watch.close()


def test_failing_wake_does_not_withhold_news_from_others(store, hub):
    def fail():
        raise ValueError

    first, second = start_stream(hub, store), start_stream(hub, store)
    first.wake, woken = fail, set_wake_event(second)
    name = add(store, "host")
    assert woken.wait(60)
    for watch in (first, second):
        assert read_changes(watch).keys() == {name}
        watch.close()


def test_tree_stream_follows_a_moved_provider(store, hub):
    for name in ("old", "new", "elsewhere"):
        add(store, name)
        add(store, f"{name} child", name)
    add(store, "moved", "old child")
    add(store, "below", "moved")
    watch = start_stream(hub, store, ["moved"])
    change(store, "moved", parent=uuid_of("new child"))
    publish_commits(hub)
    # The changes include the former and the new tree.
    names = ("old", "old child", "new", "new child", "moved", "below")
    assert read_changes(watch) == {uuid_of(name): ["provider"] for name in names}
    for name in ("new", "old", "elsewhere"):
        change(store, f"{name} child")
        publish_commits(hub)
        changes = read_changes(watch)
        assert changes == ({uuid_of("new child"): ["provider"]} if name == "new" else None)
    watch.close()


def test_tree_stream_reports_creation_and_deletion_of_its_provider(store, hub):
    add(store, "tree")
    watch = start_stream(hub, store, ["late"])
    change(store, "tree")
    publish_commits(hub)
    assert read_changes(watch) is None
    add(store, "late", "tree")
    publish_commits(hub)
    assert read_changes(watch).keys() == {uuid_of("late"), uuid_of("tree")}
    store.write(providers.delete, uuid_of("late"))
    publish_commits(hub)
    assert read_changes(watch) == {uuid_of("late"): "deleted", uuid_of("tree"): ["provider"]}
    change(store, "tree")
    publish_commits(hub)
    assert read_changes(watch) is None
    watch.close()


@pytest.mark.parametrize("times", [1, 3])
def test_changes_between_joining_and_naming_a_tree_are_reported(store, hub, times):
    add(store, "tree")
    add(store, "other")
    watch = EventStream(hub, math.inf)
    for _ in range(times):
        change(store, "tree")
        change(store, "other")
        publish_commits(hub)
    restrict_to_trees(watch, store, ["tree"])
    assert read_changes(watch) == {uuid_of("tree"): ["provider"]}
    assert read_changes(watch) is None
    watch.close()


def test_watcher_of_a_provider_moved_meanwhile_must_reconnect(store, hub):
    add(store, "old")
    add(store, "new")
    add(store, "moved", "old")
    roots = store.read(load_roots, [uuid_of("moved")])
    watcher, poll = EventStream(hub, math.inf), LongPoll(hub, math.inf, "the cursor")
    change(store, "moved", parent=uuid_of("new"))
    publish_commits(hub)
    for watch in (watcher, poll):
        watch.narrow(roots)
    assert (watcher.take(), watcher.is_over) == (None, True)
    assert b'"cursor":"the cursor"' in poll.take()
    assert poll.is_over
    watcher.close()
    poll.close()


def test_empty_poll_response_has_the_cursor_after_skipped_news(store, hub):
    add(store, "tree")
    add(store, "other")
    poll = restrict_to_trees(LongPoll(hub, math.inf, "the cursor"), store, ["tree"])
    change(store, "other")
    publish_commits(hub)
    assert poll.take() is None
    assert write_cursor(store.load_cursor()).encode() in poll.finish()
    poll.close()


def test_log_overflow_ends_only_slow_watchers(store, hub, monkeypatch):
    monkeypatch.setattr("treeclaim.watching.change_log._MOST_CHANGES", 3)
    for number in range(3):
        add(store, f"host {number}")
    slow, fast = start_stream(hub, store), start_stream(hub, store)
    poll = LongPoll(hub, math.inf, "the cursor")
    for number in (0, 1, 2, 0):
        change(store, f"host {number}")
        publish_commits(hub)
        assert read_changes(fast).keys() == {uuid_of(f"host {number}")}
    assert (slow.take(), slow.is_over) == (None, True)
    assert b'"cursor":"the cursor"' in poll.take()
    for watch in (slow, fast, poll):
        watch.close()


def test_slow_watcher_gets_merged_news_and_then_frees_the_log(store, hub):
    names = [add(store, f"host {number}") for number in range(3)]
    slow, fast = start_stream(hub, store, ["host 0", "host 1"]), start_stream(hub, store)
    for number in range(3):
        change(store, f"host {number}")
        publish_commits(hub)
        assert read_changes(fast).keys() == {names[number]}
    assert len(hub.log.entries) == 3
    assert read_changes(slow).keys() == set(names[:2])
    change(store, "host 2")
    publish_commits(hub)
    assert len(hub.log.entries) == 1
    slow.close()
    fast.close()
