# SPDX-License-Identifier: Apache-2.0
"""Watchers: what is sent to each, and when.

A server's event loop asks them, so nothing here waits or asks the database.
"""

from collections.abc import Callable, Mapping
from time import monotonic

from treeclaim.watching import texts
from treeclaim.watching.hub import Hub
from treeclaim.watching.texts import Log, Message

COMMENT_SECONDS = 15.0
"""Seconds between two comments of a stream (contract page 99, section 4)."""

RETRY_SECONDS = 1.0
"""Seconds after which a watch for which nobody reads the feed asks again."""

_WATCH_BYTES = 1_000
"""Bytes that a watch takes with its place among the others, beside what it names."""


class Watch:
    """A watcher that waits for news.

    Attributes:
        wake: What the server wants to be called when there may be something to send.
        nbytes: Bytes that it holds while it waits; what several name is counted where it came first.
        is_over: Whether nothing more will come.
        due: When `take` is to be called in any case, of the monotonic clock.
        next: Number of the first entry of its channel's log that it has not been told.
        reached: The cursor that the client has, or the hub had when this began to wait.
    """

    def __init__(self, hub: Hub, ends: float) -> None:
        """Begin to wait.

        Args:
            hub: Reads the feed.
            ends: When it is over, of the monotonic clock.

        Raises:
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if others held the feed for too long.
        """
        self.wake: Callable[[], object] | None = None
        self.nbytes = _WATCH_BYTES
        self.is_over = False
        self.due = ends
        self.next = 0
        self.reached = ""
        self._hub = hub
        self._ends = ends
        self._missed: Message | None = None
        self._has_to_begin_again = False
        self._channel = hub.join(self)

    def narrow(self, roots: Mapping[str, str | None]) -> None:
        """Watch some trees only, before anything is taken.

        Args:
            roots: The root of each provider by which a tree is named, as of a moment after this
                began to wait; None for unknown ones.

        Raises:
            OverloadedError: if too many trees are watched, or others held the feed for too long.
        """
        narrowed = self._hub.narrow(self, roots)
        if narrowed is None:
            self._has_to_begin_again = True
        else:
            self._channel, self._missed, added_bytes = narrowed
            self.nbytes += added_bytes

    def take(self) -> bytes | None:
        """Return the data to send now, once; None if there is none."""
        if not self._hub.is_looking:
            self._hub.wake()
        piece = self._taken()
        self.due = self._due()
        if not self._hub.is_looking:
            self.due = min(self.due, monotonic() + RETRY_SECONDS)
        return piece

    def finish(self) -> bytes | None:
        """Return the final data before the server stops."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop waiting."""
        self._hub.leave(self)

    def _taken(self) -> bytes | None:
        raise NotImplementedError

    def _due(self) -> float:
        return self._ends

    def _is_behind(self, log: Log) -> bool:
        """Tell whether it has missed something; its next request is told in the usual way."""
        return self._has_to_begin_again or self.next < log.first

    def _news(self, log: Log) -> Message | None:
        """Return the news, once, if there is some."""
        missed, self._missed = self._missed, None
        if missed is not None:
            return missed
        if self.next == log.end:
            return None
        number, self.next = self.next, log.end
        return log.since(number)


class EventStream(Watch):
    """Server-sent events until the time is over."""

    def __init__(self, hub: Hub, ends: float) -> None:
        super().__init__(hub, ends)
        self._plan()

    def finish(self) -> bytes | None:
        """End the stream: the client comes again, with the cursor of the last event."""
        self.is_over = True
        return None

    def _taken(self) -> bytes | None:
        """Return the next event, or a comment when one is due."""
        # Before the log: then all is told up to there, if there is nothing in the log.
        reached = self._hub.reached
        log = self._channel.log
        if self._is_behind(log) or monotonic() >= self._ends:
            return self.finish()
        piece = None
        news = self._news(log)
        if news is not None:
            self.reached = news.cursor
            piece = news.event
        elif monotonic() >= self._comment_due:
            piece = texts.comment(None if reached == self.reached else reached)
            self.reached = reached
        if piece is not None:
            self._plan()
        return piece

    def _plan(self) -> None:
        self._comment_due = monotonic() + COMMENT_SECONDS
        self.due = self._due()

    def _due(self) -> float:
        return min(self._ends, self._comment_due)


class LongPoll(Watch):
    """Return an answer as soon as there is a change, or when the time is over."""

    def __init__(self, hub: Hub, ends: float, cursor: str) -> None:
        """Begin to wait for news after a cursor."""
        super().__init__(hub, ends)
        self._last = cursor

    def finish(self) -> bytes | None:
        """Answer with what there is."""
        self._ends = 0.0
        return self._taken()

    def _taken(self) -> bytes | None:
        """Return the answer, once there is one."""
        # Before the log, as above.
        reached = self._hub.reached
        log = self._channel.log
        if self._is_behind(log):
            return self._nothing()
        news = self._news(log)
        if news is not None:
            self.is_over = True
            return news.document
        if reached != self.reached:
            self._last = reached
        return self._nothing() if monotonic() >= self._ends else None

    def _nothing(self) -> bytes:
        self.is_over = True
        return texts.nothing_since(self._last)
