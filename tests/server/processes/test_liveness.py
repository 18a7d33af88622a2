# SPDX-License-Identifier: Apache-2.0
"""A worker reports its life and its ability to read separately."""

import asyncio
import os
import threading

import pytest

from tests.loops import in_a_loop
from treeclaim.admin import Census
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.server.http.pool import ThreadPool
from treeclaim.server.processes.liveness import Heartbeat, LivenessTable

THIS_PROCESS = [os.getpid()]


def census_of(read, busy_threads):
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


@pytest.mark.parametrize(
    ("read", "busy_threads", "reading"),
    [
        pytest.param(lambda: None, 0, THIS_PROCESS, id="reads"),
        pytest.param(fail, 0, [], id="without inventory"),
        pytest.param(lambda: None, 2, [], id="without threads"),
    ],
)
def test_worker_lives_and_can_read_with_an_inventory_and_a_thread(read, busy_threads, reading):
    assert census_of(read, busy_threads) == Census(THIS_PROCESS, [], reading)


def test_ended_process_is_removed_from_the_census():
    table = LivenessTable(3)
    table.stamp_alive(2)
    assert table.take_census(1) == Census(THIS_PROCESS, [], [])
    table.clear(2)
    assert table.take_census(1) == Census([], [], [])
