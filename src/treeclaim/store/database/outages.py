# SPDX-License-Identifier: Apache-2.0
"""Tells the operator when the database goes and when it comes back, and not at every request."""

import logging
import threading
from collections import Counter
from time import monotonic

from treeclaim.store.database.failures import Trouble

_LOG = logging.getLogger(__name__)

QUIET_SECONDS = 60.0
"""Between two warnings of one kind by one process: enough to see that it goes on, few enough to
read, also where every second request fails."""

_OTHERS_DOING = {Trouble.LOCKED.value, Trouble.SLOW.value, Trouble.BUSY.value}
"""Failures of a database that answers; nothing comes back after them."""


class Outages:
    """What one process knows of its database; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warned: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._gone: tuple[str, float] | None = None

    def failed(self, text: str, cause: str) -> None:
        """Note a failure; warn of the first of its kind, and now and then of those that follow.

        Args:
            text: What clients are told; one of few.
            cause: What the database said.
        """
        now = monotonic()
        with self._lock:
            self._failures[text] += 1
            if now - self._warned.get(text, -QUIET_SECONDS) < QUIET_SECONDS:
                return
            self._warned[text] = now
            failures = self._failures.pop(text)
            if text not in _OTHERS_DOING and self._gone is None:
                self._gone = (text, now)
        _LOG.warning("The database failed (%d x): %s (%s)", failures, text, cause)

    def answered(self) -> None:
        """Note that the database did what it was asked; say so if it was said to have failed."""
        if self._gone is None:
            return
        with self._lock:
            if self._gone is None:
                return
            text, began = self._gone
            failures = 1 + self._failures.pop(text, 0)
            self._gone = None
        seconds = monotonic() - began
        _LOG.warning("The database answers again after %.0f s (%d x: %s)", seconds, failures, text)
