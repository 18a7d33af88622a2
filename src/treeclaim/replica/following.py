# SPDX-License-Identifier: Apache-2.0
"""Keeps a Forest equal to the store by applying the change feed before each read."""

import gc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import monotonic, perf_counter

from treeclaim import allocator, metrics
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.replica.question import HoldsQuery
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.unread import load_changes

_LARGE_FOREST = 10_000
"""Providers from which on the garbage collector must skip a Forest."""

_LOG = logging.getLogger(__name__)
_DISAGREES = "The Forest does not agree with the change feed, and is loaded anew"
_FAILED_MEANWHILE = "The database does not answer. Try again."


@dataclass(frozen=True, slots=True)
class SharedForest:
    """A Forest with its position in the change feed, which forked processes can share."""

    forest: Forest
    cursor: Cursor


class Follower:
    """A Forest that catches up with the store; for one thread at a time.

    Attributes:
        forest: All providers, at the last poll of the feed.
        version: A number that increases with each change, for detecting stale results.
    """

    def __init__(
        self, store: Store, inventory: SharedForest | None = None, *, is_worker: bool = True
    ) -> None:
        """Begin with an earlier Forest of the same database, or with an empty one.

        `is_worker` enables the workers' metrics.
        """
        self.forest = Forest() if inventory is None else inventory.forest
        self.version = 0
        self._store = store
        self._is_worker = is_worker
        self._cursor = None if inventory is None else inventory.cursor
        if inventory is not None and is_worker:
            _report_size(len(self.forest), inventory.cursor)
        self._failed_at = 0.0
        self._polled_at = 0.0

    def catch_up(self, since: float) -> None:
        """Apply every commit before the caller's arrival (`since`, on the monotonic clock).

        A poll that began after the arrival is sufficient, so threads that wait for their turn together share
        one poll. Likewise, if the database has failed since the arrival, the call fails at once: another poll
        would wait as long.

        Raises:
            StoreUnavailableError: if the database does not respond.
        """
        if self._failed_at > since:
            raise StoreUnavailableError(_FAILED_MEANWHILE)
        if self._polled_at > since and self._cursor is not None:
            return
        begin = monotonic()
        try:
            with _without_collector() if self._cursor is None else nullcontext():
                self._apply_news(self._store.load_changes)
        except StoreUnavailableError:
            self._failed_at = monotonic()
            raise
        self._polled_at = begin

    def catch_up_within(self, transaction: ReadTransaction) -> None:
        """Apply every change that a new transaction sees, so that the Forest equals its snapshot."""
        self._apply_news(partial(load_changes, transaction))

    def with_holds(self, holds: HoldsQuery) -> Forest:
        """Return the Forest with the queried amounts of holds, both of one snapshot."""
        if not holds:
            return self.forest

        def read(transaction: ReadTransaction) -> HeldAmounts:
            # The store calls this again after a lost connection.
            self.catch_up_within(transaction)
            return holds.read(transaction)

        held_amounts = self._store.read(read)
        return self.forest.make_view(held_amounts=held_amounts)

    def share(self) -> SharedForest:
        """Return the Forest for forked processes, with the columns that every search needs."""
        self.forest.prepare()
        return SharedForest(self.forest, self.cursor)

    def tidy(self) -> None:
        """Do one step of compaction."""
        if self.forest.run_compaction_step():
            # The row numbers have changed.
            self.version += 1

    @property
    def cursor(self) -> Cursor:
        """Return the Forest's position in the change feed; `catch_up` must run first."""
        if self._cursor is None:
            raise RuntimeError("it has not caught up yet")
        return self._cursor

    def _apply_news(self, load: Callable[[Cursor | None], Changes | None]) -> None:
        """Apply the changes that `load` returns for the Forest's position; `load(None)` returns everything."""
        begin = perf_counter()
        changes = load(self._cursor)
        if changes is not None and not self.forest.is_consistent_with(changes):
            _LOG.debug(_DISAGREES)
            changes = load(None)
        if changes is not None and (changes.complete or changes.cursor != self.cursor):
            self._apply(changes, begin)

    def _apply(self, changes: Changes, begin: float) -> None:
        is_first = self._cursor is None
        if changes.complete:
            reason = "it has no position" if is_first else "the feed has a gap, or is too long"
            _LOG.debug("The Forest is loaded: %s", reason)
        # After a failure of `apply`, the next read must load everything.
        self._cursor = None
        self.version += 1
        self.forest.apply(changes)
        self._cursor = changes.cursor
        if changes.complete:
            _freeze(self.forest, is_first=is_first)
        if self._is_worker:
            _record_metrics(changes, len(self.forest), perf_counter() - begin)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the garbage collector, which takes a quarter of the time of a load."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _freeze(forest: Forest, *, is_first: bool) -> None:
    """Exclude a large Forest from garbage collection, and return the memory of the load to the system.

    A Forest has long-lived objects for each provider, without cycles. The rows of a load are a tenth of the memory.
    """
    if len(forest) < _LARGE_FOREST:
        return
    if is_first:
        # During a later load, other threads would wait for the collection.
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    allocator.trim_heap()


def _record_metrics(changes: Changes, providers: int, seconds: float) -> None:
    if changes.complete:
        metrics.FOREST_LOAD_SECONDS.observe(seconds)
    else:
        metrics.FOREST_CHANGED.inc(
            len(changes.records) + len(changes.removed) + len(changes.usage)
        )
    _report_size(providers, changes.cursor)


def _report_size(providers: int, cursor: Cursor) -> None:
    worker = str(os.getpid())
    metrics.FOREST_PROVIDERS.labels(worker).set(providers)
    metrics.FEED_POSITION.labels(worker).set(sum(cursor.positions))
