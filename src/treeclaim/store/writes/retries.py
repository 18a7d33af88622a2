# SPDX-License-Identifier: Apache-2.0
"""The retry loop of all writes."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.errors import ConcurrentChangeError
from treeclaim.model.timing import has_passed
from treeclaim.store.database.failures import Failure, classify_failure
from treeclaim.store.database.transactions import (
    PrerequisiteError,
    RetryTransactionError,
    WriteTransaction,
)

Result = TypeVar("Result")

ATTEMPTS = 12
"""Attempts of one write. Their pauses, which double, add up to about a second."""

_FIRST_PAUSE = 0.005
"""Seconds at most before the second attempt: about one transaction."""

_LONGEST_PAUSE = 0.25
"""Seconds at most before any attempt."""


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """The bounds of the attempts of one write; the event `closing` ends pauses."""

    attempts: int
    deadline: float
    closing: threading.Event


def run_with_retries(
    attempt: Callable[[], Result],
    budget: RetryBudget,
    write_first: Callable[[Callable[[WriteTransaction], None]], None],
) -> Result:
    """Run attempts of a write until one succeeds, one fails permanently, or the budget is spent.

    An attempt is repeated after a conflict with other transactions, and after a connection lost before COMMIT,
    because the transaction is rolled back then. `write_first` commits the prerequisite of an attempt.

    Raises:
        ConcurrentChangeError: if the last attempt failed by a conflict.
        SQLAlchemyError: if the last attempt lost its connection; any other failure of the database.
        Exception: any other error of the attempt.
    """
    pause = _FIRST_PAUSE
    remaining_attempts = budget.attempts
    while True:
        try:
            return attempt()
        except PrerequisiteError as error:
            write_first(error.prerequisite)
            continue
        except (RetryTransactionError, SQLAlchemyError) as error:
            is_lost = _is_lost(error)
            remaining_attempts -= 1
            if remaining_attempts <= 0 or has_passed(budget.deadline):
                if is_lost:
                    raise
                raise ConcurrentChangeError from error
        metrics.RETRIES.inc()
        # Jitter, so that attempts do not collide again.
        budget.closing.wait(pause * random.random())  # noqa: S311
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_lost(error: RetryTransactionError | SQLAlchemyError) -> bool:
    """Return whether a connection was lost; False for a conflict.

    Raises:
        SQLAlchemyError: the error itself, if another attempt does not help.
    """
    if isinstance(error, RetryTransactionError):
        return False
    failure = classify_failure(error)
    if failure not in {Failure.CONFLICT, Failure.LOST}:
        raise error
    return failure is Failure.LOST
