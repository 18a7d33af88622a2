# SPDX-License-Identifier: Apache-2.0
"""Settings of memory: the C library keeps it between answers, Python looks for cycles less often.

An answer of some megabytes is written into blocks that are too large for the C library's own
pools: it fetches each from the kernel, which fills it with zeros page by page, and gives it back at
once. For 1,000 trees of seven providers (2.7 MB) that took more time than the search, combining and
writing together.

Python looks for cycles of objects that nobody else holds whenever 700 more objects are there than
the last time. A group of claims makes and drops so many again and again, and the search for cycles
took 4 to 9 % of its time. Nearly all objects here are in no cycles, and go with their last holder.
"""

import ctypes
import gc

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENAS_MOST = -8

_LARGEST_BLOCK = 32 * 1024 * 1024
"""Bytes of blocks that are kept; it is the most that glibc takes."""

_KEPT = 96 * 1024 * 1024
"""Free bytes that are kept at the end of the heap."""

_MORE_OBJECTS = 20_000
"""Objects in more than the last time, after which Python looks for cycles: at most some 6 MB of what
requests leave behind, and more than a group of claims has at a time."""


def keep_large_blocks() -> None:
    """Set the thresholds of glibc's allocator; do nothing under another C library.

    One arena for all threads, because only that of the main thread can keep as much; Python's own
    lock leaves them little to contend for.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_ARENAS_MOST, 1)


def collect_rarely() -> None:
    """Let Python look for cycles less often."""
    gc.set_threshold(_MORE_OBJECTS)


def give_back() -> None:
    """Return all free memory to the kernel, after an operation that needed much of it once."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
