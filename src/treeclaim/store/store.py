# SPDX-License-Identifier: Apache-2.0
"""The store: runs operations in transactions, those that write included, and keeps the database in order."""

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from treeclaim import metrics
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.changes import Changes, Cursor, Positions
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.timing import WAIT, Stages
from treeclaim.store.database.engine import connected, make_engine
from treeclaim.store.database.failures import Failure, Outages, failure_of
from treeclaim.store.database.systems import DatabaseSettings, system_of
from treeclaim.store.database.transactions import (
    DeadlineError,
    ReadTransaction,
    WriteTransaction,
)
from treeclaim.store.feed.polling import FeedPoller, LoadRequiredError
from treeclaim.store.feed.probe import Probe
from treeclaim.store.feed.unread import changes_since
from treeclaim.store.housekeeping import (
    ENDS_THREAD,
    NEXT_SQL,
    PRUNE_CHECK,
    PRUNING_THREAD,
    Housekeeper,
)
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations import placements as placement_writes
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.writes.commit import Committer, UnknownOutcomeError
from treeclaim.store.writes.group_commit import GroupCommit, group_settings
from treeclaim.store.writes.groups import Groups, Member, MemberState, NotWrittenError
from treeclaim.store.writes.retries import ATTEMPTS, RetryBudget, run_with_retries

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)

_LONGEST_LOOK = 5.0
"""Seconds that closing waits for each thread, whose steps mostly take a thousandth of one."""


class Store:
    """The database, used by one process; threads may share it.

    Attributes:
        engine: Its connections.
        timeouts: The timeouts of its waits.
        outages: Logs when the database fails, and when it answers again.
        housekeeper: Removes what has ended, and prunes the feed.
    """

    def __init__(self, settings: DatabaseSettings, *, attempts: int = ATTEMPTS) -> None:
        self.engine = make_engine(settings)
        self.timeouts = settings.timeouts
        self.outages = Outages()
        self._reading = system_of(self.engine).for_reading(self.engine)
        self._probe = Probe(self.engine, self.outages)
        self._poller = FeedPoller(self._probe, self.engine.dialect)
        self._attempts = max(attempts, 1)
        self._committer = Committer(system_of(self.engine).for_writing(self.engine))
        self._closing = threading.Event()
        self._group_engine = make_engine(group_settings(settings))
        self._group_committer = Committer(system_of(self.engine).for_writing(self._group_engine))
        self._threads: list[threading.Thread] = []
        self.housekeeper = Housekeeper(self, self._closing)
        group_commit = GroupCommit(self._group_committer, self.outages, self.write, self._closing)
        self._groups = Groups(group_commit.run, self._write_alone)

    def _deadline(self) -> float:
        return monotonic() + self.timeouts.write

    def read(
        self,
        operation: Callable[Concatenate[ReadTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation that only reads, in one snapshot; again if the connection is lost once.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        deadline = self._deadline()
        is_repeated = False
        while True:
            try:
                with connected(self._reading) as connection, connection.begin():
                    result = operation(ReadTransaction(connection, deadline), *args, **kwargs)
            except DeadlineError as error:
                raise self.outages.late() from error
            except SQLAlchemyError as error:
                if is_repeated or failure_of(error) not in {Failure.CONFLICT, Failure.LOST}:
                    raise self.outages.refused(error) from error
                is_repeated = True
            else:
                self.outages.answered()
                return result

    def now(self) -> datetime:
        """Return the time by the database's clock, naive UTC.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        return self.read(lambda transaction: transaction.now)

    def changes(self, cursor: Cursor | None) -> Changes | None:
        """Return the changes committed since a cursor; None if there are none.

        If nothing is new, or nothing but claims, this costs one query over a few small rows, and one
        more if a few providers have changed otherwise. Everything else is read in one snapshot. So
        each transaction is seen whole or not at all.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if cursor is None:
            return self.read(changes_since, None)
        with suppress(LoadRequiredError):
            return self._poller.since(cursor)
        return self.read(changes_since, cursor)

    def positions(self) -> Positions:
        """Return the position of each stream of the change feed.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        rows: Any = self._probe.rows("SELECT identity, position FROM treeclaim_streams")
        return dict(rows)

    def next_ends(self) -> Any:
        """Return the rows of `housekeeping.NEXT_SQL`.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        return self._probe.rows(NEXT_SQL)

    @property
    def streams_taken(self) -> int:
        """Return how many streams this process has taken so far."""
        return self._committer.streams_taken + self._group_committer.streams_taken

    def write(
        self,
        operation: Callable[Concatenate[WriteTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation in one transaction and commit it.

        The operation runs again from the beginning after a deadlock, a serialisation failure or a
        broken unique constraint, also at COMMIT. So it does if the connection is lost before
        COMMIT, because nothing of the transaction remains then. A timeout is final: another
        attempt would only wait as long again.

        Raises:
            ConcurrentChangeError: if all attempts failed because of concurrent changes.
            StoreUnavailableError: if the database cannot be reached, does not answer in time, or
                the connection was lost at the last attempt too; if a lock was held by others for
                too long. If it happened at COMMIT, the outcome is unknown.
            TreeclaimError: what the operation itself raises; nothing was changed then.
        """
        return self.write_until(
            self._deadline(),
            Stages(WAIT),
            lambda transaction: operation(transaction, *args, **kwargs),
        )

    def write_until(
        self, deadline: float, stages: Stages, operation: Callable[[WriteTransaction], Result]
    ) -> Result:
        """Write as `write` does; begin no statement after a deadline on the monotonic clock.

        The stages count how long each part took.
        """
        attempt = partial(self._committer.run, deadline, stages, operation)
        budget = RetryBudget(self._attempts, deadline, self._closing)
        try:
            result = run_with_retries(attempt, budget, self.write)
        except SQLAlchemyError as error:
            raise self.outages.refused(error) from error
        except DeadlineError as error:
            raise self.outages.late() from error
        except UnknownOutcomeError as error:
            raise self.outages.unknown_outcome(str(error)) from error
        self.outages.answered()
        return result

    def replace_allocations(self, claims: Sequence[ConsumerClaim]) -> None:
        """Replace all allocations of some consumers, all or nothing (page 70, section 1.3).

        Requests that wait at the same time share a transaction; each has its own outcome.

        Raises:
            TreeclaimError: as the operation `claims.write_request`, and as `write`.
        """
        self._submit(ClaimRequest(claims))

    def place(self, claims: Sequence[ConsumerClaim]) -> None:
        """Let new consumers hold what was found for them, all or nothing (page 98, section 4).

        A single one shares transactions as claims do.

        Raises:
            PlacedMeanwhileError, PlacementRefusedError: as the operation `placements.place`.
            TreeclaimError: as `write`.
        """
        if len(claims) > 1:
            self.write(placement_writes.place, claims)
            return
        try:
            self._submit(ClaimRequest(claims, is_placement=True))
        except placement_writes.REFUSALS as error:
            raise placement_writes.PlacementRefusedError(claims[0].consumer_uuid) from error

    def place_each(
        self, claims: Sequence[ConsumerClaim], stages: Sequence[Stages]
    ) -> list[TreeclaimError | None]:
        """Let new consumers of different calls, one of each, hold what was found for them, each by itself.

        Returns:
            Why each claim was not written, None for those that are: a `NotWrittenError` for one
            that may be written alone; else what `place` raises.
        """
        requests = [
            ClaimRequest([claim], is_placement=True, stages=counted)
            for claim, counted in zip(claims, stages, strict=True)
        ]
        members = self._groups.submit_all(requests, self._deadline())
        refusals = [
            NotWrittenError() if member.state is MemberState.ALONE else member.refusal
            for member in members
        ]
        if None in refusals:
            self.outages.answered()
        return refusals

    def delete_allocations(self, consumer_uuid: str) -> None:
        """Remove all allocations of a consumer (page 70, section 5); see `replace_allocations`.

        Raises:
            TreeclaimError: as the operation `claims.write_request`, and as `write`.
        """
        self._submit(ClaimRequest.release(consumer_uuid))

    def keep_order(self) -> None:
        """Remove holds as they end, and prune the feed, in threads of this process."""
        self.repeat(ENDS_THREAD, 0.0, self.housekeeper.end_due)
        self.repeat(PRUNING_THREAD, PRUNE_CHECK, self.housekeeper.prune_if_due)

    def repeat(self, name: str, pause: float, step: Callable[[], float]) -> None:
        """Call a method again and again, in a thread of this process, until the store is closed or its object is gone.

        The first call is after the pause; the method returns the seconds until the next one.
        """
        closing, method = self._closing, weakref.WeakMethod(step)

        def run() -> None:
            seconds_to_wait = pause
            while not closing.wait(seconds_to_wait):
                present = method()
                if present is None:
                    return
                seconds_to_wait = present()
                del present

        self._threads.append(start_helper_thread(name, run))

    def _submit(self, request: ClaimRequest) -> None:
        try:
            self._groups.submit(request, self._deadline())
            self.outages.answered()
        finally:
            metrics.tell_stages(metrics.CLAIM_SECONDS, request.stages)

    def _write_alone(self, member: Member[ClaimRequest]) -> None:
        request = member.request
        operation = partial(claim_writes.write_request, request=request)
        self.write_until(member.deadline, request.stages, operation)

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        for thread in self._threads:
            # Its connections must return to their pool before the pool is closed.
            thread.join(_LONGEST_LOOK)
        self._probe.close()
        self.engine.dispose()
        self._group_engine.dispose()
