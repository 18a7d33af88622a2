# SPDX-License-Identifier: Apache-2.0
"""A writer that is stopped before its COMMIT blocks one shard of the feed; other writers use the other shards."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest

from tests.databases import EACH_SERVER
from tests.servers import eventually
from tests.store.feed.worlds_of_readers import Reader
from tests.store.hosts import create_host
from treeclaim.store.feed import shards
from treeclaim.store.schema.tables import SHARDS

STOPPED_WRITER = """
import os, signal, sys
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.writes import writer

commit_at_once = writer._commit

def stop_first(*arguments):
    os.kill(os.getpid(), signal.SIGSTOP)
    commit_at_once(*arguments)

writer._commit = stop_first
Store(DatabaseSettings(sys.argv[1])).write(lambda transaction: transaction.touch_catalogue())
print("committed", flush=True)
"""


def find_held_shard(store):
    """Return the shard whose row another session has locked."""
    with store.engine.connect() as connection:
        free_shards = connection.exec_driver_sql(
            "SELECT shard FROM treeclaim_feed_shards FOR UPDATE SKIP LOCKED"
        )
        (held_shard,) = set(range(SHARDS)) - set(free_shards.scalars())
        connection.rollback()
    return held_shard


@contextmanager
def stopped_writer(url):
    """Yield a process that has advanced a shard, and is stopped by SIGSTOP before its COMMIT."""
    command = [sys.executable, "-c", STOPPED_WRITER, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        process = psutil.Process(writer.pid)
        try:
            eventually(lambda: process.status() == psutil.STATUS_STOPPED, "the writer stopped")
            yield writer
        finally:
            writer.kill()


@pytest.mark.slow
@pytest.mark.parametrize("database_kind", EACH_SERVER, indirect=True)
def test_write_waits_only_once_for_the_shard_of_a_stopped_writer(store, database_url, monkeypatch):
    """The first draw is the shard of the stopped writer."""
    reader = Reader(store)
    reader.catch_up()
    before = store.load_cursor()
    with stopped_writer(database_url) as writer:
        held_shard = find_held_shard(store)
        draws = []
        draw = shards.ShardChoice.draw

        def draw_held(choice, connection):
            free_shard = draw(choice, connection)
            draws.append(held_shard if not draws else free_shard)
            return draws[-1]

        monkeypatch.setattr(shards.ShardChoice, "draw", draw_held)
        hosts = [create_host(store)]
        assert len(draws) == 2
        hosts += [create_host(store) for _ in range(20)]
        assert draws.count(held_shard) == 1
        assert not reader.catch_up()
        assert {record.uuid for record in reader.forest.records()} == set(hosts)
        writer.send_signal(signal.SIGCONT)
        assert b"committed" in writer.stdout.readline()
    after = store.load_cursor()
    assert sum(after.positions) == sum(before.positions) + 22
