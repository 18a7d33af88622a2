# SPDX-License-Identifier: Apache-2.0
"""The threads that run the application, and the requests that wait for them."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from treeclaim.helper_threads import run_guarded, start_helper_thread

Job = Callable[[], None]


class ThreadPool:
    """Daemon threads behind a bounded queue."""

    def __init__(self, threads: int, most_waiting: int) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._guard = threading.Lock()
        self._under_way = 0
        """Jobs that run or wait."""
        self._most = threads + most_waiting
        for number in range(threads):
            start_helper_thread(f"requests-{number}", self._work)

    def offer(self, job: Job) -> bool:
        """Run a job in a thread, or queue it; return False if too many jobs wait."""
        with self._guard:
            if self._under_way >= self._most:
                return False
            self._under_way += 1
        self._jobs.put(job)
        return True

    def proceed(self, job: Job) -> None:
        """Run the remainder of a job that was begun, which is never refused."""
        with self._guard:
            self._under_way += 1
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            # A variable would keep the last job while the thread waits.
            run_guarded("requests", self._jobs.get())
            with self._guard:
                self._under_way -= 1
