# SPDX-License-Identifier: Apache-2.0
"""Work that is done in rounds, one at a time, whenever somebody wakes it: no wake is lost.

A caller that has left something to do calls `wake`, and a round begins after that call: at once if none
is under way, otherwise after the present one. This is so whatever happens:

- a wake during a round, however late in it, causes another round;
- a round that fails is logged, and followed by another one;
- if rounds cannot be begun, for instance for lack of threads, the next wake tries again; callers with a
  timer call `wake` from it while `is_under_way` is False;
- if a thread that does rounds ends in the middle, the next wake starts over.

The caller notes what is to be done before it wakes; so any number of wakes are one round, and
waking without a pause makes one round after the other, between which others have their turn.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOG = logging.getLogger(__name__)


class Rounds:
    """Rounds of one kind of work; threads and an event loop may share them."""

    def __init__(
        self, work: Callable[[], bool], begin: Callable[[], object], what: str = "work"
    ) -> None:
        """Do nothing until somebody wakes.

        Args:
            work: One round; returns whether another one is due though nobody wakes.
            begin: Has `run` or `turn` called soon, by a thread or an event loop; does not wait. It
                raises an exception if it cannot.
            what: Names the work in log lines.
        """
        self._work = work
        self._begin = begin
        self._what = what
        self._lock = threading.Lock()
        self._is_wanted = False
        self._is_under_way = False

    @property
    def is_under_way(self) -> bool:
        """Tell whether rounds have been begun, and the last of them has not ended."""
        return self._is_under_way

    def wake(self) -> None:
        """Have a round begin after this call; never waits."""
        with self._lock:
            self._is_wanted = True
            if self._is_under_way:
                return
            self._is_under_way = True
        try:
            self._begin()
        except Exception:  # noqa: BLE001 - whatever it is, a later wake may succeed
            self._is_under_way = False
            _LOG.exception("Could not begin: %s. It is tried again", self._what)

    def run(self, pause: Callable[[], object]) -> None:
        """Do rounds until none is due, with a pause after each; a thread calls this."""
        with self._ends_with_this():
            while self._round():
                pause()

    def turn(self, again: Callable[[], object]) -> None:
        """Do one round; if another one is due, call `again`, which has this called soon."""
        with self._ends_with_this():
            if self._round():
                again()

    def _round(self) -> bool:
        """Do a round; return whether another one is due."""
        with self._lock:
            self._is_wanted = False
        try:
            is_due = self._work()
        except Exception:  # noqa: BLE001 - whatever it is, the next round may succeed
            _LOG.exception("Failed: %s. It is tried again", self._what)
            is_due = True
        with self._lock:
            self._is_under_way = is_due or self._is_wanted
            return self._is_under_way

    @contextmanager
    def _ends_with_this(self) -> Iterator[None]:
        """Let the next wake begin anew if whoever does rounds is stopped in the middle."""
        try:
            yield
        except BaseException:
            self._is_under_way = False
            raise
