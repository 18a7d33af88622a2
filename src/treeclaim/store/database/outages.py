# SPDX-License-Identifier: Apache-2.0
"""Tells the operator when the database goes and when it comes back, and not at every request."""

import logging
import threading
from time import monotonic

_LOG = logging.getLogger(__name__)

QUIET_SECONDS = 60.0
"""Between two warnings of the same process: enough to see that it goes on, few enough to read."""


class Outages:
    """What one process knows of its database; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began: float | None = None
        self._warned = 0.0
        self._failures = 0

    def failed(self, text: str, cause: str) -> None:
        """Note a failure; warn of the first one, and now and then of those that follow.

        Args:
            text: What clients are told.
            cause: What the database said.
        """
        now = monotonic()
        with self._lock:
            self._failures += 1
            if self._began is None:
                self._began = now
            elif now - self._warned < QUIET_SECONDS:
                return
            self._warned = now
            failures, seconds = self._failures, now - self._began
        if failures == 1:
            _LOG.warning("The database failed: %s (%s)", text, cause)
        else:
            _LOG.warning(
                "The database has failed %d times in %.0f s, the last time: %s (%s)",
                failures,
                seconds,
                text,
                cause,
            )

    def answered(self) -> None:
        """Note that the database did what it was asked; say so if it had failed before."""
        if self._began is None:
            return
        with self._lock:
            if self._began is None:
                return
            failures, seconds = self._failures, monotonic() - self._began
            self._began, self._failures = None, 0
        _LOG.warning("The database answers again after %.0f s and %d failures", seconds, failures)
