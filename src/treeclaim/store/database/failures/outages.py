# SPDX-License-Identifier: Apache-2.0
"""Errors for clients whose database failed; the log says when it fails and answers again, without a line for each."""

import logging
import threading
from collections import Counter
from time import monotonic

from sqlalchemy.exc import SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.errors import InvalidValueError, StoreUnavailableError, TreeclaimError
from treeclaim.store.database.failures.kinds import Failure, cause_of, failure_of

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


_UNKNOWN_OUTCOME = (
    "The connection to the database was lost at the end of the change; it was made whole or not "
    "at all. Look, and try again."
)


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

    def refused(self, error: SQLAlchemyError) -> TreeclaimError:
        """Return the error for a client whose statement failed."""
        failure = failure_of(error)
        if failure is Failure.REFUSED_VALUE:
            return InvalidValueError(failure.value)
        return self.unavailable(failure.value, cause_of(error))

    def late(self) -> StoreUnavailableError:
        """Return the error for a client whose transaction has passed its deadline."""
        return self.unavailable(
            Failure.STATEMENT_TIMEOUT.value, "a transaction was not done in its time"
        )

    def unknown_outcome(self, cause: str) -> StoreUnavailableError:
        """Return the error for a client whose write may or may not be committed."""
        return self.unavailable(_UNKNOWN_OUTCOME, cause)

    def unavailable(self, text: str, cause: str) -> StoreUnavailableError:
        """Count a failure as `failed` does, and return the error for a client."""
        metrics.UNAVAILABLE.inc()
        self.failed(text, cause)
        return StoreUnavailableError(text, cause=cause)
