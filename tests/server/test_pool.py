# SPDX-License-Identifier: Apache-2.0
"""The threads that run the application, and the queue before them."""

import threading
import weakref
from functools import partial
from queue import SimpleQueue

from treeclaim.server.http.pool import ThreadPool

SECONDS = 30
"""For which a test waits at most; it fails then."""


class Holding:
    """A job that holds its thread until released."""

    def __init__(self):
        self.begun = threading.Event()
        self.ends = threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.ends.wait(SECONDS)


def test_jobs_beyond_the_threads_wait_in_order_and_beyond_the_queue_are_refused():
    pool = ThreadPool(2, most_waiting=3)
    holding = [Holding(), Holding()]
    for job in holding:
        assert pool.offer(job)
        assert job.begun.wait(SECONDS)
    result = SimpleQueue()
    assert [pool.offer(partial(result.put, number)) for number in range(3)] == [True] * 3
    assert not pool.offer(lambda: result.put("one too many"))
    pool.proceed(lambda: result.put("the rest of another"))
    holding[0].ends.set()
    assert [result.get(timeout=SECONDS) for _ in range(4)] == [0, 1, 2, "the rest of another"]
    holding[1].ends.set()


def test_idle_thread_releases_its_last_job():
    pool = ThreadPool(1, most_waiting=1)
    kept = []

    class Job:
        def __call__(self):
            pass

    job = Job()
    kept.append(weakref.ref(job))
    assert pool.offer(job)
    del job
    # There is one thread: when the second job runs, the first is over.
    over = threading.Event()
    pool.proceed(over.set)
    assert over.wait(SECONDS)
    assert kept[0]() is None
