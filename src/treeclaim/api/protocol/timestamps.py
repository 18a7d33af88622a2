# SPDX-License-Identifier: Apache-2.0
"""Times as HTTP writes them."""

import time
from email.utils import formatdate
from functools import lru_cache


def now() -> float:
    """Return the present time in seconds since the epoch."""
    return time.time()


def http_date(seconds: float) -> str:
    """Write a time as RFC 1123 has it, in GMT."""
    return _whole_second(int(seconds))


@lru_cache(maxsize=1024)
def _whole_second(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
