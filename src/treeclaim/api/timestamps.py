# SPDX-License-Identifier: Apache-2.0
"""Times as HTTP writes them."""

import time
from email.utils import formatdate


def now() -> float:
    """Return the present time in seconds since the epoch."""
    return time.time()


def http_date(seconds: float) -> str:
    """Write a time as RFC 1123 has it, in GMT."""
    return formatdate(seconds, usegmt=True)
