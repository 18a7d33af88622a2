# SPDX-License-Identifier: Apache-2.0
"""The threads that run the application, and the requests that wait for them."""

import threading
from collections import deque
from collections.abc import Callable
from typing import cast

from treeclaim.helper_threads import run_guarded, start_helper_thread

Job = Callable[[], None]
"""What a thread does."""


class ThreadPool:
    """Some threads and a bounded queue before them.

    A job goes to the thread that was idle last: what a request touches is still in its core's
    caches, and the others sleep on. A queue that all idle threads wait at would wake them in turn,
    and a second one for each job, which finds that the queue is empty.

    Threads are daemons: a process that has waited long enough for its answers ends without them.
    """

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._guard = threading.Lock()
        self._idle: list[_Idle] = []
        self._waiting: deque[Job] = deque()
        self._most_waiting = most_waiting
        for number in range(threads):
            start_helper_thread(f"requests-{number}", self._work)

    def offer(self, job: Job) -> bool:
        """Give a job to a thread, or queue it; return False if too many jobs wait already."""
        return self._give(job, self._most_waiting)

    def proceed(self, job: Job) -> None:
        """Do the same with the rest of a job that was begun; it is never refused."""
        self._give(job, None)

    def _give(self, job: Job, most_waiting: int | None) -> bool:
        with self._guard:
            if not self._idle:
                if most_waiting is not None and len(self._waiting) >= most_waiting:
                    return False
                self._waiting.append(job)
                return True
            thread = self._idle.pop()
        thread.wake_with(job)
        return True

    def _work(self) -> None:
        this = _Idle()
        while True:
            run_guarded("requests", self._next_job(this))

    def _next_job(self, this: "_Idle") -> Job:
        """Return the job that has waited longest, or wait for one."""
        with self._guard:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(this)
        return this.job()


class _Idle:
    """A thread that waits for a job."""

    def __init__(self) -> None:
        self._woken = threading.Lock()
        self._woken.acquire()
        self._job: Job | None = None

    def wake_with(self, job: Job) -> None:
        """Give it a job, once for each wait."""
        self._job = job
        self._woken.release()

    def job(self) -> Job:
        """Wait for a job; nothing of it is kept here."""
        self._woken.acquire()
        job, self._job = self._job, None
        return cast("Job", job)
