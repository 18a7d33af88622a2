# SPDX-License-Identifier: Apache-2.0
"""Classifies the errors of SQLite, PostgreSQL and MariaDB, and logs outages and recoveries of a database."""

import logging
import threading
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from time import monotonic

from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from treeclaim import metrics
from treeclaim.model.errors import InvalidValueError, StoreUnavailableError, TreeclaimError

_LOG = logging.getLogger(__name__)


class DeadlineError(Exception):
    """The deadline of a transaction has passed, so it begins no further statement."""


class UnknownOutcomeError(Exception):
    """The connection was lost at COMMIT, so the outcome is unknown; the message is the cause."""


TransactionFailure = SQLAlchemyError | DeadlineError | UnknownOutcomeError
TRANSACTION_FAILURES = (SQLAlchemyError, DeadlineError, UnknownOutcomeError)
"""Errors of a transaction that the database causes, not the operation."""


class Failure(Enum):
    """Kinds of failures; the value is the text for clients, because a driver's text names hosts and users."""

    CONFLICT = "Another transaction changed the same data at the same time."
    LOST = "The connection to the database was lost. Try again."
    LOCK_TIMEOUT = "Another transaction holds a lock that this request needs. Try again."
    STATEMENT_TIMEOUT = "The database took too long. Try again."
    SILENT = "The database does not answer. Try again."
    POOL_TIMEOUT = "No connection to the database was free. Try again."
    DISK_FULL = "The disk of the database is full; nothing was changed."
    REFUSED_VALUE = "The database cannot hold a value of this request."
    UNKNOWN_OUTCOME = (
        "The connection to the database was lost at the end of the write: either the whole change was "
        "made or none of it. Check which, and try again."
    )
    OTHER = "The database cannot be used. Try again."


INCOMPARABLE_MYSQL = frozenset({1267, 1270, 1271, 1300, 3854, 3988})
"""Text outside of the character set of the compared column: error numbers."""

_FAILURE_BY_CODE: Mapping[object, Failure] = {
    # Deadlock, or a failed certification of Galera; the record has changed.
    1213: Failure.CONFLICT,
    1020: Failure.CONFLICT,
    # Serialisation failure, deadlock.
    "40001": Failure.CONFLICT,
    "40P01": Failure.CONFLICT,
    # The snapshot is stale; only a new transaction can write.
    "SQLITE_BUSY_SNAPSHOT": Failure.CONFLICT,
    # A lock, or the commits of other Galera nodes.
    1205: Failure.LOCK_TIMEOUT,
    "55P03": Failure.LOCK_TIMEOUT,
    "SQLITE_BUSY": Failure.LOCK_TIMEOUT,
    "SQLITE_BUSY_RECOVERY": Failure.LOCK_TIMEOUT,
    "SQLITE_BUSY_TIMEOUT": Failure.LOCK_TIMEOUT,
    # The statement timeouts of MariaDB, MySQL and PostgreSQL, and `sqlite.extend_timeouts`.
    1969: Failure.STATEMENT_TIMEOUT,
    3024: Failure.STATEMENT_TIMEOUT,
    "57014": Failure.STATEMENT_TIMEOUT,
    "SQLITE_INTERRUPT": Failure.STATEMENT_TIMEOUT,
    1021: Failure.DISK_FULL,
    1114: Failure.DISK_FULL,
    "53100": Failure.DISK_FULL,
    "SQLITE_FULL": Failure.DISK_FULL,
    # Text outside of the character set of its column, or too long for it.
    1366: Failure.REFUSED_VALUE,
    1406: Failure.REFUSED_VALUE,
} | dict.fromkeys(INCOMPARABLE_MYSQL, Failure.REFUSED_VALUE)
"""The meaning of error numbers (MariaDB, MySQL), states (PostgreSQL) and names (SQLite)."""

_FAILURE_BY_CLASS: Mapping[type[Exception], Failure] = {
    PoolTimeoutError: Failure.POOL_TIMEOUT,
    DeadlineError: Failure.STATEMENT_TIMEOUT,
    UnknownOutcomeError: Failure.UNKNOWN_OUTCOME,
}

_UNFIT = {1047, 1053, 1290, 1836, "25006"}
"""Codes of servers that do not accept writes: a Galera node outside of its cluster, a server that shuts down, a
read-only server, a standby of PostgreSQL."""

_SILENT_MYSQL = {2003, 2013}
"""No connection, or a lost connection; after a timeout the message contains `_TIMED_OUT`."""
_TIMED_OUT = "timed out"

_SILENT_POSTGRESQL = {"ServerSilentError", "ConnectionTimeout"}
"""Names of classes, because an import would load the driver."""

_REFUSED_MYSQL = {1044, 1045, 1049, 1130, 1251, 1698, 2054, 2059}
"""Missing rights, wrong password, unknown database, forbidden host or login method."""

_REFUSED_POSTGRESQL = (
    "password authentication failed",
    "authentication failed for user",
    "no pg_hba.conf entry",
    "no password supplied",
    "permission denied for database",
    '" does not exist',
)
"""Texts of PostgreSQL for the same reasons; psycopg has no code for errors before a session."""


def invalidate_unfit(context: ExceptionContext) -> None:
    """Invalidate a connection to an unfit server; a listener of SQLAlchemy's event `handle_error`."""
    if not _UNFIT.isdisjoint(_read_codes(context.original_exception)):
        context.is_disconnect = True


def classify_failure(error: TransactionFailure) -> Failure:
    """Classify an error.

    A violated constraint is a conflict, because the next attempt sees the row of the other transaction.
    """
    if not isinstance(error, DBAPIError):
        return _FAILURE_BY_CLASS.get(type(error), Failure.OTHER)
    if isinstance(error, IntegrityError):
        return Failure.CONFLICT
    if is_silence(error.orig):
        return Failure.SILENT
    if error.connection_invalidated:
        return Failure.LOST
    default = Failure.REFUSED_VALUE if isinstance(error, DataError) else Failure.OTHER
    codes = _read_codes(error.orig)
    return next((_FAILURE_BY_CODE[code] for code in codes if code in _FAILURE_BY_CODE), default)


def _read_codes(error: BaseException | None) -> tuple[object, ...]:
    """Return number, state and name of a driver's error; None for each missing code."""
    return (
        read_error_number(error),
        getattr(error, "sqlstate", None),
        getattr(error, "sqlite_errorname", None),
    )


def is_silence(error: BaseException | None) -> bool:
    """Return whether a server did not respond in time; a retry would wait as long again."""
    if not _SILENT_POSTGRESQL.isdisjoint(kind.__name__ for kind in type(error).__mro__):
        return True
    return read_error_number(error) in _SILENT_MYSQL and _TIMED_OUT in str(error)


def is_refusal(error: BaseException | None) -> bool:
    """Return whether a server refuses the user, password or database."""
    if read_error_number(error) in _REFUSED_MYSQL:
        return True
    text = str(error)
    return "FATAL" in text and any(part in text for part in _REFUSED_POSTGRESQL)


def make_unavailable_error(error: SQLAlchemyError) -> StoreUnavailableError:
    """Return the error for clients, with the driver's text as its cause for operators."""
    return StoreUnavailableError(classify_failure(error).value, cause=describe_cause(error))


def describe_cause(error: BaseException) -> str:
    """Return a driver's text on one line, for the log and for operators."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def read_error_number(error: BaseException | None) -> object:
    """Return the number of an error of MariaDB's drivers; None for other errors."""
    number = error.args[0] if error is not None and error.args else None
    return number if isinstance(number, int) else None


WARNING_INTERVAL = 60.0
"""Seconds between two warnings of one kind by one process."""

_WITHOUT_OUTAGE = {
    Failure.LOCK_TIMEOUT.value,
    Failure.STATEMENT_TIMEOUT.value,
    Failure.POOL_TIMEOUT.value,
}
"""Failures of a database that responds."""


class Outages:
    """Counts and logs failures and outages, and makes the errors of clients; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warned: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._outage: tuple[str, float] | None = None

    def record_failure(self, text: str, cause: str) -> None:
        """Count a failure; log it with the driver's text unless a failure with this fixed text was logged lately."""
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

    def record_success(self) -> None:
        """Record a success; log it if it ends a logged outage."""
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

    def make_client_error(self, error: TransactionFailure) -> TreeclaimError:
        """Count the failure of a transaction, and return the error for its client."""
        failure = classify_failure(error)
        if failure is Failure.REFUSED_VALUE:
            return InvalidValueError(failure.value)
        return self.make_unavailable_error(failure, describe_cause(error))

    def make_unavailable_error(self, failure: Failure, cause: str) -> StoreUnavailableError:
        """Count a failure as `record_failure` does, and return the error for its client."""
        metrics.UNAVAILABLE.inc()
        self.record_failure(failure.value, cause)
        return StoreUnavailableError(failure.value, cause=cause)
