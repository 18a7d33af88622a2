# SPDX-License-Identifier: Apache-2.0
"""A worker shows whether it lives, and whether it answers reads; these are two things."""

import asyncio
import os
import threading
import time

import pytest

from tests.loops import in_a_loop
from treeclaim.admin import Census
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.server.http.pool import ThreadPool
from treeclaim.server.processes import liveness
from treeclaim.server.processes.liveness import Heartbeat, LivenessTable

OWN = [os.getpid()]


def census_of(read, *, busy_threads=0):
    """Return the census of a worker that reads so, with two threads of which some are taken."""
    table, is_over = LivenessTable(2), threading.Event()

    def hold():
        is_over.wait()

    async def beat():
        pool = ThreadPool(2, most_waiting=10)
        for _ in range(busy_threads):
            pool.offer(hold)
        Heartbeat(table, 1, read, pool.offer).beat()
        await asyncio.sleep(0.2)

    in_a_loop(beat)
    is_over.set()
    return table.take_census(1)


def fail():
    raise StoreUnavailableError("no inventory")


def test_worker_that_reads_lives_and_can_read():
    assert census_of(lambda: None) == Census(OWN, [], OWN)


@pytest.mark.parametrize(("read", "busy_threads"), [(fail, 0), (lambda: None, 2)])
def test_worker_without_inventory_or_threads_lives_and_cannot_read(read, busy_threads):
    assert census_of(read, busy_threads=busy_threads) == Census(OWN, [], [])


def test_worker_that_writes_no_time_is_silent_and_one_that_ended_is_forgotten(monkeypatch):
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 0.1)
    table = LivenessTable(3)
    assert table.take_census(1) == Census([], [], [])
    table.stamp_alive(2)
    table.stamp_read(2)
    assert table.take_census(1) == Census(OWN, [], OWN)
    time.sleep(0.2)
    assert table.take_census(1) == Census([], OWN, [])
    table.clear(2)
    assert table.take_census(1) == Census([], [], [])
