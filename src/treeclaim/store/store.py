# SPDX-License-Identifier: Apache-2.0
"""The store: runs operations in transactions and tells readers what changed."""

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy.engine import Transaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

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
from treeclaim.store.database.failures import is_refused_value, is_retryable
from treeclaim.store.database.transactions import (
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
    """The database, used by one process; threads may share it."""

    def __init__(self, settings: DatabaseSettings, *, attempts: int = _ATTEMPTS) -> None:
        self.engine = make_engine(settings)
        self._attempts = max(attempts, 1)
        self._writing = writing(self.engine)
        self._reading = reading(self.engine)
        self._streams = feed.StreamPool()
        self._probe = Probe(self.engine)
        self._closing = threading.Event()
        self._prune_at = time.monotonic() + _PRUNE_EVERY

    def write(
        self,
        operation: Callable[Concatenate[WriteTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation in one transaction and commit it.

        Deadlocks, failed serialisation, lock timeouts and lost races for a unique name make the
        operation run again from the beginning, also when they come at COMMIT. So does a connection
        that is lost before COMMIT, because nothing of the transaction is left then.

        Raises:
            ConcurrentChangeError: if all attempts met others.
            StoreUnavailableError: if the database cannot be reached, or was lost on the way at
                the last attempt too; if that happened at COMMIT, nobody can know whether the
                operation was done.
            TreeclaimError: what the operation itself raises; nothing was changed then.
        """
        pause = _FIRST_PAUSE
        lost: DBAPIError | None = None
        for attempt in range(self._attempts):
            if attempt:
                metrics.RETRIES.inc()
                # Whoever met once would meet again without some chance in the waiting.
                self._closing.wait(pause * random.random())  # noqa: S311
                pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                result = self._write_once(operation, *args, **kwargs)
            except RetryTransactionError:
                lost = None
            except DBAPIError as error:
                if not (is_retryable(error) or error.connection_invalidated):
                    raise _translated(error) from error
                lost = error if error.connection_invalidated else None
            except _UnknownOutcomeError as error:
                raise StoreUnavailableError(str(error)) from error
            except PoolTimeoutError as error:
                raise _translated(error) from error
            else:
                self._prune_now_and_then()
                return result
        if lost is not None:
            raise _translated(lost) from lost
        raise ConcurrentChangeError

    def _write_once(
        self,
        operation: Callable[Concatenate[WriteTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        with connected(self._writing) as connection, connection.begin() as outcome:
            transaction = WriteTransaction(connection)
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
        except DBAPIError as error:
            if not (error.connection_invalidated or is_retryable(error)):
                raise _translated(error) from error
        except PoolTimeoutError as error:
            raise _translated(error) from error
        try:
            return self._read_once(operation, *args, **kwargs)
        except (DBAPIError, PoolTimeoutError) as error:
            raise _translated(error) from error

    def _read_once(
        self,
        operation: Callable[Concatenate[ReadTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        with connected(self._reading) as connection, connection.begin():
            return operation(ReadTransaction(connection), *args, **kwargs)

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
        if time.monotonic() < self._prune_at:
            return
        self._prune_at = time.monotonic() + _PRUNE_EVERY
        try:
            threading.Thread(target=self._prune_quietly, name=PRUNING_THREAD, daemon=True).start()
        except RuntimeError as error:
            _LOG.warning("The change feed was not pruned: %s", error)

    def _prune_quietly(self) -> None:
        try:
            self.prune(KEEP)
        except (TreeclaimError, SQLAlchemyError) as error:
            _LOG.warning("The change feed was not pruned: %s", error)

    def close(self) -> None:
        """Close all connections."""
        self._closing.set()
        self._probe.close()
        self.engine.dispose()


class _UnknownOutcomeError(Exception):
    """The connection was lost at COMMIT; nobody can know whether it was done."""


def _commit(outcome: Transaction) -> None:
    """Commit; whatever is not a plain refusal leaves the outcome unknown."""
    try:
        outcome.commit()
    except DBAPIError as error:
        if is_retryable(error):
            raise
        raise _UnknownOutcomeError(str(error.orig)) from error


def _changes(transaction: ReadTransaction, cursor: Cursor | None) -> Changes:
    news = news_since(transaction, cursor)
    catalogue = loading.catalogue(transaction) if news.catalogue else None
    if news.complete:
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


def _translated(error: DBAPIError | PoolTimeoutError) -> TreeclaimError:
    """Say in the model's words what the database would not do."""
    reason = str(getattr(error, "orig", None) or error)
    if isinstance(error, DBAPIError) and is_refused_value(error):
        return InvalidValueError(f"The database cannot hold a value: {reason}")
    metrics.UNAVAILABLE.inc()
    return StoreUnavailableError(reason)
