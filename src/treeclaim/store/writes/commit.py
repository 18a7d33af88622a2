# SPDX-License-Identifier: Apache-2.0
"""An attempt of a write: a transaction, its part of the change feed, and the commit."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine, Transaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim.model.timing import COMMIT, HAND_OVER, LOCKS, STATEMENTS, WAIT, Stages
from treeclaim.store.database.engine import connected
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

_RETRIED = (PrerequisiteError, RetryTransactionError, SQLAlchemyError)
"""Errors after which a write usually runs again."""


class Committer:
    """Runs operations in transactions of an engine; thread-safe."""

    def __init__(self, engine: Engine, shards: feed.ShardChoice) -> None:
        self._engine = get_system(engine).for_writing(engine)
        self._shards = shards

    def run(
        self, deadline: float, stages: Stages, operation: Callable[[WriteTransaction], Result]
    ) -> Result:
        """Run an operation, append its changes to the feed, and commit.

        The operation runs again if its shard of the feed was busy, or after its node has taken over from
        another one. No statement begins after the deadline, on the monotonic clock.

        Raises:
            UnknownOutcomeError: if the connection was lost at COMMIT.
            DBAPIError, DeadlineError, RetryTransactionError, PrerequisiteError: nothing was
                changed.
            TreeclaimError: an error of the operation; nothing was changed.
        """
        while True:
            after = HAND_OVER
            try:
                return self._run_once(deadline, stages, operation)
            except feed.ShardBusyError:
                after = WAIT
            except feed.OtherWriterError:
                self._take_over()
                after = WAIT
            except _RETRIED:
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
            fence = feed.read_fence(transaction)
            result = operation(transaction)
            # Drawn last: a shard may have turned out to be busy while the operation ran.
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

    def _take_over(self) -> None:
        with connected(self._engine) as connection, connection.begin():
            feed.take_over(connection)


def _begun(connection: Connection, stages: Stages) -> Transaction:
    """Begin a transaction; on SQLite this acquires the lock."""
    stages.enter(LOCKS)
    outcome = connection.begin()
    stages.enter(STATEMENTS)
    return outcome


def _commit(outcome: Transaction, stages: Stages) -> None:
    """Commit; every failure except a refusal of the server leaves the outcome unknown."""
    stages.enter(COMMIT)
    try:
        outcome.commit()
    except DBAPIError as error:
        if classify_failure(error) in {Failure.CONFLICT, Failure.LOCK_TIMEOUT, Failure.DISK_FULL}:
            raise
        raise UnknownOutcomeError(describe_cause(error)) from error
