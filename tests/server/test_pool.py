# SPDX-License-Identifier: Apache-2.0
"""The threads that run the application, and their queue."""

import threading
import weakref
from functools import partial
from queue import SimpleQueue

from treeclaim.server.http.pool import ThreadPool

SECONDS = 30
"""Timeout of a wait in a test."""


class BlockingJob:
    """A job that blocks its thread until the event `ends` is set."""

    def __init__(self):
        self.begun = threading.Event()
        self.ends = threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.ends.wait(SECONDS)


def test_excess_jobs_wait_in_order_until_the_queue_is_full():
    pool = ThreadPool(2, most_waiting=3)
    blocking_jobs = [BlockingJob(), BlockingJob()]
    for job in blocking_jobs:
        assert pool.offer(job)
        assert job.begun.wait(SECONDS)
    result = SimpleQueue()
    assert [pool.offer(partial(result.put, number)) for number in range(3)] == [True] * 3
    assert not pool.offer(lambda: result.put("one too many"))
    pool.proceed(lambda: result.put("continuation"))
    blocking_jobs[0].ends.set()
    assert [result.get(timeout=SECONDS) for _ in range(4)] == [0, 1, 2, "continuation"]
    blocking_jobs[1].ends.set()


def test_idle_thread_releases_its_last_job():
    pool = ThreadPool(1, most_waiting=1)

    class Job:
        def __call__(self):
            pass

    job = Job()
    reference = weakref.ref(job)
    assert pool.offer(job)
    del job
    # The only thread runs the second job after the first has ended.
    has_run = threading.Event()
    pool.proceed(has_run.set)
    assert has_run.wait(SECONDS)
    assert reference() is None
