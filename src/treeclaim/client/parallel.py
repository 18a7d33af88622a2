# SPDX-License-Identifier: Apache-2.0
"""Parallel calls by a bounded number of threads, which an interruption stops."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

THREADS = 8
"""Requests at once. One process of the service handles four; the others wait there, so that none
of its threads is ever idle."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    threads: int = THREADS,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Result]:
    """Do some work for each item; return the results in the order of the items.

    If it is interrupted, or some work fails, what has not begun is not begun any more.

    Args:
        work: Called in threads.
        items: What to call it with.
        threads: How many at once.
        progress: Told how many are done, and how many there are.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(work, item) for item in items]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            progress(done, len(futures))
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)
