# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed once for all watchers of a worker."""

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from treeclaim.model.changes import Cursor
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import Store
from treeclaim.store.feed.news import news_since
from treeclaim.store.feed.unread import present_cursor
from treeclaim.watching.log import Log

_LOG = logging.getLogger(__name__)

LOOK_SECONDS = 0.4
"""Seconds between two looks at the feed: a write appears within a second, with the time that reading
and sending take. A look is the small query of every read."""


class Waiting(Protocol):
    """A watcher that waits for news.

    Attributes:
        wake: Called from another thread when there is some; None before it can be.
    """

    wake: Callable[[], None] | None


class Hub:
    """Reads the feed while any watcher waits, and wakes them; thread-safe.

    Attributes:
        log: The latest news. It is replaced, never changed, so no lock is needed to read it.
    """

    def __init__(self, store: Store, look_seconds: float = LOOK_SECONDS) -> None:
        self.log = Log()
        self._store = store
        self._look_seconds = look_seconds
        self._lock = threading.Lock()
        self._waiting: dict[Waiting, None] = {}
        self._cursor: Cursor | None = None
        self._pause = threading.Event()

    def join(self, waiting: Waiting) -> int:
        """Begin to wait; the log has everything committed from now on, from the returned number on.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        with self._lock:
            if self._cursor is None:
                self._cursor = self._store.read(present_cursor)
                self.log = self.log.broken()
                threading.Thread(target=self._look_on, name="watching", daemon=True).start()
            else:
                # So that nobody is told of what was committed before he came.
                self._look()
            self._waiting[waiting] = None
            return self.log.end

    def leave(self, waiting: Waiting) -> None:
        """Stop waiting; never blocks, so the event loop may call it."""
        self._waiting.pop(waiting, None)

    @property
    def waiting(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def _look_on(self) -> None:
        """Read the feed until no watcher waits."""
        while True:
            self._pause.wait(self._look_seconds)
            try:
                with self._lock:
                    if not self._waiting:
                        self._cursor = None
                        return
                    self._look()
            except StoreUnavailableError:
                # It has been logged; the watchers are told nothing, and nothing is lost.
                continue
            except Exception:  # noqa: BLE001 - the next look may succeed, and others watch on
                _LOG.exception("The change feed could not be read for watchers")

    def _look(self) -> None:
        cursor = self._cursor
        if cursor is None or self._store.positions() == cursor.positions:
            return
        news = self._store.read(news_since, cursor)
        if news is None:
            # A restored database, or a row of another release: each must hear it by itself.
            self._cursor = self._store.read(present_cursor)
            self.log = self.log.broken()
        else:
            self._cursor = news.cursor
            self.log = self.log.extended(news)
        for wake in {waiting.wake for waiting in list(self._waiting)}:
            if wake is not None:
                wake()
