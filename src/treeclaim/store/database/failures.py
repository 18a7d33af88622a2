# SPDX-License-Identifier: Apache-2.0
"""What the errors of SQLite, PostgreSQL and MariaDB mean for a transaction."""

from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

_RETRYABLE_MYSQL = {1205, 1213, 1020}
"""Lock wait timeout, deadlock (also Galera's certification failure), record has changed."""

_RETRYABLE_POSTGRESQL = {"40001", "40P01", "55P03"}
"""Serialisation failure, deadlock, lock not available."""

_UNFIT_MYSQL = {1047, 1053, 1290, 1836}
"""A Galera node outside of the cluster, a server shutting down, two ways to say read-only."""

_UNFIT_POSTGRESQL = {"25006"}
"""A read-only transaction: the server has become a standby."""

_MYSQL_INCORRECT_STRING = 1366


def give_up_unfit(context: ExceptionContext) -> None:
    """Treat a server that refuses its work as lost, so that the next one is another, or fit."""
    original = context.original_exception
    state = getattr(original, "sqlstate", None)
    if _number(original) in _UNFIT_MYSQL or state in _UNFIT_POSTGRESQL:
        context.is_disconnect = True


def is_refused_value(error: DBAPIError) -> bool:
    """Tell whether the database cannot hold a value, such as a text with a NUL character."""
    return isinstance(error, DataError) or _number(error.orig) == _MYSQL_INCORRECT_STRING


def is_retryable(error: DBAPIError) -> bool:
    """Tell whether the same transaction may succeed if it is run again.

    A broken uniqueness counts: another transaction was first, and what it wrote is seen now.
    """
    if isinstance(error, IntegrityError):
        return True
    original = error.orig
    if getattr(original, "sqlstate", None) in _RETRYABLE_POSTGRESQL:
        return True
    if _number(original) in _RETRYABLE_MYSQL:
        return True
    return getattr(original, "sqlite_errorname", "").startswith("SQLITE_BUSY")


def _number(error: BaseException | None) -> object:
    """Return what MariaDB's drivers put first: the number of the error."""
    return error.args[0] if error is not None and error.args else None
