# SPDX-License-Identifier: Apache-2.0
"""Translates failures of the database into errors for clients, and logs them for operators."""

from sqlalchemy.exc import SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.errors import InvalidValueError, StoreUnavailableError, TreeclaimError
from treeclaim.store.database.failures.kinds import Failure, cause_of, failure_of
from treeclaim.store.database.failures.outages import Outages

_UNKNOWN_OUTCOME = (
    "The connection to the database was lost at the end of the change; it was made whole or not "
    "at all. Look, and try again."
)


class Translator:
    """Makes the errors of one process; threads may share it.

    Args:
        outages: Logs the failures.
    """

    def __init__(self, outages: Outages) -> None:
        self._outages = outages

    def refused(self, error: SQLAlchemyError) -> TreeclaimError:
        """Return the error for a client whose statement failed."""
        failure = failure_of(error)
        if failure is Failure.REFUSED_VALUE:
            return InvalidValueError(failure.value)
        return self._unavailable(failure.value, cause_of(error))

    def late(self) -> StoreUnavailableError:
        """Return the error for a client whose transaction has passed its deadline."""
        return self._unavailable(
            Failure.STATEMENT_TIMEOUT.value, "a transaction was not done in its time"
        )

    def unknown_outcome(self, cause: str) -> StoreUnavailableError:
        """Return the error for a client whose write may or may not be committed."""
        return self._unavailable(_UNKNOWN_OUTCOME, cause)

    def _unavailable(self, text: str, cause: str) -> StoreUnavailableError:
        metrics.UNAVAILABLE.inc()
        self._outages.failed(text, cause)
        return StoreUnavailableError(text, cause=cause)
