# SPDX-License-Identifier: Apache-2.0
"""Watches: each selects the changes of its trees from the log.

The event loop of a server calls them, so they neither block nor query the database.
"""

from collections.abc import Callable, Mapping
from time import monotonic

from treeclaim.model.extension.news import News
from treeclaim.watching.change_log import ChangeLog, LogEntry, Message, comment, empty_document
from treeclaim.watching.hub import Hub

COMMENT_SECONDS = 15.0
"""Seconds between two comments of a stream (contract page 99, section 4)."""

_WATCH_BYTES = 1_000
"""Bytes of a watch, without the providers that it names."""

_NAME_BYTES = 250
"""Bytes of each watched provider: its UUID and that of its root, each in a dictionary and in a set."""


class Watch:
    """A client that waits for news.

    Attributes:
        wake: Callback of the server, called when the watch may have data to send.
        nbytes: Bytes that it holds while it waits.
        is_over: Whether it has ended.
        due: Time, of the monotonic clock, at which to call `take` without a wake-up.
        next: Number of the first entry of the log that it has not read.
        reached: The cursor of the client; at first that of the hub.
        roots: The present root of each watched provider; None for a watch of everything.
    """

    def __init__(self, hub: Hub, ends: float) -> None:
        """Begin to watch, until `ends` on the monotonic clock.

        Raises:
            StoreUnavailableError, OverloadedError: as `Hub.join`.
        """
        self.wake: Callable[[], object] | None = None
        self.nbytes = _WATCH_BYTES
        self.is_over = False
        self.due = ends
        self.next = 0
        self.reached = ""
        self.roots: Mapping[str, str | None] | None = None
        self._hub = hub
        self._ends = ends
        self._trees = frozenset[str]()
        self._has_missed_news = False
        hub.join(self)

    def narrow(self, roots: Mapping[str, str | None]) -> None:
        """Watch some trees only; to be called before `take`.

        Args:
            roots: The root of each watched provider, read after this watch began; None for an unknown
                provider.
        """
        self._follow(roots)
        self.nbytes += _NAME_BYTES * len(roots)

    def _follow(self, roots: Mapping[str, str | None]) -> None:
        self.roots = {uuid: uuid if root == uuid else root for uuid, root in roots.items()}
        self._trees = frozenset(roots) | {root for root in roots.values() if root is not None}

    def take(self) -> bytes | None:
        """Return the data to send now, once; None without data."""
        piece = self._next_piece(self._hub.log, is_last=monotonic() >= self._ends)
        self.due = self._next_due()
        return piece

    def finish(self) -> bytes | None:
        """Return the final data before the server stops."""
        return self._next_piece(self._hub.log, is_last=True)

    def close(self) -> None:
        """Stop waiting."""
        self._hub.leave(self)

    def _next_piece(self, log: ChangeLog, *, is_last: bool) -> bytes | None:
        raise NotImplementedError

    def _next_due(self) -> float:
        return self._ends

    def _read_news(self, log: ChangeLog) -> Message | None:
        """Return the unread news, None without news; set `_has_missed_news` if entries are missing."""
        number, self.next = self.next, log.end
        if number < log.first:
            self._has_missed_news = True
            return None
        selected = [news for entry in log.since(number) if (news := self._select(entry))]
        if not selected:
            return None
        last = log.entries[-1].message
        if selected == [last.news]:
            return last
        return Message(News.as_one(selected), log.cursor)

    def _select(self, entry: LogEntry) -> News | None:
        """Return the news of an entry for the watched trees; update the roots of moved providers."""
        roots, news = self.roots, entry.message.news
        if roots is None:
            return news
        moved = entry.moved.get(self)
        if moved is not None and moved.roots != roots:
            selected = moved.news
            self._follow(moved.roots)
        elif entry.touched is not None and self._trees.isdisjoint(entry.touched):
            return None
        else:
            selected = news.within(roots)
            if any(news.changes[uuid].root != roots[uuid] for uuid in roots.keys() & news.changes):
                # The provider moved while this watch began.
                self._has_missed_news = True
        return None if selected.is_empty else selected


class EventStream(Watch):
    """Server-sent events until the end of the watch."""

    def __init__(self, hub: Hub, ends: float) -> None:
        super().__init__(hub, ends)
        self._plan_comment()

    def finish(self) -> bytes | None:
        """End the stream; the client reconnects with the cursor of the last event."""
        self.is_over = True
        return None

    def _next_piece(self, log: ChangeLog, *, is_last: bool) -> bytes | None:
        """Return the next event, or a comment when one is due."""
        news = self._read_news(log)
        if is_last or self._has_missed_news:
            return self.finish()
        if news is not None:
            self.reached = news.cursor
            piece = news.event
        elif monotonic() >= self._comment_due:
            piece = comment(None if log.cursor == self.reached else log.cursor)
            self.reached = log.cursor
        else:
            return None
        self._plan_comment()
        return piece

    def _plan_comment(self) -> None:
        self._comment_due = monotonic() + COMMENT_SECONDS
        self.due = self._next_due()

    def _next_due(self) -> float:
        return min(self._ends, self._comment_due)


class LongPoll(Watch):
    """One response, at the first news or at the end of the watch."""

    def __init__(self, hub: Hub, ends: float, cursor: str) -> None:
        """Begin to wait for news after a cursor."""
        super().__init__(hub, ends)
        self._response_cursor = cursor

    def _next_piece(self, log: ChangeLog, *, is_last: bool) -> bytes | None:
        """Return the response, once it is known."""
        news = self._read_news(log)
        if news is not None and not self._has_missed_news:
            self.is_over = True
            return news.document
        if not self._has_missed_news and log.cursor != self.reached:
            self._response_cursor = log.cursor
        if not is_last and not self._has_missed_news:
            return None
        self.is_over = True
        return empty_document(self._response_cursor)
