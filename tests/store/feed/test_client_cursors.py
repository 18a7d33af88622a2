# SPDX-License-Identifier: Apache-2.0
"""Cursors of clients: short texts that identify one commit of each shard."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treeclaim.model.changes import Cursor, UnreadableCursorError, read_cursor, write_cursor
from treeclaim.store.feed.news import load_news

NUMBERS = st.lists(st.integers(0, (1 << 63) - 1), min_size=8, max_size=8).map(tuple)


@given(NUMBERS, NUMBERS)
def test_cursor_text_keeps_all_positions_and_tokens(positions, tokens):
    cursor = Cursor(positions, tokens)
    text = write_cursor(cursor)
    assert read_cursor(text) == cursor
    assert len(text) < 200


@given(st.binary(max_size=300))
def test_other_bytes_are_unreadable_or_a_cursor(content):
    text = base64.urlsafe_b64encode(content).rstrip(b"=").decode()
    try:
        cursor = read_cursor(text)
    except UnreadableCursorError:
        return
    assert write_cursor(cursor) == text


@pytest.mark.parametrize("count", [0, 7, 9])
def test_cursor_of_another_number_of_shards_has_expired(store, count):
    cursor = Cursor((0,) * count, (0,) * count)
    assert store.read(load_news, cursor) is None
    assert store.load_changes(cursor).complete


def test_cursor_of_another_database_has_expired(store):
    present = store.load_cursor()
    for number in range(8):
        tokens = list(present.tokens)
        tokens[number] ^= 1
        cursor = Cursor(present.positions, tuple(tokens))
        assert store.read(load_news, cursor) is None
        assert store.load_changes(cursor).complete
