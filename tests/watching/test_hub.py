# SPDX-License-Identifier: Apache-2.0
"""A hub tells everybody of everything, whatever it meets."""

import math
import threading

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.watching import listening
from treeclaim.store.feed.news import load_roots
from treeclaim.watching import EventStream, Hub, LongPoll


@pytest.fixture
def hub(store):
    """A hub that looks often."""
    return Hub(store, listening.OFTEN)


def heard_of(watch):
    """Have a watch note when it is woken."""
    event = threading.Event()
    watch.wake = event.set
    return event


def test_watcher_gets_news_after_a_failed_round(store, hub, monkeypatch):
    watch = listening.stream(hub, store)
    woken = heard_of(watch)
    failed = threading.Event()

    def fail():
        monkeypatch.undo()
        failed.set()
        raise MemoryError

    monkeypatch.setattr(store, "cursor", fail)
    assert failed.wait(60)
    name = listening.add(store, "host")
    assert woken.wait(60)
    assert listening.told(watch).keys() == {name}
    watch.close()


def test_failing_wake_does_not_withhold_news_from_others(store, hub):
    def fail():
        raise ValueError

    first, second = listening.stream(hub, store), listening.stream(hub, store)
    first.wake, woken = fail, heard_of(second)
    name = listening.add(store, "host")
    assert woken.wait(60)
    for watch in (first, second):
        assert listening.told(watch).keys() == {name}
        watch.close()


def test_a_stream_of_a_tree_follows_a_provider_that_moves(store, hub):
    for name in ("old", "new", "elsewhere"):
        listening.add(store, name)
        listening.add(store, f"{name} child", name)
    listening.add(store, "moved", "old child")
    listening.add(store, "below", "moved")
    watch = listening.stream(hub, store, ["moved"])
    listening.move(store, "moved", "new child")
    listening.look(hub)
    # The former tree has left, the new one has come.
    names = ("old", "old child", "new", "new child", "moved", "below")
    assert listening.told(watch) == {uuid_of(name): ["provider"] for name in names}
    for name in ("new", "old", "elsewhere"):
        listening.rename(store, f"{name} child")
        listening.look(hub)
        heard = listening.told(watch)
        assert heard == ({uuid_of("new child"): ["provider"]} if name == "new" else None)
    watch.close()


def test_tree_stream_reports_creation_and_deletion_of_its_provider(store, hub):
    listening.add(store, "tree")
    watch = listening.stream(hub, store, ["late"])
    listening.rename(store, "tree")
    listening.look(hub)
    assert listening.told(watch) is None
    listening.add(store, "late", "tree")
    listening.look(hub)
    assert listening.told(watch).keys() == {uuid_of("late"), uuid_of("tree")}
    listening.delete(store, "late")
    listening.look(hub)
    assert listening.told(watch) == {uuid_of("late"): "deleted", uuid_of("tree"): ["provider"]}
    listening.rename(store, "tree")
    listening.look(hub)
    assert listening.told(watch) is None
    watch.close()


@pytest.mark.parametrize("times", [1, 3])
def test_changes_between_joining_and_naming_a_tree_are_reported(store, hub, times):
    listening.add(store, "tree")
    listening.add(store, "other")
    watch = EventStream(hub, math.inf)
    for _ in range(times):
        listening.rename(store, "tree")
        listening.rename(store, "other")
        listening.look(hub)
    listening.narrowed(watch, store, ["tree"])
    assert listening.told(watch) == {uuid_of("tree"): ["provider"]}
    assert listening.told(watch) is None
    watch.close()


def test_watcher_of_a_provider_that_moves_must_reconnect(store, hub):
    listening.add(store, "old")
    listening.add(store, "new")
    listening.add(store, "moved", "old")
    roots = store.read(load_roots, [uuid_of("moved")])
    stream, poll = EventStream(hub, math.inf), LongPoll(hub, math.inf, "the cursor")
    listening.move(store, "moved", "new")
    listening.look(hub)
    for watch in (stream, poll):
        watch.narrow(roots)
    assert (stream.take(), stream.is_over) == (None, True)
    assert b'"cursor":"the cursor"' in poll.take()
    assert poll.is_over
    stream.close()
    poll.close()


def test_empty_poll_response_has_the_cursor_after_skipped_news(store, hub):
    listening.add(store, "tree")
    listening.add(store, "other")
    poll = listening.narrowed(LongPoll(hub, math.inf, "the cursor"), store, ["tree"])
    listening.rename(store, "other")
    listening.look(hub)
    assert poll.take() is None
    assert listening.present(store).encode() in poll.finish()
    poll.close()


def test_log_overflow_ends_only_slow_watchers(store, hub, monkeypatch):
    monkeypatch.setattr("treeclaim.watching.change_log._MOST_CHANGES", 3)
    for number in range(3):
        listening.add(store, f"host {number}")
    slow, fast = listening.stream(hub, store), listening.stream(hub, store)
    poll = LongPoll(hub, math.inf, "the cursor")
    for number in (0, 1, 2, 0):
        listening.rename(store, f"host {number}")
        listening.look(hub)
        assert listening.told(fast).keys() == {uuid_of(f"host {number}")}
    assert (slow.take(), slow.is_over) == (None, True)
    assert b'"cursor":"the cursor"' in poll.take()
    for watch in (slow, fast, poll):
        watch.close()


def test_slow_watcher_gets_merged_news_and_then_frees_the_log(store, hub):
    names = [listening.add(store, f"host {number}") for number in range(3)]
    slow, fast = listening.stream(hub, store, ["host 0", "host 1"]), listening.stream(hub, store)
    for number in range(3):
        listening.rename(store, f"host {number}")
        listening.look(hub)
        assert listening.told(fast).keys() == {names[number]}
    assert len(hub.log.entries) == 3
    assert listening.told(slow).keys() == set(names[:2])
    listening.rename(store, "host 2")
    listening.look(hub)
    assert len(hub.log.entries) == 1
    slow.close()
    fast.close()
