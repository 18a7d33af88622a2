# SPDX-License-Identifier: Apache-2.0
"""A writer that stops before its COMMIT holds one shard of the feed, and other writers use the others."""

import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psutil
import pytest

from tests.databases import EACH_SERVER, empty_database
from tests.servers import eventually
from tests.service import schema_on
from tests.store.feed.worlds_of_readers import Reader
from tests.store.hosts import create_host, make_claim
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.feed import shards
from treeclaim.store.schema.tables import SHARDS

THREADS = 8
WRITES = 400
P99_SECONDS = 1.5
"""Beyond what a write takes anyhow on this machine."""

STOPPED_WRITER = """
import os, signal, sys
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.writes import commit

commit_at_once = commit._commit

def stop_first(*arguments):
    os.kill(os.getpid(), signal.SIGSTOP)
    commit_at_once(*arguments)

commit._commit = stop_first
Store(DatabaseSettings(sys.argv[1])).write(lambda transaction: transaction.touch_catalogue())
print("committed", flush=True)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(params=EACH_SERVER)
def url(request, tmp_path):
    with empty_database(request.param, tmp_path) as made:
        schema_on(made)
        yield made


def find_held_shard(store):
    """Return the shard whose row another session has locked."""
    with store.engine.connect() as connection:
        free = connection.exec_driver_sql(
            "SELECT shard FROM treeclaim_feed_shards FOR UPDATE SKIP LOCKED"
        )
        (held,) = set(range(SHARDS)) - set(free.scalars())
        connection.rollback()
    return held


@contextmanager
def stopped_writer(url):
    """A process that has advanced a shard, and was stopped by SIGSTOP before its COMMIT."""
    command = [sys.executable, "-c", STOPPED_WRITER, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        process = psutil.Process(writer.pid)
        try:
            eventually(lambda: process.status() == psutil.STATUS_STOPPED, "the writer stopped")
            yield writer
        finally:
            writer.kill()


def test_stopped_writer_delays_few_other_writes(url):
    with closing(Store(DatabaseSettings(url))) as store:
        hosts = [create_host(store, 1000) for _ in range(THREADS)]
        reader = Reader(store)
        reader.catch_up()

        def claim(number):
            began = time.monotonic()
            store.replace_allocations(
                [make_claim(str(uuid.uuid4()), {hosts[number % THREADS]: 1})]
            )
            return time.monotonic() - began

        def p99(pool):
            return sorted(pool.map(claim, range(WRITES)))[int(0.99 * WRITES)]

        with ThreadPoolExecutor(THREADS) as pool:
            undisturbed = p99(pool)
            with stopped_writer(url):
                assert p99(pool) < P99_SECONDS + undisturbed
                assert not reader.catch_up()
                used = sum(
                    stock.used
                    for record in reader.forest.records()
                    for stock in record.inventories
                )
                assert used == 2 * WRITES


def test_write_waits_for_no_stopped_shard_twice(url, monkeypatch):
    """The first draw is the shard of the stopped writer."""
    with closing(Store(DatabaseSettings(url))) as store:
        before = store.cursor()
        with stopped_writer(url) as writer:
            held = find_held_shard(store)
            draws = []
            draw = shards.ShardChoice.draw

            def draw_held(choice, connection):
                free = draw(choice, connection)
                draws.append(held if not draws else free)
                return draws[-1]

            monkeypatch.setattr(shards.ShardChoice, "draw", draw_held)
            create_host(store)
            assert len(draws) == 2
            for _ in range(20):
                create_host(store)
            assert draws.count(held) == 1
            writer.send_signal(signal.SIGCONT)
            assert b"committed" in writer.stdout.readline()
        after = store.cursor()
        assert sum(after.positions) == sum(before.positions) + 22
