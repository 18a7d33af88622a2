# SPDX-License-Identifier: Apache-2.0
"""A hub tells everybody of everything, whatever it meets."""

import math
import threading
from contextlib import contextmanager
from time import monotonic

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.servers import eventually
from tests.watching import listening
from treeclaim.store.feed.news import roots_of
from treeclaim.watching import EventStream, Hub, LongPoll, watches

FAR_TOO_MUCH = 1 << 46
"""Bytes of a thread's stack, for which no machine has room."""


@pytest.fixture
def hub(store):
    """A hub that looks often."""
    return Hub(store, listening.OFTEN)


@contextmanager
def no_threads():
    """Let no thread be started in a block."""
    before = threading.stack_size(FAR_TOO_MUCH)
    try:
        yield
    finally:
        threading.stack_size(before)


def heard_of(watch):
    """Have a watch note when it is woken."""
    event = threading.Event()
    watch.wake = event.set
    return event


def hear_once(watch, woken):
    """Ask for what there is, which begins the reading, and ask again when that wakes."""
    heard = listening.told(watch)
    if heard is None:
        assert woken.wait(60)
        heard = listening.told(watch)
    return heard


def test_a_moment_without_threads_silences_nobody(store, hub):
    with no_threads():
        watch = listening.stream(hub, store)
        woken = heard_of(watch)
        assert watch.take() is None
        # Nobody reads the feed, so it asks to be looked after before long.
        assert watch.due <= monotonic() + watches.RETRY_SECONDS
    name = listening.add(store, "written while nobody reads")
    # What a server does when that time has come.
    assert hear_once(watch, woken).keys() == {name}
    assert watch.due > monotonic() + watches.RETRY_SECONDS
    watch.close()


def test_who_comes_after_a_moment_without_threads_brings_news_to_all(store, hub):
    with no_threads():
        first = listening.stream(hub, store)
        woken = heard_of(first)
    second = listening.stream(hub, store)
    name = listening.add(store, "host")
    assert woken.wait(60)
    assert listening.told(first).keys() == {name}
    first.close()
    second.close()


def test_a_round_that_fails_silences_nobody(store, hub, monkeypatch):
    watch = listening.stream(hub, store)
    woken = heard_of(watch)
    failed = threading.Event()

    def fail():
        monkeypatch.undo()
        failed.set()
        raise MemoryError

    monkeypatch.setattr(store, "positions", fail)
    assert failed.wait(60)
    name = listening.add(store, "host")
    assert woken.wait(60)
    assert listening.told(watch).keys() == {name}
    watch.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ends_in_the_middle_silences_nobody(store, hub, monkeypatch):
    watch = listening.stream(hub, store)
    woken = heard_of(watch)

    has_failed = threading.Event()

    def end():
        monkeypatch.undo()
        has_failed.set()
        raise SystemExit

    monkeypatch.setattr(store, "positions", end)
    assert has_failed.wait(60)
    name = listening.add(store, "host")
    assert hear_once(watch, woken).keys() == {name}
    watch.close()


def test_one_that_cannot_be_woken_keeps_the_news_from_nobody(store, hub):
    def fail():
        raise ValueError

    first, second = listening.stream(hub, store), listening.stream(hub, store)
    first.wake, woken = fail, heard_of(second)
    name = listening.add(store, "host")
    assert woken.wait(60)
    for watch in (first, second):
        assert listening.told(watch).keys() == {name}
        watch.close()


def test_nobody_reads_the_feed_for_nobody(store, hub):
    watch = listening.stream(hub, store)
    assert hub.is_looking
    watch.close()
    eventually(lambda: not hub.is_looking, "nobody looks")
    again = listening.stream(hub, store)
    assert hub.is_looking
    again.close()


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


def test_a_stream_of_a_tree_tells_what_came_and_went_with_the_provider_itself(store, hub):
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
def test_what_happens_between_joining_and_naming_a_tree_is_told(store, hub, times):
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


def test_who_names_a_provider_that_moves_at_that_moment_comes_again(store, hub):
    listening.add(store, "old")
    listening.add(store, "new")
    listening.add(store, "moved", "old")
    roots = store.read(roots_of, [uuid_of("moved")])
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


def test_an_answer_that_comes_to_nothing_has_the_cursor_behind_what_was_passed_over(store, hub):
    listening.add(store, "tree")
    listening.add(store, "other")
    poll = listening.narrowed(LongPoll(hub, math.inf, "the cursor"), store, ["tree"])
    listening.rename(store, "other")
    listening.look(hub)
    assert poll.take() is None
    assert listening.present(store).encode() in poll.finish()
    poll.close()


def test_a_server_that_stops_keeps_no_news_back(store, hub):
    listening.add(store, "tree")
    poll = listening.narrowed(LongPoll(hub, math.inf, "the cursor"), store, ["tree"])
    listening.rename(store, "tree")
    listening.look(hub)
    assert uuid_of("tree").encode() in poll.finish()
    poll.close()


def test_what_all_hear_is_one_text_that_the_loop_need_not_write(store, hub):
    listening.add(store, "tree")
    for names in (["tree"], None):
        first, second = (listening.stream(hub, store, names) for _ in range(2))
        listening.rename(store, "tree")
        listening.look(hub)
        (message,) = first._channel.log.entries
        assert message._document is not None
        assert first.take() is second.take()
        first.close()
        second.close()


@pytest.mark.parametrize("module", ["hub", "texts"])
def test_more_than_may_be_kept_is_dropped_and_ends_only_who_reads_slowly(
    store, hub, module, monkeypatch
):
    monkeypatch.setattr(f"treeclaim.watching.{module}._MOST_CHANGES", 3)
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


def test_who_reads_slowly_hears_of_all_at_once_and_keeps_the_log_as_long_as_that(store, hub):
    names = [listening.add(store, f"host {number}") for number in range(3)]
    slow, fast = listening.stream(hub, store, ["host 0", "host 1"]), listening.stream(hub, store)
    for number in range(3):
        listening.rename(store, f"host {number}")
        listening.look(hub)
        assert listening.told(fast).keys() == {names[number]}
    assert len(slow._channel.log.entries) == 2
    assert len(fast._channel.log.entries) == 1
    assert listening.told(slow).keys() == set(names[:2])
    slow.close()
    fast.close()
