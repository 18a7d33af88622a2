# SPDX-License-Identifier: Apache-2.0
"""Pruning deletes old rows in batches, and never fails a concurrent write."""

import subprocess
import sys
from contextlib import closing
from datetime import timedelta

import pytest
import sqlalchemy as sa

from treeclaim.store import DatabaseSettings, Store, housekeeping
from treeclaim.store.feed import shards
from treeclaim.store.schema.tables import SHARDS, feed, feed_shards

EVERYTHING = timedelta(seconds=-1)


def rows_of(store, table):
    with store.engine.connect() as connection:
        return connection.execute(sa.select(table)).all()


@pytest.fixture
def deletions(store, monkeypatch):
    """The number of rows that each statement deletes from the feed, with small batches and one shard."""
    monkeypatch.setattr(shards.ShardChoice, "draw", lambda *_: 5)
    monkeypatch.setattr(housekeeping, "_ROWS_PER_TRANSACTION", 5)
    statements = []

    def note(_connection, cursor, statement, *_):
        if statement.startswith("DELETE FROM treeclaim_feed") and cursor.rowcount:
            statements.append(cursor.rowcount)

    sa.event.listen(store.engine, "after_cursor_execute", note)
    return statements


@pytest.mark.parametrize(
    ("commits", "batches"),
    [([1] * 23, [5, 5, 5, 5, 3]), ([3, 12, 1], [15, 1])],
    ids=["many commits", "a large commit in one batch"],
)
def test_feed_is_pruned_in_batches(store, deletions, commits, batches):
    store.housekeeper.prune(EVERYTHING)
    deletions.clear()
    for count in commits:
        store.write(
            lambda transaction, count=count: transaction.touch_providers(range(1, count + 1))
        )
    assert store.housekeeper.prune(EVERYTHING) == sum(commits)
    assert deletions == batches
    assert rows_of(store, feed) == []


def test_recent_rows_are_not_pruned(store):
    before = len(rows_of(store, feed))
    assert store.housekeeper.prune(timedelta(hours=1)) == 0
    assert len(rows_of(store, feed)) == before
    assert [row.pruned_to for row in rows_of(store, feed_shards)] == [0] * SHARDS


def test_failed_pruning_is_retried(store, database_url):
    with closing(Store(DatabaseSettings(database_url))) as busy:
        with busy.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE treeclaim_feed")
        assert busy.housekeeper.prune_in_background() > 0


DRAW = """
import os
from treeclaim.store.schema.tables import draw_token
os.fork()
os.write(1, f"{draw_token()}\\n".encode())
"""


@pytest.mark.slow
def test_tokens_differ_between_processes_and_after_a_fork():
    tokens = []
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-c", DRAW], check=True, capture_output=True, text=True
        )
        tokens += [int(line) for line in result.stdout.split()]
    assert len(tokens) == len(set(tokens)) == 4
    assert all(0 <= token < 1 << 63 for token in tokens)
