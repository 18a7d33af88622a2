# SPDX-License-Identifier: Apache-2.0
"""The database as its users see it: transactions, claims, and the change feed."""

import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

from treeclaim import metrics
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.timing import WAIT, Stages
from treeclaim.store.database.engine import lend_connection, make_engine
from treeclaim.store.database.failures import (
    TRANSACTION_FAILURES,
    Failure,
    Outages,
    classify_failure,
)
from treeclaim.store.database.systems import DatabaseSettings, get_system
from treeclaim.store.database.transactions import (
    IncompleteViewError,
    ReadTransaction,
    WriteTransaction,
)
from treeclaim.store.feed.polling import FeedPoller, LoadRequiredError
from treeclaim.store.feed.probe import Probe
from treeclaim.store.feed.shards import ShardChoice
from treeclaim.store.feed.unread import load_changes
from treeclaim.store.housekeeping import Housekeeper
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.writes.groups import Groups
from treeclaim.store.writes.writer import ATTEMPTS, Writer

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_RETRIED_READS = {Failure.CONFLICT, Failure.LOST}
"""Failures after which a read is retried."""

_GROUP_ATTEMPTS = 3
"""Attempts of a group before it is divided: single claims lock fewer rows."""

_GROUP_LOCK_SECONDS = 1
"""Lock timeout of a group, in seconds. A queue for a shared pool lasts some hundredths of a second. After a longer
wait the group is divided, so that only the claims that need the lock wait longer."""

_GROUP_CONNECTIONS = 2
"""Connections for groups: one group runs at a time, and a second one while the first is stuck."""

_SHARED_FAILURES = {Failure.SILENT, Failure.POOL_TIMEOUT, Failure.UNKNOWN_OUTCOME}
"""Failures of all members of a group. After a timeout, each member alone would time out too."""

_CLOSE_SECONDS = 5.0
"""Seconds that `close` waits for each thread; a step usually takes a millisecond."""


class NotWrittenError(TreeclaimError):
    """The group of a claim has failed; the claim may succeed alone."""


class Store:
    """The database, used by one process; thread-safe."""

    def __init__(self, settings: DatabaseSettings, *, attempts: int = ATTEMPTS) -> None:
        self.engine = make_engine(settings)
        self.timeouts = settings.timeouts
        self.outages = Outages()
        self._reading = get_system(self.engine).for_reading(self.engine)
        self._probe = Probe(self.engine, self.outages)
        self._poller = FeedPoller(self._probe, self.engine.dialect)
        self._closing = threading.Event()
        self._group_engine = make_engine(_group_settings(settings))
        shards = ShardChoice()
        self._writer, self._group_writer = (
            Writer(engine, shards, most, self._closing, self.write)
            for engine, most in (
                (self.engine, max(attempts, 1)),
                (self._group_engine, _GROUP_ATTEMPTS),
            )
        )
        self._threads: list[threading.Thread] = []
        self.housekeeper = Housekeeper(self, self._closing)
        self._groups = Groups(self._write_group, self._write_alone)

    def _deadline(self) -> float:
        return monotonic() + self.timeouts.write

    def read(
        self,
        operation: Callable[Concatenate[ReadTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation that only reads, in one snapshot; retry it once after a conflict or a lost connection.

        Raises:
            StoreUnavailableError: if the database fails or times out.
        """
        deadline = self._deadline()
        is_retry = False
        floor: Cursor | None = None
        views = 0
        while True:
            try:
                with lend_connection(self._reading) as connection, connection.begin():
                    transaction = ReadTransaction(connection, deadline, floor, views)
                    result = operation(transaction, *args, **kwargs)
            except IncompleteViewError:
                # A reader of the feed needs a snapshot after a floor.
                views += 1
                floor = self.load_cursor()
            except TRANSACTION_FAILURES as error:
                if is_retry or classify_failure(error) not in _RETRIED_READS:
                    raise self.outages.make_client_error(error) from error
                is_retry = True
            else:
                self.outages.record_success()
                return result

    def read_clock(self) -> datetime:
        """Return the time by the clock of the database, naive UTC; raise as `read`."""
        return self.read(lambda transaction: transaction.now)

    def load_changes(self, cursor: Cursor | None) -> Changes | None:
        """Return the changes committed since a cursor, or everything for None; None if nothing was committed.

        Each transaction is visible as a whole or not at all. If only claims were committed, it executes one query
        over a few small rows.

        Raises:
            StoreUnavailableError: if the database fails or times out.
        """
        if cursor is not None:
            with suppress(LoadRequiredError):
                return self._poller.poll(cursor)
        return self.read(load_changes, cursor)

    def load_cursor(self) -> Cursor:
        """Return the end of the change feed; raise as `fetch`.

        A later snapshot contains all changes up to this cursor, from which a client can follow a list.
        """
        return self._poller.read_end()

    def fetch(self, sql: str) -> list[Any]:
        """Return the rows of a small query, on a connection outside of the pool; raise `StoreUnavailableError`."""
        return self._probe.fetch_rows(sql)

    def write(
        self,
        operation: Callable[Concatenate[WriteTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation in one transaction, and commit it.

        The operation is retried after a deadlock, a serialization failure or a violated unique constraint, also at
        COMMIT. After a connection lost before COMMIT it is retried, because the server has rolled back. It is not
        retried after a timeout: another attempt would wait as long.

        Raises:
            ConcurrentChangeError: if all attempts failed because of concurrent changes.
            StoreUnavailableError: if the database or a lock timed out, or the last attempt lost its connection.
                After a connection lost at COMMIT, the message says that the outcome is unknown.
            TreeclaimError: an error of the operation; nothing was changed.
        """
        return self.write_until(
            self._deadline(),
            Stages(WAIT),
            lambda transaction: operation(transaction, *args, **kwargs),
        )

    def write_until(
        self, deadline: float, stages: Stages, operation: Callable[[WriteTransaction], Result]
    ) -> Result:
        """Run an operation as `write`, with a deadline on the monotonic clock; measure the stages."""
        try:
            result = self._writer.run(deadline, stages, operation)
        except TRANSACTION_FAILURES as error:
            raise self.outages.make_client_error(error) from error
        self.outages.record_success()
        return result

    def replace_allocations(self, claims: Sequence[ConsumerClaim]) -> None:
        """Replace all allocations of consumers, all or nothing (page 70, section 1.3).

        Raises:
            TreeclaimError: as `claims.write_request` and `write`.
        """
        self._submit(ClaimRequest(claims))

    def place(self, claims: Sequence[ConsumerClaim]) -> None:
        """Write claims of new consumers, all or nothing (page 98, section 4).

        Raises:
            PlacedMeanwhileError: if a consumer has allocations already.
            TreeclaimError: as `replace_allocations`.
        """
        self._submit(ClaimRequest(claims, is_placement=True))

    def place_each(
        self, claims: Sequence[ConsumerClaim], stages: Sequence[Stages]
    ) -> Sequence[TreeclaimError | None]:
        """Write claims of new consumers, each independent of the others, and measure their `stages`.

        Returns:
            The refusal of each claim, as of `place`, or `NotWrittenError`; None for a written claim.
        """
        requests = [
            ClaimRequest([claim], is_placement=True, stages=call_stages)
            for claim, call_stages in zip(claims, stages, strict=True)
        ]
        deadline = self._deadline()
        refusals: Sequence[TreeclaimError | None] | None
        if len(requests) > 1:
            refusals = self._write_group(requests, deadline)
        else:
            refusals = [None]
            try:
                self._groups.submit(requests[0], deadline)
            except TreeclaimError as error:
                refusals = [error.with_traceback(None)]
        if refusals is None:
            return [NotWrittenError() for _ in claims]
        if None in refusals:
            self.outages.record_success()
        return refusals

    def delete_allocations(self, consumer_uuid: str) -> None:
        """Remove all allocations of a consumer (page 70, section 5); as `replace_allocations`."""
        self._submit(ClaimRequest.release(consumer_uuid))

    def repeat(self, name: str, pause: float, step: Callable[[], float]) -> None:
        """Call a method in a thread, after `pause` seconds and then after as many seconds as it returns.

        The thread ends when the store closes or the object of the method is deleted.
        """
        closing, method = self._closing, weakref.WeakMethod(step)

        def run() -> None:
            seconds_to_wait = pause
            while not closing.wait(seconds_to_wait):
                bound_method = method()
                if bound_method is None:
                    return
                seconds_to_wait = bound_method()
                del bound_method

        self._threads.append(start_helper_thread(name, run))

    def _submit(self, request: ClaimRequest) -> None:
        try:
            self._groups.submit(request, self._deadline())
            self.outages.record_success()
        finally:
            metrics.observe_stages(metrics.CLAIM_SECONDS, request.stages)

    def _write_group(
        self, requests: Sequence[ClaimRequest], deadline: float
    ) -> Sequence[TreeclaimError | None] | None:
        """Write claims in one transaction (decision 0014); return their refusals, or None to divide the group."""
        metrics.CLAIM_GROUPS.observe(len(requests))
        leader, *followers = [request.stages for request in requests]
        operation = partial(claim_writes.write_group, requests=requests)
        refusals: Sequence[TreeclaimError | None] | None = None
        try:
            refusals = self._group_writer.run(deadline, leader, operation)
        except claim_writes.AllRefusedError as error:
            refusals = error.refusals
        except TRANSACTION_FAILURES as error:
            if classify_failure(error) in _SHARED_FAILURES:
                refusals = [self.outages.make_client_error(error) for _ in requests]
        except TreeclaimError:
            # One member may have caused the failure: each member runs alone, within its own deadline.
            pass
        for stages in followers:
            stages.copy_transaction(leader, is_reported=refusals is not None)
        return refusals

    def _write_alone(self, request: ClaimRequest, deadline: float) -> None:
        operation = partial(claim_writes.write_request, request=request)
        self.write_until(deadline, request.stages, operation)

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        for thread in self._threads:
            # Its connections must return to their pool before the pool is closed.
            thread.join(_CLOSE_SECONDS)
        self._probe.close()
        self.engine.dispose()
        self._group_engine.dispose()


def _group_settings(settings: DatabaseSettings) -> DatabaseSettings:
    lock = min(settings.timeouts.lock, _GROUP_LOCK_SECONDS)
    timeouts = replace(settings.timeouts, lock=lock)
    return replace(settings, timeouts=timeouts, max_pool_size=_GROUP_CONNECTIONS)
