# SPDX-License-Identifier: Apache-2.0
"""Runs a write, with its rows of the change feed, in transactions until one is committed."""

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine, Transaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.errors import ConcurrentChangeError
from treeclaim.model.timing import (
    COMMIT,
    HAND_OVER,
    LOCKS,
    STATEMENTS,
    WAIT,
    Stages,
    has_passed,
)
from treeclaim.store.database.engine import lend_connection
from treeclaim.store.database.failures import (
    Failure,
    UnknownOutcomeError,
    classify_failure,
    describe_cause,
)
from treeclaim.store.database.systems import get_system
from treeclaim.store.database.transactions import (
    PrerequisiteError,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.feed import shards as feed

Result = TypeVar("Result")

ATTEMPTS = 12
"""Attempts of one write. Their pauses, which double, add up to about a second."""

_FIRST_PAUSE = 0.005
"""Maximum seconds before the second attempt: about the duration of a transaction."""

_LONGEST_PAUSE = 0.25
"""Maximum seconds before any attempt."""


class Writer:
    """Runs operations in transactions of an engine; thread-safe.

    `closing` ends pauses when set; `write_first` commits the prerequisite of an operation.
    """

    def __init__(
        self,
        engine: Engine,
        shards: feed.ShardChoice,
        attempts: int,
        closing: threading.Event,
        write_first: Callable[[Callable[[WriteTransaction], None]], None],
    ) -> None:
        self._engine = get_system(engine).for_writing(engine)
        self._shards = shards
        self._attempts = attempts
        self._closing = closing
        self._write_first = write_first

    def run(
        self, deadline: float, stages: Stages, operation: Callable[[WriteTransaction], Result]
    ) -> Result:
        """Run an operation, append its changes to the feed, and commit.

        It retries after a conflict, a connection lost before COMMIT, a busy shard of the feed, and a takeover from
        another node. No statement begins after the deadline, on the monotonic clock.

        Raises:
            ConcurrentChangeError: if the last attempt failed by a conflict.
            UnknownOutcomeError: if the connection was lost at COMMIT.
            SQLAlchemyError: if the last attempt lost its connection, or the database failed otherwise.
            Exception: any other error of the operation; nothing was changed.
        """
        pause = _FIRST_PAUSE
        remaining_attempts = self._attempts
        must_take_over = False
        while True:
            try:
                if must_take_over:
                    # A failure counts as an attempt: several nodes may take over at the same time.
                    with lend_connection(self._engine) as connection, connection.begin():
                        feed.take_over(connection)
                    must_take_over = False
                result = self._run_once(deadline, stages, operation)
            except PrerequisiteError as error:
                stages.enter(WAIT)
                self._write_first(error.prerequisite)
            except feed.ShardBusyError:
                stages.enter(WAIT)
            except feed.OtherWriterError:
                stages.enter(WAIT)
                must_take_over = True
            except (RetryTransactionError, SQLAlchemyError) as error:
                stages.enter(WAIT)
                remaining_attempts -= 1
                _require_retry(error, is_last=remaining_attempts <= 0 or has_passed(deadline))
                metrics.RETRIES.inc()
                # Jitter keeps attempts from colliding again.
                self._closing.wait(pause * random.random())  # noqa: S311
                pause = min(2 * pause, _LONGEST_PAUSE)
            except BaseException:
                stages.enter(HAND_OVER)
                raise
            else:
                stages.enter(HAND_OVER)
                return result

    def _run_once(
        self, deadline: float, stages: Stages, operation: Callable[[WriteTransaction], Result]
    ) -> Result:
        with (
            lend_connection(self._engine) as connection,
            _begin(connection, stages) as outcome,
        ):
            transaction = WriteTransaction(connection, deadline, stages)
            fence = feed.read_fence(transaction)
            result = operation(transaction)
            # Drawn last, because another write may have found a shard busy while the operation ran.
            shard = self._shards.draw(connection)
            try:
                feed.append_changes(transaction, shard, fence)
                transaction.flush()
            except DBAPIError as error:
                if not feed.is_shard_statement(error.statement):
                    raise
                if classify_failure(error) is not Failure.LOCK_TIMEOUT:
                    raise
                self._shards.avoid(shard)
                raise feed.ShardBusyError from error
            _commit(outcome, stages)
            return result


def _begin(connection: Connection, stages: Stages) -> Transaction:
    # On SQLite, BEGIN acquires the lock.
    stages.enter(LOCKS)
    outcome = connection.begin()
    stages.enter(STATEMENTS)
    return outcome


def _commit(outcome: Transaction, stages: Stages) -> None:
    """Commit; raise `UnknownOutcomeError` after any failure except a refusal by the server."""
    stages.enter(COMMIT)
    try:
        outcome.commit()
    except DBAPIError as error:
        if classify_failure(error) in {Failure.CONFLICT, Failure.LOCK_TIMEOUT, Failure.DISK_FULL}:
            raise
        raise UnknownOutcomeError(describe_cause(error)) from error


def _require_retry(error: RetryTransactionError | SQLAlchemyError, *, is_last: bool) -> None:
    """Raise the error of the last attempt, or an error for which a retry is useless."""
    if isinstance(error, SQLAlchemyError):
        failure = classify_failure(error)
        if failure is not Failure.CONFLICT and (is_last or failure is not Failure.LOST):
            raise error
    if is_last:
        raise ConcurrentChangeError from error
