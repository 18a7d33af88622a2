# SPDX-License-Identifier: Apache-2.0
"""Watches, which select the changes of their trees from the log, and the hub, which reads the feed for all watches.

The event loop of a server calls watches, so they neither block nor query the database. The hub has a thread.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic

from treeclaim.gate import Gate
from treeclaim.model.changes import Cursor, News, write_cursor
from treeclaim.model.errors import OverloadedError, StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.news import load_news, load_roots, select_news
from treeclaim.watching.change_log import (
    ChangeLog,
    LogEntry,
    Message,
    MovedNews,
    comment,
    empty_document,
)

_LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.4
"""Seconds between two polls of the feed, each a small query. Clients receive a write within a second."""

_LONGEST_WAIT = 30.0
"""Most seconds to wait for the end of a poll, as for any turn."""

COMMENT_SECONDS = 15.0
"""Seconds between two comments of a stream (contract page 99, section 4)."""

_WATCH_BYTES = 1_000
"""Bytes of a watch without its providers."""

_NAME_BYTES = 250
"""Bytes of each watched provider: its UUID and its root's, in a dictionary and in a set."""


class Watch:
    """A client that waits for news.

    Attributes:
        wake: Callback of the server, called when the watch may have data to send.
        nbytes: Memory of the waiting watch.
        is_over: Whether it has ended.
        due: Time, on the monotonic clock, at which to call `take` without a wake-up.
        next_number: Number of the first unread entry of the log.
        reached_cursor: The cursor of the client; at first the cursor of the hub.
        roots: The present root of each watched provider; None for a watch of everything.
    """

    def __init__(self, hub: "Hub", ends: float) -> None:
        """Begin to watch, until `ends` on the monotonic clock; raise as `Hub.join`."""
        self.wake: Callable[[], object] | None = None
        self.nbytes = _WATCH_BYTES
        self.is_over = False
        self.due = ends
        self.next_number = 0
        self.reached_cursor = ""
        self.roots: Mapping[str, str | None] | None = None
        self._hub = hub
        self._ends = ends
        self._comment_due = float("inf")
        self._trees = frozenset[str]()
        self._has_missed_news = False
        hub.join(self)

    def narrow(self, roots: Mapping[str, str | None]) -> None:
        """Watch only the trees of some providers; must precede `take`.

        `roots` are the roots of the providers (None for unknown ones), read after the watch began.
        """
        self._follow(roots)
        self.nbytes += _NAME_BYTES * len(roots)

    def _follow(self, roots: Mapping[str, str | None]) -> None:
        self.roots = {uuid: uuid if root == uuid else root for uuid, root in roots.items()}
        self._trees = frozenset(roots) | {root for root in roots.values() if root is not None}

    def take(self) -> bytes | None:
        """Return the next data to send; None without data."""
        piece = self._next_piece(self._hub.log, is_last=monotonic() >= self._ends)
        self.due = min(self._ends, self._comment_due)
        return piece

    def finish(self) -> bytes | None:
        """Return the final data, before the server stops."""
        return self._next_piece(self._hub.log, is_last=True)

    def close(self) -> None:
        """Remove the watch from the hub."""
        self._hub.leave(self)

    def _next_piece(self, log: ChangeLog, *, is_last: bool) -> bytes | None:
        raise NotImplementedError

    def _read_news(self, log: ChangeLog) -> Message | None:
        """Return the unread news or None; set `_has_missed_news` if the log has dropped unread entries."""
        number, self.next_number = self.next_number, log.end
        if number < log.first_number:
            self._has_missed_news = True
            return None
        selected_news = [news for entry in log.list_since(number) if (news := self._select(entry))]
        if not selected_news:
            return None
        last_message = log.entries[-1].message
        if selected_news == [last_message.news]:
            return last_message
        return Message(News.merge(selected_news), log.cursor)

    def _select(self, entry: LogEntry) -> News | None:
        """Return an entry's news for the watched trees; update the roots of moved providers."""
        roots, news = self.roots, entry.message.news
        if roots is None:
            return news
        moved_news = entry.moved_news.get(self)
        if moved_news is not None and moved_news.roots != roots:
            selected_news = moved_news.news
            self._follow(moved_news.roots)
        elif entry.touched_uuids is not None and self._trees.isdisjoint(entry.touched_uuids):
            return None
        else:
            selected_news = news.within(roots)
            if any(news.changes[uuid].root != roots[uuid] for uuid in roots.keys() & news.changes):
                # The provider moved while this watch began.
                self._has_missed_news = True
        return None if selected_news.is_empty else selected_news


class EventStream(Watch):
    """Server-sent events until the end of the watch."""

    def __init__(self, hub: "Hub", ends: float) -> None:
        super().__init__(hub, ends)
        self._plan_comment()

    def _next_piece(self, log: ChangeLog, *, is_last: bool) -> bytes | None:
        """Return the next event, or a comment when one is due; at the end, the client resumes after the last event."""
        news = self._read_news(log)
        if is_last or self._has_missed_news:
            self.is_over = True
            return None
        if news is not None:
            self.reached_cursor = news.cursor
            piece = news.event
        elif monotonic() >= self._comment_due:
            piece = comment(None if log.cursor == self.reached_cursor else log.cursor)
            self.reached_cursor = log.cursor
        else:
            return None
        self._plan_comment()
        return piece

    def _plan_comment(self) -> None:
        self._comment_due = monotonic() + COMMENT_SECONDS
        self.due = min(self._ends, self._comment_due)


class LongPoll(Watch):
    """A watch with a single response, at the first news or at the end of the watch."""

    def __init__(self, hub: "Hub", ends: float, cursor: str) -> None:
        """Wait for news after a cursor."""
        super().__init__(hub, ends)
        self._response_cursor = cursor

    def _next_piece(self, log: ChangeLog, *, is_last: bool) -> bytes | None:
        news = self._read_news(log)
        if news is not None and not self._has_missed_news:
            self.is_over = True
            return news.document
        if not self._has_missed_news and log.cursor != self.reached_cursor:
            self._response_cursor = log.cursor
        if not is_last and not self._has_missed_news:
            return None
        self.is_over = True
        return empty_document(self._response_cursor)


class Hub:
    """Polls the feed in a thread while watches exist, and wakes them for news; thread-safe."""

    def __init__(self, store: Store, poll_seconds: float = POLL_SECONDS) -> None:
        self.log = ChangeLog()
        self._store = store
        self._poll_seconds = poll_seconds
        self._feed = Gate(1)
        self._watches: dict[Watch, None] = {}
        self._cursor: Cursor | None = None
        store.repeat("watching", poll_seconds, self._poll_if_watched)

    def join(self, watch: Watch) -> None:
        """Add a watch of all later commits.

        Raises:
            StoreUnavailableError: if the database does not respond.
            OverloadedError: if the running poll did not end in time.
        """
        with self._feed.occupy(_LONGEST_WAIT, resource="change feed"):
            if self._cursor is None:
                self._cursor = self._store.load_cursor()
                self.log = self.log.with_cursor(write_cursor(self._cursor))
            else:
                # The watch must not receive earlier commits.
                self._poll()
            watch.next_number, watch.reached_cursor = self.log.end, self.log.cursor
            self._watches[watch] = None

    def leave(self, watch: Watch) -> None:
        """Remove a watch without blocking, since the event loop calls it."""
        self._watches.pop(watch, None)

    def _poll_if_watched(self) -> float:
        """Poll the feed if any watch exists; return the seconds until the next poll."""
        # The store logs outages; a later poll reads the missed changes.
        with (
            suppress(StoreUnavailableError, OverloadedError),
            self._feed.occupy(_LONGEST_WAIT, resource="change feed"),
        ):
            if self._watches:
                self._poll()
            else:
                self._cursor = None
        return self._poll_seconds

    def _poll(self) -> None:
        cursor = self._cursor
        if cursor is None or self._store.load_cursor() == cursor:
            return
        entry = self._store.read(self._read_entry, cursor=cursor)
        watches = list(self._watches)
        if entry is None:
            # After the restore of a database, or a row of another release, each client must read everything again.
            self._cursor = self._store.load_cursor()
            self.log = self.log.without_entries(write_cursor(self._cursor))
        else:
            self._cursor = entry.message.news.cursor
            if entry.message.news.is_empty:
                self.log = self.log.with_cursor(entry.message.cursor)
                return
            needed_number = min((watch.next_number for watch in watches), default=self.log.end)
            self.log = self.log.with_entry(entry, needed_number)
        for watch in watches:
            _wake(watch)

    def _read_entry(self, transaction: ReadTransaction, cursor: Cursor) -> LogEntry | None:
        """Return the news, and the news for watches with moved providers from the same snapshot; None for a gap."""
        news = load_news(transaction, cursor)
        if news is None:
            return None
        moves = {uuid for uuid, change in news.changes.items() if change.may_be_a_move}
        news_by_watch: dict[Watch, MovedNews] = {}
        for watch in list(self._watches) if moves else ():
            if watch.roots is not None and not moves.isdisjoint(watch.roots):
                roots = load_roots(transaction, watch.roots.keys())
                news_by_watch[watch] = MovedNews(select_news(transaction, news, roots), roots)
        entry = LogEntry.of(news, news_by_watch)
        # Serialize here for all watches of everything, not in the event loop.
        _ = entry.message.event
        return entry


def _wake(watch: Watch) -> None:
    wake = watch.wake
    try:
        if wake is not None:
            wake()
    except Exception:  # noqa: BLE001 - affects this watch only, which reads the log again when it is due
        _LOG.exception("A watcher could not be woken")
