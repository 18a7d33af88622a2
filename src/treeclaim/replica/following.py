# SPDX-License-Identifier: Apache-2.0
"""Keeps a Forest equal to the store: the only module that knows both.

Each write also does a step that keeps the Forest small. But an idle worker, or one that is
only read from, must not have two tables for long, so it does such steps while nobody writes.
"""

import gc
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, perf_counter

from treeclaim import allocator, metrics
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import Held
from treeclaim.gate import Gate
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.replica.asking import LONGEST_WAIT, HeldAsked
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
        forest: All providers as they were when the store was last asked.
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
            if self._cursor is None:
                with _made_to_stay(self.forest):
                    self._follow()
            else:
                self._follow()
        except StoreUnavailableError:
            self._failed_at = monotonic()
            raise
        self._looked_at = begin

    def catch_up_within(self, transaction: ReadTransaction) -> None:
        """Apply everything that a fresh transaction sees.

        The Forest is the same picture then as that of the transaction's snapshot.
        """
        begin = perf_counter()
        changes = changes_since(transaction, self._cursor)
        if not self.forest.agrees_with(changes):
            _LOG.debug(_DISAGREES)
            changes = changes_since(transaction, None)
        if self._cursor is None or changes.cursor.positions != self._cursor.positions:
            self._apply(changes, begin)

    def with_holds(self, holds: HeldAsked) -> Forest:
        """Return the Forest, once it has caught up, with what is asked about holds at its moment.

        It is brought to another snapshot for that. The caller has the turn already, and only then
        waits for a connection.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if not holds:
            return self.forest

        def read(transaction: ReadTransaction) -> Held:
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

    def tidy(self) -> bool:
        """Do a step of what keeps the Forest small; return whether there is more to do."""
        if self.forest.tidy():
            # A question in the middle of its work has rows that are no longer the same.
            self.version += 1
        return not self.forest.is_tidy

    @property
    def cursor(self) -> Cursor:
        """Return the Forest's position in the change feed, once it has caught up."""
        if self._cursor is None:
            raise RuntimeError("it has not caught up yet")
        return self._cursor

    def _follow(self) -> None:
        begin = perf_counter()
        changes = self._store.changes(self._cursor)
        if changes is not None and not self.forest.agrees_with(changes):
            _LOG.debug(_DISAGREES)
            changes = self._store.changes(None)
        if changes is not None:
            self._apply(changes, begin)

    def _apply(self, changes: Changes, begin: float) -> None:
        if changes.complete:
            why = (
                "the feed does not lead on from its position"
                if self._cursor
                else "it has no position"
            )
            _LOG.debug("The Forest is loaded: %s", why)
        # Should applying fail half-way, the next read must not trust this Forest.
        self._cursor = None
        self.version += 1
        self.forest.apply(changes)
        self._cursor = changes.cursor
        if self._is_worker:
            _count(changes, len(self.forest), perf_counter() - begin)


@contextmanager
def _made_to_stay(forest: Forest) -> Iterator[None]:
    """Freeze the objects of a large Forest, loaded within the block, for the garbage collector.

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
        metrics.FOREST_CHANGED.inc(
            len(changes.records) + len(changes.removed) + len(changes.usage)
        )
    _tell_size(providers, changes.cursor)


def _tell_size(providers: int, cursor: Cursor) -> None:
    worker = str(os.getpid())
    metrics.FOREST_PROVIDERS.labels(worker).set(providers)
    metrics.FEED_POSITION.labels(worker).set(sum(cursor.positions.values()))


_PAUSE = 0.005
"""Seconds between two steps, each of about a millisecond: a million providers take five seconds."""


class Tidying:
    """A thread that is there as long as there is something to do."""

    def __init__(self, turn: Gate, follower: Follower) -> None:
        self._turn = turn
        self._follower = follower
        self._is_running = threading.Lock()

    def wake(self) -> None:
        """Begin, if there is something to do and nobody does it; called within a turn.

        If no thread can be started, the next turn tries again.
        """
        if self._follower.forest.is_tidy or not self._is_running.acquire(blocking=False):
            return
        try:
            start_helper_thread("tidying", self._run)
        except RuntimeError:
            self._is_running.release()

    def _run(self) -> None:
        while self._step():
            time.sleep(_PAUSE)
        self._is_running.release()

    def _step(self) -> bool:
        if not self._turn.acquire(LONGEST_WAIT):
            return True
        try:
            return self._follower.tidy()
        finally:
            self._turn.release()
