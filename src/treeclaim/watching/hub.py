# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed once for all watches of a worker."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol

from treeclaim.model.changes import Cursor
from treeclaim.model.errors import OverloadedError, StoreUnavailableError
from treeclaim.model.extension.cursor_text import write_cursor
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.news import load_roots, news_since, news_within
from treeclaim.store.feed.unread import present_cursor
from treeclaim.watching.change_log import ChangeLog, LogEntry, MovedNews

_LOG = logging.getLogger(__name__)

LOOK_SECONDS = 0.4
"""Seconds between two looks at the feed: a write appears within a second, with the time that reading
and sending take. A look is the small query of every read."""

_LONGEST_WAIT = 30.0
"""Seconds that anybody waits for the end of a look: as long as for any turn."""


class Listener(Protocol):
    """A watch, as the hub sees it.

    Attributes:
        wake: Called from another thread when there is news; None before it can be.
        next: Number of the first entry of the log that it has not taken.
        reached: The cursor that its client has, as text.
        roots: The present root of each provider by which it names a tree, None for one that does not exist; None for
            a watch of everything.
    """

    wake: Callable[[], object] | None
    next: int
    reached: str
    roots: Mapping[str, str | None] | None


class Hub:
    """Reads the feed in a thread while there are watches, and wakes all when there is news; thread-safe.

    Attributes:
        log: The latest news.
    """

    def __init__(self, store: Store, look_seconds: float = LOOK_SECONDS) -> None:
        self.log = ChangeLog()
        self._store = store
        self._look_seconds = look_seconds
        self._lock = threading.Lock()
        self._listeners: dict[Listener, None] = {}
        self._cursor: Cursor | None = None
        store.repeat("watching", look_seconds, self._look_if_awaited)

    def join(self, listener: Listener) -> None:
        """Let a watch take all that is committed from now on.

        Raises:
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if others held the feed for too long.
        """
        with self._lock_feed():
            if self._cursor is None:
                self._cursor = self._store.read(present_cursor)
                self.log = self.log.at(write_cursor(self._cursor))
            else:
                # A watch takes nothing that was committed before it came.
                self._look()
            listener.next, listener.reached = self.log.end, self.log.cursor
            self._listeners[listener] = None

    def leave(self, listener: Listener) -> None:
        """Forget a watch; never blocks, so the event loop may call it."""
        self._listeners.pop(listener, None)

    @contextmanager
    def _lock_feed(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=_LONGEST_WAIT):
            raise OverloadedError("change feed")
        try:
            yield
        finally:
            self._lock.release()

    def _look_if_awaited(self) -> float:
        """Read the feed once if any watch waits; return the seconds until the next look."""
        # An outage has been logged; watches get nothing meanwhile, and nothing is lost.
        with suppress(StoreUnavailableError, OverloadedError), self._lock_feed():
            if self._listeners:
                self._look()
            else:
                self._cursor = None
        return self._look_seconds

    def _look(self) -> None:
        cursor = self._cursor
        if cursor is None or self._store.positions() == cursor.positions:
            return
        entry = self._store.read(self._read_entry, cursor=cursor)
        listeners = list(self._listeners)
        if entry is None:
            # A restored database, or a row of another release: each client must hear it by itself.
            self._cursor = self._store.read(present_cursor)
            self.log = self.log.broken(write_cursor(self._cursor))
        else:
            self._cursor = entry.message.news.cursor
            if entry.message.news.is_empty:
                self.log = self.log.at(entry.message.cursor)
                return
            needed = min((listener.next for listener in listeners), default=self.log.end)
            self.log = self.log.extended(entry, needed)
        for listener in listeners:
            _wake(listener)

    def _read_entry(self, transaction: ReadTransaction, cursor: Cursor) -> LogEntry | None:
        """Return the news, with what watches get of it whose providers may have moved, at one moment."""
        news = news_since(transaction, cursor)
        if news is None:
            return None
        moves = {uuid for uuid, change in news.changes.items() if change.may_be_a_move}
        moved: dict[Listener, MovedNews] = {}
        for listener in list(self._listeners) if moves else ():
            if listener.roots is not None and not moves.isdisjoint(listener.roots):
                roots = load_roots(transaction, listener.roots.keys())
                moved[listener] = MovedNews(news_within(transaction, news, roots), roots)
        entry = LogEntry.of(news, moved)
        # Here and not in the event loop, for all watches of everything.
        _ = entry.message.event
        return entry


def _wake(listener: Listener) -> None:
    wake = listener.wake
    try:
        if wake is not None:
            wake()
    except Exception:  # noqa: BLE001 - it concerns this watch alone, which looks by itself later
        _LOG.exception("A watcher could not be woken")
