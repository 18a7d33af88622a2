# SPDX-License-Identifier: Apache-2.0
"""Cursors as clients have them are at most 4 kB long, and good, however many streams there are."""

from contextlib import closing

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from tests.store.hosts import create_host
from treeclaim.model.changes import Cursor
from treeclaim.model.extension import cursor_text
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.feed import pruning
from treeclaim.store.feed.news import load_news
from treeclaim.store.feed.streams import StreamPool
from treeclaim.store.feed.unread import load_cursor
from treeclaim.store.housekeeping import KEEP
from treeclaim.store.schema.tables import streams

MANY = 420
"""Streams; 340 of them have room in a text with 40 bits of each identity."""


def write_as_a_new_process(store):
    """Create a provider by a process that has no stream yet; return the provider's uuid."""
    store._committer._streams = StreamPool()
    return create_host(store)


def open_streams(store):
    """Return how many streams are open."""
    is_open = sa.and_(streams.c.closed_in.is_(None), streams.c.epoch.is_(None))
    with store.engine.connect() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(streams).where(is_open))


def present_text(store):
    """The present cursor as a client has it."""
    text = cursor_text.write_cursor(store.read(load_cursor))
    assert len(text) <= cursor_text.LONGEST
    return text


def told_since(store, text):
    """The providers that changed since a client's cursor; None if it has expired."""
    news = store.read(load_news, cursor_text.read(text))
    return None if news is None else set(news.changes)


@pytest.mark.slow
def test_pruning_closes_least_used_streams_to_keep_cursors_short(store):
    store.housekeeper.prune(KEEP)
    for _ in range(MANY):
        write_as_a_new_process(store)
    assert open_streams(store) > MANY
    before = present_text(store)
    assert told_since(store, before) == set()
    first = create_host(store)
    store.housekeeper.prune(KEEP)
    assert open_streams(store) == pruning.MOST_OPEN
    # A cursor that names streams as open which were closed meanwhile is as good as before.
    assert told_since(store, before) == {first}
    second = write_as_a_new_process(store)
    assert told_since(store, before) == {first, second}
    between = present_text(store)
    third = create_host(store)
    assert told_since(store, between) == {third}


def test_writer_with_closed_stream_opens_another_and_is_read(store, monkeypatch):
    store.housekeeper.prune(KEEP)
    monkeypatch.setattr(pruning, "MOST_OPEN", 0)
    create_host(store)
    text = present_text(store)
    store.housekeeper.prune(KEEP)
    assert open_streams(store) == 0
    written = create_host(store)
    assert told_since(store, text) == {written}
    assert open_streams(store) == 1


def test_removed_stream_costs_no_attempt(store, database_url):
    with closing(Store(DatabaseSettings(database_url), attempts=1)) as ended_store:
        for _ in range(3):
            create_host(ended_store)
            with store.engine.begin() as connection:
                connection.execute(sa.delete(streams).where(streams.c.epoch.is_(None)))


def test_cursor_with_too_many_streams_expires_at_once(store):
    crowd = Cursor({number << 20: 1 for number in range(1, 2_000)}, None, frozenset())
    text = cursor_text.write_cursor(crowd)
    assert len(text) <= cursor_text.LONGEST
    assert told_since(store, text) is None


@given(
    st.dictionaries(st.integers(1 << 32, (1 << 63) - 1), st.integers(0, 1 << 40), max_size=500),
    st.integers(1, (1 << 63) - 1),
)
@pytest.mark.parametrize("finished", [0, 2])
def test_cursor_text_keeps_positions_of_open_streams(finished, positions, epoch):
    closed = frozenset(list(positions)[:finished])
    result = cursor_text.read(cursor_text.write_cursor(Cursor(positions, epoch, closed)))
    # A text has both of two identities that it cannot distinguish; its reader refuses them.
    opened = sorted(positions.keys() - closed)
    expected = {result.short(stream): positions[stream] for stream in opened}
    if result.epoch is not None:
        assert (result.epoch, dict(result.positions)) == (epoch, expected)
    else:
        # No room: it has expired.
        assert len(positions) > 300
        assert not result.positions
