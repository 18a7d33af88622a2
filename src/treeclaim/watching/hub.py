# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed once for all watchers of a worker."""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress

from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.changes import Cursor
from treeclaim.model.errors import OverloadedError, StoreUnavailableError
from treeclaim.model.extension.cursor_text import written
from treeclaim.model.extension.news import News, ProviderChange
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.news import members_of, news_since
from treeclaim.store.feed.unread import present_cursor
from treeclaim.watching.channels import Channel, Index, Listener
from treeclaim.watching.texts import Message

_LOG = logging.getLogger(__name__)

Moves = Mapping[str, AbstractSet[str]]
"""Named providers that have another tree now, with the former one and the new one."""

LOOK_SECONDS = 0.4
"""Seconds between two looks at the feed: a write appears within a second, with the time that reading
and sending take. A look is the small query of every read."""

_LONGEST_WAIT = 30.0
"""Seconds that anybody waits for the end of a look: as long as for any turn."""

_MOST_CHANGES = 200_000
"""Changes in the logs of all channels: some 100 MB, if all watchers stop reading at once."""


class Hub:
    """Reads the feed while any watcher waits, and wakes them; thread-safe.

    Attributes:
        reached: The cursor, as text, up to which all channels have been told; it is replaced after
            their logs are.
        is_looking: Whether a thread reads the feed; if not, none could be started.
    """

    def __init__(self, store: Store, look_seconds: float = LOOK_SECONDS) -> None:
        self.reached = ""
        self._store = store
        self._look_seconds = look_seconds
        self._lock = threading.Lock()
        self._index = Index()
        self._waiting: dict[Listener, Channel] = {}
        self._left: deque[Channel] = deque()
        self._cursor: Cursor | None = None
        self.is_looking = False
        self._guard = threading.Lock()

    @property
    def waiting(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def wake(self) -> None:
        """Read the feed from now on; never blocks, so the event loop may call it."""
        with self._guard:
            if self.is_looking:
                return
            self.is_looking = True
        try:
            start_helper_thread("watching", self._look_on)
        except (RuntimeError, MemoryError):
            # The next wake tries again.
            self.is_looking = False
            _LOG.exception("No thread can read the change feed for watchers")

    def join(self, listener: Listener) -> Channel:
        """Begin to wait; the channel of everything has all that is committed from now on.

        Raises:
            StoreUnavailableError: if the database does not answer.
            OverloadedError: if others held the feed for too long.
        """
        with self._locked():
            if self._cursor is None:
                self._cursor = self._store.read(present_cursor)
                self.reached = written(self._cursor)
            else:
                # So that no watcher is told of what was committed before it came.
                self._look()
            channel = self._index.everything
            self._seat(listener, channel)
        self.wake()
        return channel

    def narrow(
        self, listener: Listener, roots: Mapping[str, str | None]
    ) -> tuple[Channel, Message | None, int] | None:
        """Restrict a listener that has joined to some trees.

        Args:
            listener: The listener.
            roots: The root of each provider by which a tree is named, as of a moment after it had
                joined; None for unknown ones.

        Returns:
            Its channel, what was new for it since it joined, and the bytes that it took; None if it
            has to begin again, because one of the providers moved meanwhile.

        Raises:
            OverloadedError: if too many trees are watched, or others held the feed for too long.
        """
        with self._locked():
            everything = self._index.everything
            missed = None
            if listener.next < everything.log.first:
                return None
            if listener.next < everything.log.end:
                news = everything.log.since(listener.next).news
                if any(
                    news.changes[uuid].root != roots[uuid]
                    for uuid in roots.keys() & news.changes.keys()
                ):
                    return None
                missed = news.within(roots)
            channel, added_bytes = self._index.channel(roots)
            everything.listeners.pop(listener, None)
            self._seat(listener, channel)
        if missed is None or missed.is_empty:
            return channel, None, added_bytes
        return channel, Message(missed), added_bytes

    def _seat(self, listener: Listener, channel: Channel) -> None:
        listener.next, listener.reached = channel.log.end, self.reached
        channel.listeners[listener] = None
        self._waiting[listener] = channel

    def leave(self, listener: Listener) -> None:
        """Stop waiting; never blocks, so the event loop may call it."""
        channel = self._waiting.pop(listener, None)
        if channel is not None:
            channel.listeners.pop(listener, None)
            self._left.append(channel)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=_LONGEST_WAIT):
            raise OverloadedError("change feed")
        try:
            self._forget_those_left()
            yield
        finally:
            self._lock.release()

    def _forget_those_left(self) -> None:
        """Forget the channels that the last listener has left."""
        for _ in range(len(self._left)):
            channel = self._left.popleft()
            if channel.named is not None and not channel.listeners:
                self._index.discard(channel)

    def _look_on(self) -> None:
        """Read the feed until no watcher waits."""
        while self._look_if_awaited():
            time.sleep(self._look_seconds)

    def _look_if_awaited(self) -> bool:
        """Read the feed once; return whether anybody waits for more."""
        with suppress(StoreUnavailableError, OverloadedError), self._locked():
            if not self._waiting:
                self._cursor = None
                # While joining is impossible: a watcher that joins later wakes another thread.
                self.is_looking = False
                return False
            self._look()
        # An outage has been logged; the watchers are told nothing, and nothing is lost.
        return True

    def _look(self) -> None:
        cursor = self._cursor
        if cursor is None:
            return
        if self._store.positions() == cursor.positions:
            return
        news = self._store.read(self._news, cursor=cursor)
        if news is None:
            # A restored database, or a row of another release: each must hear it by itself.
            self._cursor = self._store.read(present_cursor)
            for channel in self._index.channels:
                channel.log = channel.log.broken()
            channels = self._index.channels
        else:
            channels = self._tell(*news)
            self._cursor = news[0].cursor
        self.reached = written(self._cursor)
        for channel in channels:
            channel.wake()

    def _news(
        self, transaction: ReadTransaction, cursor: Cursor
    ) -> tuple[News, Moves, dict[str, ProviderChange]] | None:
        """Return what is new, which named providers moved, and which providers are in their trees, at one moment."""
        news = news_since(transaction, cursor)
        if news is None:
            return None
        moves = self._index.moves(news)
        trees = set[str]().union(*moves.values())
        return news, moves, members_of(transaction, trees)

    def _tell(self, news: News, moves: Moves, members: dict[str, ProviderChange]) -> list[Channel]:
        """Add news to the logs that they belong to; return whose."""
        text = written(news.cursor)
        news_by_channel = self._index.divided(news, moves, members)
        if not news.is_empty:
            news_by_channel[self._index.everything] = news
        for channel, part in news_by_channel.items():
            message = Message(part, text)
            message.write()
            channel.tell(message)
        self._index.follow(news, moves)
        self._drop_too_much()
        return list(news_by_channel)

    def _drop_too_much(self) -> None:
        """Drop what was not taken in time if all logs together hold too much."""
        channels = self._index.channels
        held = sum(channel.log.changes for channel in channels)
        while held > _MOST_CHANGES:
            longest = max(channels, key=lambda channel: channel.log.changes)
            held -= longest.log.changes
            longest.log = longest.log.shortened()
            held += longest.log.changes
