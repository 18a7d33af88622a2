# SPDX-License-Identifier: Apache-2.0
"""Keeps a Forest equal to the store: the only module that knows both.

Each read brings the Forest up to date first.
"""

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
from treeclaim.store.feed.unread import changes_since

_LARGE_FOREST = 10_000
"""Providers from which on the garbage collector is spared a Forest."""

_LOG = logging.getLogger(__name__)
_DISAGREES = "The Forest does not agree with the change feed, and is loaded anew"
_FAILED_MEANWHILE = "The database does not answer. Try again."


@dataclass(frozen=True, slots=True)
class FollowedForest:
    """A Forest with its position in the change feed; nothing in it belongs to a process."""

    forest: Forest
    cursor: Cursor


class Follower:
    """A Forest that is brought up to date before each use, by one thread at a time.

    Attributes:
        forest: All providers as they were at the last look at the feed.
        version: Another number after each change, so that stale results can be recognised.
    """

    def __init__(
        self, store: Store, picture: FollowedForest | None = None, *, is_worker: bool = True
    ) -> None:
        """Begin with a Forest, or with an empty one.

        Args:
            store: What to follow.
            picture: Taken by another process, or at another time, of the same database.
            is_worker: Whether it counts in the workers' metrics.
        """
        self.forest = Forest() if picture is None else picture.forest
        self.version = 0
        self._store = store
        self._is_worker = is_worker
        self._cursor = None if picture is None else picture.cursor
        if picture is not None and is_worker:
            _tell_size(len(self.forest), picture.cursor)
        self._failed_at = 0.0
        self._looked_at = 0.0

    def catch_up(self, since: float) -> None:
        """Apply everything committed before the caller came.

        Those who wait for their turn at the same time share one look at the feed: the first of them
        looks, after the last of them came, and so sees every write that ended before.

        Args:
            since: When the caller began to wait for its turn, of the monotonic clock. If a look was
                begun since then, it tells this caller enough. If the database has failed since
                then, it is not asked again: what another thread waited for in vain, this one
                would too.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if self._failed_at > since:
            raise StoreUnavailableError(_FAILED_MEANWHILE)
        if self._looked_at > since and self._cursor is not None:
            return
        begin = monotonic()
        try:
            with _without_collector() if self._cursor is None else nullcontext():
                self._apply_news(self._store.changes)
        except StoreUnavailableError:
            self._failed_at = monotonic()
            raise
        self._looked_at = begin

    def catch_up_within(self, transaction: ReadTransaction) -> None:
        """Apply everything that a fresh transaction sees.

        The Forest is the same picture then as that of the transaction's snapshot.
        """
        self._apply_news(partial(changes_since, transaction))

    def with_holds(self, holds: HoldsQuery) -> Forest:
        """Return the Forest, once it has caught up, with what is asked about holds at its moment.

        It is brought to another snapshot for that. The caller has the turn already, and only then
        waits for a connection.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if not holds:
            return self.forest

        def read(transaction: ReadTransaction) -> HeldAmounts:
            # A connection that was lost makes this run again.
            self.catch_up_within(transaction)
            return holds.read(transaction)

        held = self._store.read(read)
        return self.forest.holding(held)

    def picture(self) -> FollowedForest:
        """Return the Forest for other followers to begin with, once it has caught up.

        What every search needs is worked out before, so that forked processes share that too.
        """
        self.forest.prepare()
        return FollowedForest(self.forest, self.cursor)

    def tidy(self) -> None:
        """Do a step towards a small Forest."""
        if self.forest.tidy():
            # A question in the middle of its work has rows that are no longer the same.
            self.version += 1

    @property
    def cursor(self) -> Cursor:
        """Return the Forest's position in the change feed, once it has caught up."""
        if self._cursor is None:
            raise RuntimeError("it has not caught up yet")
        return self._cursor

    def _apply_news(self, load: Callable[[Cursor | None], Changes | None]) -> None:
        """Apply the changes since the Forest's position, or everything, as a function of a position loads them."""
        begin = perf_counter()
        changes = load(self._cursor)
        if changes is not None and not self.forest.agrees_with(changes):
            _LOG.debug(_DISAGREES)
            changes = load(None)
        if changes is not None and (
            changes.complete or changes.cursor.positions != self.cursor.positions
        ):
            self._apply(changes, begin)

    def _apply(self, changes: Changes, begin: float) -> None:
        is_first = self._cursor is None
        if changes.complete:
            why = "it has no position" if is_first else "the feed does not lead on, or is too long"
            _LOG.debug("The Forest is loaded: %s", why)
        # Should applying fail half-way, the next read must not trust this Forest.
        self._cursor = None
        self.version += 1
        self.forest.apply(changes)
        self._cursor = changes.cursor
        if changes.complete:
            _freeze(self.forest, is_first=is_first)
        if self._is_worker:
            _count(changes, len(self.forest), perf_counter() - begin)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the garbage collector, which takes a quarter of the time of loading everything."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _freeze(forest: Forest, *, is_first: bool) -> None:
    """Spare the garbage collector a large Forest, and return the memory that loading it needed.

    A Forest holds some objects for each provider, in no cycles and for long. The data that was read from the database
    is a tenth of the memory.
    """
    if len(forest) < _LARGE_FOREST:
        return
    if is_first:
        # Later, other threads would wait for the collection.
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    allocator.give_back()


def _count(changes: Changes, providers: int, seconds: float) -> None:
    if changes.complete:
        metrics.FOREST_LOAD_SECONDS.observe(seconds)
    else:
        metrics.FOREST_CHANGED.inc(
            len(changes.records) + len(changes.removed) + len(changes.usage)
        )
    _tell_size(providers, changes.cursor)


def _tell_size(providers: int, cursor: Cursor) -> None:
    worker = str(os.getpid())
    metrics.FOREST_PROVIDERS.labels(worker).set(providers)
    metrics.FEED_POSITION.labels(worker).set(sum(cursor.positions.values()))
