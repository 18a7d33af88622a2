# SPDX-License-Identifier: Apache-2.0
"""An attempt of a write: a transaction, its part of the change feed, and the commit."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine, Transaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.model.timing import COMMIT, HAND_OVER, LOCKS, STATEMENTS, WAIT, Stages
from treeclaim.store.database.engine import connected
from treeclaim.store.database.failures import Failure, cause_of, failure_of
from treeclaim.store.database.transactions import (
    PrerequisiteError,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.feed import streams as feed

Result = TypeVar("Result")


_AGAIN = (PrerequisiteError, RetryTransactionError, SQLAlchemyError)
"""Errors after which a write runs again, as a rule."""


class UnknownOutcomeError(Exception):
    """The connection was lost at COMMIT; whether it was carried out is unknown."""


class Committer:
    """Runs operations in transactions of one engine; threads may share it.

    Attributes:
        streams_taken: How many new streams of the feed its transactions have taken, about.
    """

    def __init__(self, engine: Engine) -> None:
        """Begin without streams; the transactions of the engine must be fit for writing."""
        self.streams_taken = 0
        self._engine = engine
        self._streams = feed.StreamPool()

    def run(
        self, deadline: float, stages: Stages, operation: Callable[[WriteTransaction], Result]
    ) -> Result:
        """Run an operation, append its changes to the feed, and commit.

        It runs again if its stream of the feed was lost, which is known only afterwards. Losing
        one gives up all idle ones, so that soon a new one is taken. No statement begins after the deadline, on the
        monotonic clock.

        Raises:
            UnknownOutcomeError: if the connection was lost at COMMIT.
            DBAPIError, DeadlineError, RetryTransactionError, PrerequisiteError: nothing was
                changed.
            TreeclaimError: from the operation; nothing was changed.
        """
        while True:
            after = HAND_OVER
            try:
                with suppress(feed.LostStreamError):
                    return self._run_once(deadline, stages, operation)
                after = WAIT
            except _AGAIN:
                after = WAIT
                raise
            finally:
                stages.enter(after)

    def _run_once(
        self, deadline: float, stages: Stages, operation: Callable[[WriteTransaction], Result]
    ) -> Result:
        with (
            connected(self._engine) as connection,
            _begun(connection, stages) as outcome,
        ):
            transaction = WriteTransaction(connection, deadline, stages)
            result = operation(transaction)
            if not transaction.touched_providers and not transaction.touched_catalogue:
                transaction.flush()
                _commit(outcome, stages)
                return result
            with self._streams.lend() as stream:
                advanced = feed.append(transaction, stream)
                transaction.flush()
                _commit(outcome, stages)
                if advanced.identity != stream.identity:
                    self.streams_taken += 1
                stream.id, stream.identity = advanced.id, advanced.identity
                stream.position = advanced.position
            return result


def _begun(connection: Connection, stages: Stages) -> Transaction:
    """Begin; SQLite takes its lock by that."""
    stages.enter(LOCKS)
    outcome = connection.begin()
    stages.enter(STATEMENTS)
    return outcome


def _commit(outcome: Transaction, stages: Stages) -> None:
    """Commit; any failure but a plain refusal leaves the outcome unknown."""
    stages.enter(COMMIT)
    try:
        outcome.commit()
    except DBAPIError as error:
        if failure_of(error) in {Failure.CONFLICT, Failure.LOCK_TIMEOUT, Failure.DISK_FULL}:
            raise
        raise UnknownOutcomeError(cause_of(error)) from error
