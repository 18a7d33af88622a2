# SPDX-License-Identifier: Apache-2.0
"""A worker says whether it lives, and whether it answers reads; these are two things."""

import asyncio
import threading

import pytest

from tests.loops import in_a_loop
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.server.http.pool import ThreadPool
from treeclaim.server.processes.heartbeat import Heartbeat, answer_heartbeats
from treeclaim.server.processes.orders import connected_sockets


def beats_of(read, *, busy_threads=0):
    """What the first process learns of a worker that reads so, with two threads of which some are taken."""
    over = threading.Event()

    def hold():
        over.wait()

    async def ask():
        ours, theirs = connected_sockets()
        ours.setblocking(False)
        pool = ThreadPool(2, most_waiting=10)
        for _ in range(busy_threads):
            pool.offer(hold)
        answer_heartbeats(asyncio.get_running_loop(), theirs, read, pool.offer)
        heartbeat = Heartbeat(ours)
        try:
            return [await heartbeat.beats(0.5) for _ in range(2)]
        finally:
            over.set()
            heartbeat.close()
            asyncio.get_running_loop().remove_reader(theirs.fileno())
            theirs.close()

    return in_a_loop(ask)


def fail():
    raise StoreUnavailableError("no inventory")


def test_a_worker_that_reads_lives_and_can_read():
    assert beats_of(lambda: None) == [(True, True)] * 2


@pytest.mark.parametrize(("read", "busy_threads"), [(fail, 0), (lambda: None, 2)])
def test_a_worker_without_inventory_or_threads_lives_and_cannot_read(read, busy_threads):
    assert beats_of(read, busy_threads=busy_threads) == [(True, False)] * 2
