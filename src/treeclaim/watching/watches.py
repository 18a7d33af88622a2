# SPDX-License-Identifier: Apache-2.0
"""Watchers: what is sent to each, and when.

A server's event loop asks them, so nothing here waits, takes a lock or asks the database.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from time import monotonic

from treeclaim.model.extension.news import News
from treeclaim.watching import texts
from treeclaim.watching.hub import Hub
from treeclaim.watching.log import Log

COMMENT_SECONDS = 15.0
"""Between two comments of a stream (contract page 99, section 4)."""

Trees = Mapping[str, AbstractSet[str]]
"""The trees that somebody watches, by the providers that were named."""


class Watch:
    """A watcher that waits for news.

    Attributes:
        wake: What the server wants to be called when there may be something to send.
        is_over: Whether nothing more will come.
        due: When `take` is to be called in any case, of the monotonic clock.
    """

    def __init__(self, hub: Hub, ends: float) -> None:
        """Begin to wait.

        Args:
            hub: Who reads the feed.
            ends: When it is over, of the monotonic clock.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        self.wake: Callable[[], None] | None = None
        self.is_over = False
        self.due = ends
        self.trees: Trees | None = None
        self._hub = hub
        self._ends = ends
        self._next = hub.join(self)

    def take(self) -> bytes | None:
        """Return the data to send now, once; None if there is none."""
        raise NotImplementedError

    def finish(self) -> bytes | None:
        """Return the final data before the server stops."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop waiting."""
        self._hub.leave(self)

    def _news(self, log: Log) -> News:
        """Return the news, once; there must be some."""
        news = log.since(self._next)
        self._next = log.end
        if self.trees is None:
            return news
        found = news.within(self.trees)
        self.trees = {named: roots | _came_to(named, news) for named, roots in self.trees.items()}
        return found


def _came_to(named: str, news: News) -> AbstractSet[str]:
    change = news.changes.get(named)
    return frozenset() if change is None or change.trees is None else change.trees


class Stream(Watch):
    """Server-sent events until the time is over."""

    def __init__(self, hub: Hub, ends: float) -> None:
        super().__init__(hub, ends)
        self._passed_over: News | None = None
        self._plan()

    def take(self) -> bytes | None:
        """Return the next event, or a comment when one is due."""
        log = self._hub.log
        if self._next < log.first or monotonic() >= self._ends:
            self.is_over = True
            return None
        piece = self._event(log) if self._next < log.end else None
        if piece is None and monotonic() >= self._comment_due:
            piece = texts.comment(self._passed_over)
            self._passed_over = None
        if piece is not None:
            self._plan()
        return piece

    def finish(self) -> bytes | None:
        """End the stream: the client comes again, with the cursor of the last event."""
        self.is_over = True
        return None

    def _event(self, log: Log) -> bytes | None:
        if self.trees is not None:
            news = self._news(log)
            written = b"" if news.is_empty else texts.event(news)
        else:
            news, written = self._shared(log)
        self._passed_over = news if news.is_empty else None
        return written or None

    def _shared(self, log: Log) -> tuple[News, bytes]:
        number, self._next = self._next, log.end
        if number not in log.written:
            news = log.since(number)
            log.written[number] = (news, b"" if news.is_empty else texts.event(news))
        return log.written[number]

    def _plan(self) -> None:
        self._comment_due = monotonic() + COMMENT_SECONDS
        self.due = min(self._ends, self._comment_due)


class LongPoll(Watch):
    """One answer, as soon as there is something to tell, or when the time is over."""

    def __init__(self, hub: Hub, ends: float, cursor: str) -> None:
        """Begin to wait for news after a cursor."""
        super().__init__(hub, ends)
        self._cursor = cursor
        self._latest: News | None = None

    def take(self) -> bytes | None:
        """Return the answer, once there is one."""
        log = self._hub.log
        if self._next < log.first:
            # The next request is told why, by the usual way.
            return self._nothing()
        if self._next < log.end:
            self._latest = self._news(log)
            if not self._latest.is_empty:
                self.is_over = True
                return texts.document(self._latest)
        return self.finish() if monotonic() >= self._ends else None

    def finish(self) -> bytes | None:
        """Answer that there is nothing new."""
        if self._latest is None:
            return self._nothing()
        self.is_over = True
        return texts.document(self._latest)

    def _nothing(self) -> bytes:
        self.is_over = True
        return texts.nothing_since(self._cursor)
