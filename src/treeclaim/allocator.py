# SPDX-License-Identifier: Apache-2.0
"""Settings of memory: glibc caches large blocks, and Python collects garbage less often.

An answer of some megabytes needs blocks that are too large for glibc's pools. By default glibc maps each block, which
the kernel fills with zeros page by page, and unmaps it at once. For 1,000 trees of seven providers (2.7 MB) this
took longer than searching, combining and writing together.

By default Python collects garbage after 700 net allocations, which took 4 to 9 % of the time of a group of claims.
Reference counts free nearly all objects of the service.
"""

import ctypes
import gc

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_MAX_ARENAS = -8

_LARGEST_BLOCK = 32 * 1024 * 1024
"""Bytes of the largest cached block: the maximum of glibc."""

_FREE_HEAP = 96 * 1024 * 1024
"""Free bytes that glibc keeps at the end of the heap."""

_COLLECTION_THRESHOLD = 20_000
"""Net allocations between two collections: at most some 6 MB of garbage, and more than a group of claims allocates."""


def cache_large_blocks() -> None:
    """Set the thresholds of glibc; do nothing under another C library.

    All threads share one arena, because only that of the main thread can keep so much. They rarely contend for
    it under Python's global lock.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)
    mallopt(_TRIM_THRESHOLD, _FREE_HEAP)
    mallopt(_MAX_ARENAS, 1)


def collect_garbage_rarely() -> None:
    """Make Python collect garbage less often."""
    gc.set_threshold(_COLLECTION_THRESHOLD)


def trim_heap() -> None:
    """Return free memory to the kernel, after an operation that needed much memory once."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
