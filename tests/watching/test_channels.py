# SPDX-License-Identifier: Apache-2.0
"""News finds those who watch it by what changed, whatever else is watched."""

import math
import tracemalloc
import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.model.changes import Cursor
from treeclaim.model.errors import OverloadedError
from treeclaim.model.extension.news import News, ProviderChange
from treeclaim.model.parts import EVERYTHING, Part
from treeclaim.watching import channels
from treeclaim.watching.channels import Index
from treeclaim.watching.texts import Log, Message

WATCHERS, TREES = 1_000, 1_740
AT = Cursor({}, None, frozenset())


def uuids(count):
    """Return so many new uuids."""
    return [str(uuid.uuid4()) for _ in range(count)]


def change_of(root, *left):
    """A change of a provider in a tree, perhaps from others."""
    return ProviderChange(1, Part.INVENTORIES, frozenset({root, *left}), root)


class Counting(dict):
    """A dictionary that counts what is looked up in it."""

    looked_up = 0

    def get(self, key, default=None):
        """Count."""
        self.looked_up += 1
        return super().get(key, default)


def counted(index):
    """Count from now on what an index looks up."""
    tables = index._named, index._below = Counting(index._named), Counting(index._below)
    return tables


def test_cost_of_news_depends_on_changes_and_not_on_watchers():
    index, trees = Index(), uuids(TREES)
    everybody = [
        index.channel({tree: tree for tree in [*trees[1:], extra]})[0]
        for extra in uuids(WATCHERS // 20)
    ]
    tables = counted(index)
    news = News(AT, {trees[0]: change_of(trees[0])}, catalogue=False)
    assert index.divided(news, index.moves(news), {}) == {}
    assert sum(table.looked_up for table in tables) <= 4
    news = News(AT, {trees[1]: change_of(trees[1])}, catalogue=False)
    assert index.divided(news, index.moves(news), {}).keys() == set(everybody)
    assert sum(table.looked_up for table in tables) <= 8


@pytest.mark.slow
def test_watchers_of_the_same_trees_share_a_channel():
    index, trees = Index(), uuids(TREES)
    first, taken = index.channel({tree: tree for tree in trees})
    assert taken == TREES * (channels.NAME_BYTES + channels.REFERENCE_BYTES)
    for _ in range(WATCHERS):
        assert index.channel({tree: tree for tree in reversed(trees)}) == (first, 0)
    assert len(index) == TREES


@pytest.mark.slow
def test_watched_trees_use_their_accounted_memory():
    index = Index()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        counted_bytes = 0
        shared = uuids(TREES)
        for number in range(20):
            names = [*uuids(TREES // 2), *shared[number : TREES // 2 + number]]
            counted_bytes += index.channel({name: name for name in names})[1]
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert counted_bytes / 2 < held < counted_bytes * 1.3


def test_number_of_watched_trees_is_limited(monkeypatch):
    monkeypatch.setattr(channels, "MOST_NAMED", 10)
    index, trees = Index(), uuids(20)
    channel, _ = index.channel(dict.fromkeys(trees[:8]))
    with pytest.raises(OverloadedError):
        index.channel(dict.fromkeys(trees[6:12]))
    assert len(index) == 8
    index.channel(dict.fromkeys(trees[6:10]))
    index.discard(channel)
    assert len(index) == 4
    index.channel(dict.fromkeys(trees[10:16]))


NAMES = [f"provider {number}" for number in range(7)]
roots = st.sampled_from([None, *NAMES])
wanted = st.dictionaries(st.sampled_from(NAMES), roots, min_size=1, max_size=4)
changes = st.one_of(
    st.builds(
        lambda root, left: ProviderChange(1, Part.TRAITS, frozenset({root, *left}), root),
        st.sampled_from(NAMES),
        st.sets(st.sampled_from(NAMES), max_size=2),
    ),
    st.builds(
        lambda left: ProviderChange(None, EVERYTHING, frozenset(left), None),
        st.sets(st.sampled_from(NAMES), max_size=2),
    ),
    st.builds(lambda root: ProviderChange(1, EVERYTHING, None, root), st.sampled_from(NAMES)),
)
all_news = st.builds(
    lambda told, catalogue: News(AT, told, catalogue),
    st.dictionaries(st.sampled_from(NAMES), changes, max_size=4),
    st.booleans(),
)


@given(
    st.sampled_from(NAMES).flatmap(lambda _: st.dictionaries(st.sampled_from(NAMES), roots)),
    st.lists(st.sets(st.sampled_from(NAMES), min_size=1, max_size=4), max_size=5),
    st.lists(all_news, max_size=4),
    st.data(),
)
def test_each_channel_gets_news_of_its_trees(where, watched, several, data):
    index = Index()
    where = dict.fromkeys(NAMES) | where
    theirs = {}
    for names in watched:
        channel, _ = index.channel({name: where[name] for name in names})
        theirs[channel] = names
    for news in several:
        if theirs and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(list(theirs)))
            del theirs[gone]
            index.discard(gone)
        moves = index.moves(news)
        told = index.divided(news, moves, {})
        for channel, names in theirs.items():
            trees = {tree for name in names for tree in (name, where[name])}
            expected = {
                uuid: change
                for uuid, change in news.changes.items()
                if change.trees is None or not trees.isdisjoint({uuid, *change.trees})
            }
            found = told.get(channel)
            assert (found.changes if found else {}) == expected
            assert (found is not None and found.catalogue) == news.catalogue
        assert told.keys() <= theirs.keys()
        index.follow(news, moves)
        where |= {uuid: change.root for uuid, change in news.changes.items()}
    for channel in list(theirs):
        index.discard(channel)
    assert (len(index), index._below) == (0, {})


def test_channel_keeps_unread_news_within_its_limit():
    class Slow:
        wake, next, reached = None, 0, ""

    channel = Index().everything
    slow = Slow()
    channel.listeners[slow] = None
    numbers = Counter()
    for _ in range(5):
        tree = str(uuid.uuid4())
        numbers[tree] += 1
        channel.tell(Message(News(AT, {tree: change_of(tree)}, catalogue=False), "c"))
    assert channel.log.since(0).news.changes.keys() == numbers.keys()
    slow.next = 4
    channel.tell(Message(News(AT, {}, catalogue=True), "c"))
    assert (channel.log.first, channel.log.end) == (4, 6)
    assert math.isclose(channel.log.changes, 1)


def test_shortened_log_keeps_the_latest_news():
    log = Log()
    for tree in (trees := uuids(3)):
        news = News(AT, {tree: change_of(tree)}, catalogue=False)
        log = log.extended(Message(news, "c"), 0)
    shorter = log.shortened()
    assert (shorter.first, shorter.end, shorter.changes) == (2, 3, 1)
    assert shorter.since(2).news.changes.keys() == {trees[2]}
    empty = shorter.shortened()
    assert (empty.first, empty.end, empty.changes) == (3, 3, 0)
