# SPDX-License-Identifier: Apache-2.0
"""Times as HTTP writes them."""

import time
from email.utils import formatdate

from treeclaim.api.protocol.remembering import remembering_short

_REMEMBERED = 1_024
"""Seconds whose text is kept, of 29 characters each: 100 KiB with their keys."""


def now() -> float:
    """Return the present time in seconds since the epoch."""
    return time.time()


def http_date(seconds: float) -> str:
    """Write a time as RFC 1123 has it, in GMT."""
    return _whole_second(int(seconds))


@remembering_short(_REMEMBERED, 0)
def _whole_second(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
