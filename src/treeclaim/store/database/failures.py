# SPDX-License-Identifier: Apache-2.0
"""What the errors of SQLite, PostgreSQL and MariaDB mean for a transaction."""

from enum import Enum

import psycopg
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.postgresql import ServerSilentError


class Trouble(Enum):
    """Why the database did not do what it was asked; the value is what clients are told.

    Nothing of a driver's own words reaches a client: they name hosts, users and statements.
    """

    MET = "Others changed the same data at the same time."
    LOST = "The connection to the database was lost. Try again."
    LOCKED = "Another transaction holds what this request needs. Try again."
    SLOW = "The database took too long. Try again."
    SILENT = "The database does not answer. Try again."
    BUSY = "No connection to the database was free. Try again."
    FULL = "The disk of the database is full; nothing was changed."
    REFUSED_VALUE = "The database cannot hold a value of this request."
    OTHER = "The database cannot be used. Try again."


_MET_MYSQL = {1213, 1020}
"""Deadlock (also Galera's certification failure), record has changed."""

_MET_POSTGRESQL = {"40001", "40P01"}
"""Serialisation failure, deadlock."""

_LOCKED_MYSQL = {1205}
"""Lock wait timeout; a Galera node that waited in vain for what others have committed."""

_LOCKED_POSTGRESQL = {"55P03"}
"""Lock not available: the limit of waiting for locks."""

_SLOW_MYSQL = {1969, 3024}
"""The limits of a statement: MariaDB's, MySQL's."""

_SLOW_POSTGRESQL = {"57014"}
"""A cancelled statement, which is what its limit does."""

_MET_SQLITE = {"SQLITE_BUSY_SNAPSHOT"}
"""What was read has changed; waiting does not help, beginning anew does."""

_FULL = {1021, 1114, "53100", "SQLITE_FULL"}
"""No room left: MariaDB and MySQL, PostgreSQL, SQLite. The transaction is rolled back."""

_UNFIT_MYSQL = {1047, 1053, 1290, 1836}
"""A Galera node outside of the cluster, a server shutting down, two ways to say read-only."""

_UNFIT_POSTGRESQL = {"25006"}
"""A read-only transaction: the server has become a standby."""

INCOMPARABLE_MYSQL = {1267, 1270, 1271, 1300, 3854, 3988}
"""Text that is not in the character set of the columns it is compared with."""

_UNHOLDABLE_MYSQL = {1366, 1406} | INCOMPARABLE_MYSQL
"""Text that is not in the character set of its column, or is too long for it."""

_SILENT_MYSQL = {2003, 2013}
"""No connection, or a lost one; the text tells whether it was waited for in vain."""
_TIMED_OUT = "timed out"

_REFUSED_MYSQL = {1044, 1045, 1049, 1130, 1251, 1698, 2054, 2059}
"""No rights, wrong password, unknown database, a host or a way to log in that is not allowed."""

_REFUSED_POSTGRESQL = (
    "password authentication failed",
    "authentication failed for user",
    "no pg_hba.conf entry",
    "no password supplied",
    "permission denied for database",
    '" does not exist',
)
"""How PostgreSQL words the same; the library has no code for what comes before a session."""


def give_up_unfit(context: ExceptionContext) -> None:
    """Treat a server that refuses its work as lost, so that the next one is another, or fit."""
    original = context.original_exception
    state = getattr(original, "sqlstate", None)
    if number_of(original) in _UNFIT_MYSQL or state in _UNFIT_POSTGRESQL:
        context.is_disconnect = True


def trouble_of(error: SQLAlchemyError) -> Trouble:
    """Tell what an error means.

    A broken uniqueness counts as meeting others: they were first, and what they wrote is seen now.
    """
    if not isinstance(error, DBAPIError):
        return Trouble.BUSY if isinstance(error, PoolTimeoutError) else Trouble.OTHER
    if isinstance(error, IntegrityError):
        return Trouble.MET
    if is_silence(error.orig):
        return Trouble.SILENT
    if error.connection_invalidated:
        return Trouble.LOST
    is_value = isinstance(error, DataError) or number_of(error.orig) in _UNHOLDABLE_MYSQL
    return Trouble.REFUSED_VALUE if is_value else _of_code(error.orig)


def _of_code(error: BaseException | None) -> Trouble:
    codes = {
        number_of(error),
        getattr(error, "sqlstate", None),
        getattr(error, "sqlite_errorname", None),
    }
    if codes & (_MET_MYSQL | _MET_POSTGRESQL | _MET_SQLITE):
        return Trouble.MET
    if codes & (_LOCKED_MYSQL | _LOCKED_POSTGRESQL):
        return Trouble.LOCKED
    if codes & (_SLOW_MYSQL | _SLOW_POSTGRESQL):
        return Trouble.SLOW
    if codes & _FULL:
        return Trouble.FULL
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
        return Trouble.LOCKED
    return Trouble.OTHER


def is_silence(error: BaseException | None) -> bool:
    """Tell whether a server was waited for in vain; another attempt would wait as long again."""
    if isinstance(error, (ServerSilentError, psycopg.errors.ConnectionTimeout)):
        return True
    return number_of(error) in _SILENT_MYSQL and _TIMED_OUT in str(error)


def is_refusal(error: BaseException | None) -> bool:
    """Tell whether a server is there and lets nobody in with this user and this database."""
    if number_of(error) in _REFUSED_MYSQL:
        return True
    text = str(error)
    return "FATAL" in text and any(part in text for part in _REFUSED_POSTGRESQL)


def unavailable(error: SQLAlchemyError) -> StoreUnavailableError:
    """Say in the model's words that the database did not do what it was asked."""
    return StoreUnavailableError(trouble_of(error).value, cause=cause_of(error))


def cause_of(error: BaseException) -> str:
    """Return what a driver said, on one line, for the log and for operators."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def number_of(error: BaseException | None) -> object:
    """Return what MariaDB's drivers put first: the number of the error."""
    found = error.args[0] if error is not None and error.args else None
    return found if isinstance(found, int) else None
