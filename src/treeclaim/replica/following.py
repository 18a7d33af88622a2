# SPDX-License-Identifier: Apache-2.0
"""Keeps a Forest equal to the store: the one place where the two meet."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, perf_counter

from treeclaim import allocator, metrics
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.unread import changes_since

_LARGE_FOREST = 10_000
"""Providers from which on the garbage collector is spared a Forest."""

_FAILED_MEANWHILE = "The database does not answer. Try again."


class Follower:
    """A Forest that is brought up to date before each use. One thread at a time may use it.

    Attributes:
        forest: All providers as they were when the store was last asked.
        version: Another number after each change, so that what was worked out can be told from
            what holds now.
    """

    def __init__(self, store: Store) -> None:
        self.forest = Forest()
        self.version = 0
        self._store = store
        self._cursor: Cursor | None = None
        self._failed_at = 0.0

    def catch_up(self, since: float) -> None:
        """Take in everything that was committed so far.

        Args:
            since: When the caller began to wait for its turn, of the monotonic clock. If the
                database has failed since then, it is not asked again: what another thread waited
                for in vain, this one would too.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if self._failed_at > since:
            raise StoreUnavailableError(_FAILED_MEANWHILE)
        try:
            if self._cursor is None:
                with _made_to_stay(self.forest):
                    self._follow()
            else:
                self._follow()
        except StoreUnavailableError:
            self._failed_at = monotonic()
            raise

    def catch_up_within(self, transaction: ReadTransaction) -> None:
        """Take in everything that a transaction sees, which has not asked anything yet.

        The Forest is the same picture then as that of the transaction's snapshot.
        """
        begin = perf_counter()
        changes = changes_since(transaction, self._cursor)
        if self._cursor is None or changes.cursor.positions != self._cursor.positions:
            self._apply(changes, begin)

    @property
    def cursor(self) -> Cursor:
        """Return how far the Forest has come in the change feed, once it has caught up."""
        if self._cursor is None:
            raise RuntimeError("it has not caught up yet")
        return self._cursor

    def _follow(self) -> None:
        begin = perf_counter()
        changes = self._store.changes(self._cursor)
        if changes is not None:
            self._apply(changes, begin)

    def _apply(self, changes: Changes, begin: float) -> None:
        # Should applying fail half-way, the next read must not trust this Forest.
        self._cursor = None
        self.version += 1
        self.forest.apply(changes)
        self._cursor = changes.cursor
        _count(changes, len(self.forest.living_rows), perf_counter() - begin)


@contextmanager
def _made_to_stay(forest: Forest) -> Iterator[None]:
    """Spare the garbage collector the objects of a large Forest that is loaded meanwhile.

    It holds some for each provider, in no cycles and for long. Looking through them again and
    again took a quarter of the time of loading them, and made answers wait afterwards.
    """
    gc.disable()
    try:
        yield
        if len(forest) >= _LARGE_FOREST:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            # What was read from the database is a tenth of the memory, and not needed any more.
            allocator.give_back()
    finally:
        gc.enable()


def _count(changes: Changes, providers: int, seconds: float) -> None:
    if changes.complete:
        metrics.FOREST_LOAD_SECONDS.observe(seconds)
    else:
        metrics.FOREST_CHANGED.inc(len(changes.records) + len(changes.removed))
    worker = str(os.getpid())
    metrics.FOREST_PROVIDERS.labels(worker).set(providers)
    metrics.FEED_POSITION.labels(worker).set(sum(changes.cursor.positions.values()))
