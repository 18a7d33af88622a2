# SPDX-License-Identifier: Apache-2.0
"""Logs when the database fails and when it answers again, without a line for every request."""

import logging
import threading
from collections import Counter
from time import monotonic

from treeclaim.store.database.failures.kinds import Failure

_LOG = logging.getLogger(__name__)

WARNING_INTERVAL = 60.0
"""Seconds between two warnings of one kind by one process: enough to see that it continues, few
enough to read, even if every second request fails."""

_WITHOUT_OUTAGE = {
    Failure.LOCK_TIMEOUT.value,
    Failure.STATEMENT_TIMEOUT.value,
    Failure.POOL_TIMEOUT.value,
}
"""Failures of a database that answers; they begin no outage."""


class Outages:
    """Failures and outages as one process sees them; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warned: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._outage: tuple[str, float] | None = None

    def failed(self, text: str, cause: str) -> None:
        """Count a failure; log the first of its kind, and others at intervals.

        Args:
            text: For clients; the value of a `Failure`, or another fixed text.
            cause: Text of the driver.
        """
        now = monotonic()
        with self._lock:
            self._failures[text] += 1
            if now - self._warned.get(text, -WARNING_INTERVAL) < WARNING_INTERVAL:
                return
            self._warned[text] = now
            failures = self._failures.pop(text)
            if text not in _WITHOUT_OUTAGE and self._outage is None:
                self._outage = (text, now)
        _LOG.warning("The database failed (%d x): %s (%s)", failures, text, cause)

    def answered(self) -> None:
        """Record a success; log it if it ends an outage that was logged."""
        if self._outage is None:
            return
        with self._lock:
            if self._outage is None:
                return
            text, began = self._outage
            failures = 1 + self._failures.pop(text, 0)
            self._outage = None
        seconds = monotonic() - began
        _LOG.warning("The database answers again after %.0f s (%d x: %s)", seconds, failures, text)
