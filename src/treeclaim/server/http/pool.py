# SPDX-License-Identifier: Apache-2.0
"""The threads that run the application, and their queue."""

import threading
from collections import deque
from collections.abc import Callable
from typing import cast

from treeclaim.helper_threads import run_guarded, start_helper_thread

Job = Callable[[], None]


class ThreadPool:
    """Daemon threads behind a bounded queue.

    The thread that became idle last gets the next job, since its memory is still in the processor's caches. If all idle
    threads waited at one queue, each job would also wake a second thread in vain.
    """

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._guard = threading.Lock()
        self._idle: list[_IdleThread] = []
        self._waiting_jobs: deque[Job] = deque()
        self._most_waiting = most_waiting
        for number in range(threads):
            start_helper_thread(f"requests-{number}", self._work)

    def offer(self, job: Job) -> bool:
        """Run a job in a thread, or queue it; return False if too many jobs wait."""
        return self._submit(job, self._most_waiting)

    def proceed(self, job: Job) -> None:
        """Run or queue the continuation of a started job, without a bound."""
        self._submit(job, None)

    def _submit(self, job: Job, most_waiting: int | None) -> bool:
        with self._guard:
            if not self._idle:
                if most_waiting is not None and len(self._waiting_jobs) >= most_waiting:
                    return False
                self._waiting_jobs.append(job)
                return True
            thread = self._idle.pop()
        thread.wake_with(job)
        return True

    def _work(self) -> None:
        thread = _IdleThread()
        while True:
            run_guarded("requests", self._next_job(thread))

    def _next_job(self, thread: "_IdleThread") -> Job:
        with self._guard:
            if self._waiting_jobs:
                return self._waiting_jobs.popleft()
            self._idle.append(thread)
        return thread.wait_for_job()


class _IdleThread:
    def __init__(self) -> None:
        self._is_woken = threading.Lock()
        self._is_woken.acquire()
        self._job: Job | None = None

    def wake_with(self, job: Job) -> None:
        self._job = job
        self._is_woken.release()

    def wait_for_job(self) -> Job:
        self._is_woken.acquire()
        job, self._job = self._job, None
        return cast("Job", job)
