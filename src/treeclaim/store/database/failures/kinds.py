# SPDX-License-Identifier: Apache-2.0
"""Classifies the errors of SQLite, PostgreSQL and MariaDB by what they mean for a transaction."""

from enum import Enum

from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from treeclaim.model.errors import StoreUnavailableError


class Failure(Enum):
    """Why the database failed; the value is the text for clients.

    No text of a driver reaches a client: it names hosts, users and statements.
    """

    CONFLICT = "Others changed the same data at the same time."
    LOST = "The connection to the database was lost. Try again."
    LOCK_TIMEOUT = "Another transaction holds what this request needs. Try again."
    STATEMENT_TIMEOUT = "The database took too long. Try again."
    SILENT = "The database does not answer. Try again."
    POOL_TIMEOUT = "No connection to the database was free. Try again."
    DISK_FULL = "The disk of the database is full; nothing was changed."
    REFUSED_VALUE = "The database cannot hold a value of this request."
    OTHER = "The database cannot be used. Try again."


_CONFLICT_MYSQL = {1213, 1020}
"""Deadlock (also Galera's certification failure), record has changed."""

_CONFLICT_POSTGRESQL = {"40001", "40P01"}
"""Serialisation failure, deadlock."""

_LOCK_TIMEOUT_MYSQL = {1205}
"""Lock wait timeout; a Galera node that timed out waiting for commits of other nodes."""

_LOCK_TIMEOUT_POSTGRESQL = {"55P03"}
"""Lock not available: the lock timeout."""

_STATEMENT_TIMEOUT_MYSQL = {1969, 3024}
"""Statement timeout: MariaDB's, MySQL's."""

_STATEMENT_TIMEOUT_POSTGRESQL = {"57014"}
"""A cancelled statement, which is what the timeout does."""

_CONFLICT_SQLITE = {"SQLITE_BUSY_SNAPSHOT"}
"""Rows that were read have changed; only a new transaction helps."""

_STATEMENT_TIMEOUT_SQLITE = {"SQLITE_INTERRUPT"}
"""Interrupted: see `sqlite.extend_timeouts`."""

_DISK_FULL = {1021, 1114, "53100", "SQLITE_FULL"}
"""No room left: MariaDB and MySQL, PostgreSQL, SQLite. The transaction is rolled back."""

_UNFIT_MYSQL = {1047, 1053, 1290, 1836}
"""A Galera node outside of its cluster, a server shutting down, two codes for read-only."""

_UNFIT_POSTGRESQL = {"25006"}
"""A read-only transaction: the server has become a standby."""

INCOMPARABLE_MYSQL = {1267, 1270, 1271, 1300, 3854, 3988}
"""Text outside of the character set of the column it is compared with."""

_UNHOLDABLE_MYSQL = {1366, 1406} | INCOMPARABLE_MYSQL
"""Text outside of the character set of its column, or too long for it."""

_SILENT_MYSQL = {2003, 2013}
"""No connection, or a lost one; the text tells whether it timed out."""
_TIMED_OUT = "timed out"

_SILENT_POSTGRESQL = {"ServerSilentError", "ConnectionTimeout"}
"""Names of classes, so that the driver is not loaded for another database."""

_REFUSED_MYSQL = {1044, 1045, 1049, 1130, 1251, 1698, 2054, 2059}
"""No rights, wrong password, unknown database, a host or login method that is not allowed."""

_REFUSED_POSTGRESQL = (
    "password authentication failed",
    "authentication failed for user",
    "no pg_hba.conf entry",
    "no password supplied",
    "permission denied for database",
    '" does not exist',
)
"""PostgreSQL's words for the same; errors before a session have no code in the library."""


def invalidate_unfit(context: ExceptionContext) -> None:
    """Invalidate connections to a server that refuses to work; the next one may be to a fit server.

    A handler of SQLAlchemy's event `handle_error`.
    """
    original = context.original_exception
    state = getattr(original, "sqlstate", None)
    if number_of(original) in _UNFIT_MYSQL or state in _UNFIT_POSTGRESQL:
        context.is_disconnect = True


def failure_of(error: SQLAlchemyError) -> Failure:
    """Classify an error.

    A broken unique constraint is a conflict: another transaction was first, and its row is visible
    to the next attempt.
    """
    if not isinstance(error, DBAPIError):
        return Failure.POOL_TIMEOUT if isinstance(error, PoolTimeoutError) else Failure.OTHER
    if isinstance(error, IntegrityError):
        return Failure.CONFLICT
    if is_silence(error.orig):
        return Failure.SILENT
    if error.connection_invalidated:
        return Failure.LOST
    is_value = isinstance(error, DataError) or number_of(error.orig) in _UNHOLDABLE_MYSQL
    return Failure.REFUSED_VALUE if is_value else _failure_of_code(error.orig)


def _failure_of_code(error: BaseException | None) -> Failure:
    codes = {
        number_of(error),
        getattr(error, "sqlstate", None),
        getattr(error, "sqlite_errorname", None),
    }
    if codes & (_CONFLICT_MYSQL | _CONFLICT_POSTGRESQL | _CONFLICT_SQLITE):
        return Failure.CONFLICT
    if codes & (_LOCK_TIMEOUT_MYSQL | _LOCK_TIMEOUT_POSTGRESQL):
        return Failure.LOCK_TIMEOUT
    if codes & (
        _STATEMENT_TIMEOUT_MYSQL | _STATEMENT_TIMEOUT_POSTGRESQL | _STATEMENT_TIMEOUT_SQLITE
    ):
        return Failure.STATEMENT_TIMEOUT
    if codes & _DISK_FULL:
        return Failure.DISK_FULL
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
        return Failure.LOCK_TIMEOUT
    return Failure.OTHER


def is_silence(error: BaseException | None) -> bool:
    """Return whether a server did not answer in time; another attempt would wait as long again."""
    if not _SILENT_POSTGRESQL.isdisjoint(kind.__name__ for kind in type(error).__mro__):
        return True
    return number_of(error) in _SILENT_MYSQL and _TIMED_OUT in str(error)


def is_refusal(error: BaseException | None) -> bool:
    """Return whether a server answers, but refuses this user, password or database."""
    if number_of(error) in _REFUSED_MYSQL:
        return True
    text = str(error)
    return "FATAL" in text and any(part in text for part in _REFUSED_POSTGRESQL)


def unavailable(error: SQLAlchemyError) -> StoreUnavailableError:
    """Return the error for clients, with the driver's text as its cause for operators."""
    return StoreUnavailableError(failure_of(error).value, cause=cause_of(error))


def cause_of(error: BaseException) -> str:
    """Return a driver's text on one line, for the log and for operators."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def number_of(error: BaseException | None) -> object:
    """Return the error number, which MariaDB's drivers put first; None if there is none."""
    number = error.args[0] if error is not None and error.args else None
    return number if isinstance(number, int) else None
