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

POLL_SECONDS = 0.4
"""Seconds between two polls of the feed: a write appears within a second, including the time to read and
send it. A poll is one small query."""

_LONGEST_WAIT = 30.0
"""Seconds that a watch waits for the end of a poll, as for any turn."""


class Listener(Protocol):
    """The interface of a watch for the hub.

    Attributes:
        wake: Called from another thread when the log has news; None until the server sets it.
        next: Number of the first entry of the log that it has not read.
        reached: The cursor of its client, as text.
        roots: The present root of each watched provider, None for an unknown provider; None for a watch of everything.
    """

    wake: Callable[[], object] | None
    next: int
    reached: str
    roots: Mapping[str, str | None] | None


class Hub:
    """Polls the feed in a thread while watches exist, and wakes them for news; thread-safe.

    Attributes:
        log: The latest news.
    """

    def __init__(self, store: Store, poll_seconds: float = POLL_SECONDS) -> None:
        self.log = ChangeLog()
        self._store = store
        self._poll_seconds = poll_seconds
        self._lock = threading.Lock()
        self._listeners: dict[Listener, None] = {}
        self._cursor: Cursor | None = None
        store.repeat("watching", poll_seconds, self._poll_if_watched)

    def join(self, listener: Listener) -> None:
        """Add a watch of everything that is committed from now on.

        Raises:
            StoreUnavailableError: if the database does not respond.
            OverloadedError: if the running poll did not end in time.
        """
        with self._lock_feed():
            if self._cursor is None:
                self._cursor = self._store.read(present_cursor)
                self.log = self.log.at(write_cursor(self._cursor))
            else:
                # A watch does not get earlier commits.
                self._poll()
            listener.next, listener.reached = self.log.end, self.log.cursor
            self._listeners[listener] = None

    def leave(self, listener: Listener) -> None:
        """Remove a watch; never blocks, so the event loop may call it."""
        self._listeners.pop(listener, None)

    @contextmanager
    def _lock_feed(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=_LONGEST_WAIT):
            raise OverloadedError("change feed")
        try:
            yield
        finally:
            self._lock.release()

    def _poll_if_watched(self) -> float:
        """Poll the feed once if any watch exists; return the seconds until the next poll."""
        # The store logs outages; a later poll reads the missed changes.
        with suppress(StoreUnavailableError, OverloadedError), self._lock_feed():
            if self._listeners:
                self._poll()
            else:
                self._cursor = None
        return self._poll_seconds

    def _poll(self) -> None:
        cursor = self._cursor
        if cursor is None or self._store.positions() == cursor.positions:
            return
        entry = self._store.read(self._read_entry, cursor=cursor)
        listeners = list(self._listeners)
        if entry is None:
            # A restored database, or a row of another release: each client must read everything again.
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
        """Return the news and, from the same snapshot, the news for watches of providers that may have moved."""
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
        # Serialized here for all watches of everything, and not in the event loop.
        _ = entry.message.event
        return entry


def _wake(listener: Listener) -> None:
    wake = listener.wake
    try:
        if wake is not None:
            wake()
    except Exception:  # noqa: BLE001 - affects this watch only, which reads the log again when it is due
        _LOG.exception("A watcher could not be woken")
