# SPDX-License-Identifier: Apache-2.0
"""The threads that run the application, and the requests that wait for them."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

Job = Callable[[], None]
"""What a thread does; it never raises."""


class ThreadPool:
    """Some threads and a bounded queue before them.

    Threads are daemons: a process that has waited long enough for its answers ends without them.
    """

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._most_waiting = most_waiting
        for number in range(threads):
            threading.Thread(target=self._work, name=f"requests-{number}", daemon=True).start()

    def offer(self, job: Job) -> bool:
        """Queue a job; return False if too many jobs wait already."""
        if self._jobs.qsize() >= self._most_waiting:
            return False
        self._jobs.put(job)
        return True

    def proceed(self, job: Job) -> None:
        """Queue the rest of a job that was begun; it is never refused."""
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()
