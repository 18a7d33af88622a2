# SPDX-License-Identifier: Apache-2.0
"""The store: runs operations in transactions and tells readers what changed."""

import logging
import random
import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.engine import Transaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.changes import Changes, Cursor, Positions
from treeclaim.model.errors import (
    ConcurrentChangeError,
    InvalidValueError,
    StoreUnavailableError,
    TreeclaimError,
)
from treeclaim.store.database.connections import connected, reading, writing
from treeclaim.store.database.engine import DatabaseSettings, make_engine
from treeclaim.store.database.failures import Trouble, cause_of, trouble_of
from treeclaim.store.database.outages import Outages
from treeclaim.store.database.transactions import (
    DeadlineError,
    PrepareFirstError,
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    utc_now,
)
from treeclaim.store.feed import pruning
from treeclaim.store.feed import streams as feed
from treeclaim.store.feed.news import news as news_since
from treeclaim.store.feed.probe import Probe
from treeclaim.store.reading import loading

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)

KEEP = timedelta(hours=24)
"""How much of the change feed is kept; a reader that is further behind loads everything."""

_PRUNE_EVERY = 3600.0
"""Seconds between two prunings by one process."""

PRUNING_THREAD = "treeclaim-pruning"
"""Name of the thread that prunes beside the writes."""

_ATTEMPTS = 12
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.25


class Store:
    """The database, used by one process; threads may share it.

    Attributes:
        engine: Its connections.
        outages: What this process knows of its coming and going.
    """

    def __init__(self, settings: DatabaseSettings, *, attempts: int = _ATTEMPTS) -> None:
        self.engine = make_engine(settings)
        self._attempts = max(attempts, 1)
        self._writing = writing(self.engine)
        self._reading = reading(self.engine)
        self._streams = feed.StreamPool()
        self._waits = settings.waits
        self.outages = Outages()
        self._probe = Probe(self.engine, self.outages)
        self._closing = threading.Event()
        self._prune_at = monotonic() + _PRUNE_EVERY

    def write(
        self,
        operation: Callable[Concatenate[WriteTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation in one transaction and commit it.

        Deadlocks, failed serialisation and lost races for a unique name make the operation run
        again from the beginning, also when they come at COMMIT. So does a connection that is lost
        before COMMIT, because nothing of the transaction is left then. Who has waited in vain, for
        a lock or for an answer, does not wait again: there is nothing but a longer wait to gain.

        Raises:
            ConcurrentChangeError: if all attempts met others.
            StoreUnavailableError: if the database cannot be reached, does not answer in time, or
                was lost on the way at the last attempt too; if somebody holds what is needed for
                too long. If it happened at COMMIT, nobody can know whether the operation was done.
            TreeclaimError: what the operation itself raises; nothing was changed then.
        """
        retries = _Retries(self._attempts, monotonic() + self._waits.write, self._closing)
        while True:
            try:
                result = self._write_once(retries.deadline, operation, *args, **kwargs)
            except RetryTransactionError as error:
                retries.again(error, ConcurrentChangeError())
            except SQLAlchemyError as error:
                trouble = trouble_of(error)
                if trouble not in {Trouble.MET, Trouble.LOST}:
                    raise self._refused(error) from error
                met = trouble is Trouble.MET
                retries.again(error, ConcurrentChangeError() if met else self._refused(error))
            except DeadlineError as error:
                raise self._late() from error
            except _UnknownOutcomeError as error:
                raise self._unavailable(_UNKNOWN_OUTCOME, str(error)) from error
            except PrepareFirstError as error:
                self.write(error.prepare)
            else:
                self.outages.answered()
                self._prune_now_and_then()
                return result

    def _write_once(
        self,
        deadline: float,
        operation: Callable[Concatenate[WriteTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        with connected(self._writing) as connection, connection.begin() as outcome:
            transaction = WriteTransaction(connection, deadline)
            result = operation(transaction, *args, **kwargs)
            if not transaction.touched_providers and not transaction.touched_catalogue:
                _commit(outcome)
                return result
            with self._streams.lend() as stream:
                advanced = feed.append(transaction, stream)
                _commit(outcome)
                stream.id, stream.identity = advanced.id, advanced.identity
                stream.position = advanced.position
            return result

    def read(
        self,
        operation: Callable[Concatenate[ReadTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation that only reads, in one snapshot; once more if its connection is lost.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        try:
            return self._read_once(operation, *args, **kwargs)
        except SQLAlchemyError as error:
            if trouble_of(error) not in {Trouble.MET, Trouble.LOST}:
                raise self._refused(error) from error
        try:
            return self._read_once(operation, *args, **kwargs)
        except SQLAlchemyError as error:
            raise self._refused(error) from error

    def _read_once(
        self,
        operation: Callable[Concatenate[ReadTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        with connected(self._reading) as connection, connection.begin():
            result = operation(ReadTransaction(connection), *args, **kwargs)
        self.outages.answered()
        return result

    def _refused(self, error: SQLAlchemyError) -> TreeclaimError:
        """Say in the model's words what the database would not do, and why to the operator."""
        trouble = trouble_of(error)
        if trouble is Trouble.REFUSED_VALUE:
            return InvalidValueError(trouble.value)
        return self._unavailable(trouble.value, cause_of(error))

    def _late(self) -> StoreUnavailableError:
        cause = f"a write was not done after {self._waits.write} s"
        return self._unavailable(Trouble.SLOW.value, cause)

    def _unavailable(self, text: str, cause: str) -> StoreUnavailableError:
        metrics.UNAVAILABLE.inc()
        self.outages.failed(text, cause)
        return StoreUnavailableError(text, cause=cause)

    def changes(self, cursor: Cursor | None) -> Changes | None:
        """Return what was committed since a cursor; None if nothing was.

        The usual case, nothing new, costs one query over a few small rows. Everything else is
        read in one snapshot, so that no transaction is seen half.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if cursor is not None and self._probe.positions() == cursor.positions:
            return None
        return self.read(_changes, cursor)

    @staticmethod
    def changes_within(transaction: ReadTransaction, cursor: Cursor | None) -> Changes:
        """Return what a transaction sees that was committed since a cursor, be it nothing."""
        return _changes(transaction, cursor)

    def positions(self) -> Positions:
        """Return how far each stream of the change feed has come.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        return self._probe.positions()

    def prune(self, keep: timedelta) -> int:
        """Delete rows of the change feed older than `keep`; return how many.

        It is done in many short transactions, so that no writer waits for long.

        Raises:
            ConcurrentChangeError, StoreUnavailableError: as `write`; what was deleted stays so.
        """
        before = utc_now() - keep
        deleted = 0
        for stream_id in self.read(pruning.told_streams):
            piece = pruning.ROWS_AT_ONCE
            while piece >= pruning.ROWS_AT_ONCE and not self._closing.is_set():
                piece = self.write(pruning.delete_oldest, stream_id, before)
                deleted += piece
        self.write(pruning.remove_closed, before)
        self.write(pruning.close_unused, before)
        return deleted

    def _prune_now_and_then(self) -> None:
        """Keep the feed short without anybody's doing, beside the writes.

        The write that came along at the time has been committed: whatever fails here, its client
        is not told.
        """
        if monotonic() < self._prune_at:
            return
        self._prune_at = monotonic() + _PRUNE_EVERY
        try:
            threading.Thread(target=self._prune_quietly, name=PRUNING_THREAD, daemon=True).start()
        except RuntimeError as error:
            _LOG.warning("The change feed was not pruned: %s", error)

    def _prune_quietly(self) -> None:
        try:
            self.prune(KEEP)
        except (TreeclaimError, SQLAlchemyError) as error:
            # Why the database failed is in the log already.
            _LOG.warning("The change feed was not pruned: %s", error)

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        self._probe.close()
        self.engine.dispose()


_UNKNOWN_OUTCOME = (
    "The connection to the database was lost at the end of the change; it was made whole or not "
    "at all. Look, and try again."
)


class _UnknownOutcomeError(Exception):
    """The connection was lost at COMMIT; nobody can know whether it was done."""


class _Retries:
    """How often and how long one write may be tried.

    Attributes:
        deadline: On the monotonic clock; nothing of the write begins later.
    """

    def __init__(self, attempts: int, deadline: float, closing: threading.Event) -> None:
        self.deadline = deadline
        self._left = attempts
        self._closing = closing
        self._pause = _FIRST_PAUSE

    def again(self, met: Exception, end: TreeclaimError) -> None:
        """Wait a little before the next attempt.

        Raises:
            TreeclaimError: `end`, if there is no next one.
        """
        self._left -= 1
        if self._left <= 0 or monotonic() > self.deadline:
            raise end from met
        metrics.RETRIES.inc()
        # Whoever met once would meet again without some chance in the waiting.
        self._closing.wait(self._pause * random.random())  # noqa: S311
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


def _commit(outcome: Transaction) -> None:
    """Commit; whatever is not a plain refusal leaves the outcome unknown."""
    try:
        outcome.commit()
    except DBAPIError as error:
        if trouble_of(error) in {Trouble.MET, Trouble.LOCKED, Trouble.FULL}:
            raise
        raise _UnknownOutcomeError(cause_of(error)) from error


def _changes(transaction: ReadTransaction, cursor: Cursor | None) -> Changes:
    news = news_since(transaction, cursor)
    catalogue = loading.catalogue(transaction) if news.catalogue else None
    if news.complete:
        transaction.take_time()
        records = loading.every_provider(transaction)
        return Changes(
            news.cursor, complete=True, records=records, removed=(), catalogue=catalogue
        )
    records = loading.some_providers(transaction, news.provider_ids)
    removed = news.provider_ids - {one.id for one in records}
    return Changes(
        news.cursor,
        complete=False,
        records=records,
        removed=sorted(removed),
        catalogue=catalogue,
    )
