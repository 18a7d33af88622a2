# SPDX-License-Identifier: Apache-2.0
"""Questions to a slow service: few at a time, shared by all that ask the same, each with a limited wait.

They run in threads of their own, and the requests that ask are called back. So a request that waits for its
answer needs no thread, if its server can let it wait without one.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from treeclaim import metrics
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.errors import OverloadedError

LONGEST_WAIT = 10.0
"""Seconds that a request waits; clients give up after thirty or sixty."""

_LOG = logging.getLogger(__name__)

_BUSY = "identity service"


class SharedLookup:
    """One question, and those who wait for its answer."""

    def __init__(self, key: Hashable, ask: Callable[[], Any]) -> None:
        self.key = key
        self.ask = ask
        self.waiters: list[_Waiter] = []
        self.is_over = False
        self.answer: Any = None
        self.error: Exception | None = None

    def result(self) -> Any:
        """Return the answer.

        Raises:
            OverloadedError: if there is none yet.
            Exception: whatever the question has raised.
        """
        if not self.is_over:
            raise OverloadedError(_BUSY)
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.answer

    @property
    def is_wanted(self) -> bool:
        """Tell whether somebody still waits for it."""
        return any(waiter.is_waiting for waiter in self.waiters)


class _Waiter:
    """Somebody who is called once, when the answer is there or has not come in time."""

    def __init__(
        self, lookup: SharedLookup, go_on: "_GoOn", is_gone: Callable[[], bool] | None
    ) -> None:
        self.end = time.monotonic() + LONGEST_WAIT
        self._go_on: Callable[[], None] | None = partial(go_on, lookup)
        self._is_gone = is_gone

    @property
    def is_waiting(self) -> bool:
        """Whether it has not been called, and is still there."""
        return self._go_on is not None and not (self._is_gone is not None and self._is_gone())

    def call(self) -> None:
        """Call it, unless it was called before."""
        # It stays in the queue until its end, and must not keep the answer for so long.
        go_on, self._go_on, self._is_gone = self._go_on, None, None
        if go_on is not None:
            try:
                go_on()
            except Exception:  # noqa: BLE001 - the thread that calls has others to call
                _LOG.exception("A request that waited for a look-up was lost")


_GoOn = Callable[[SharedLookup], None]


class Lookups:
    """The questions of one process."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        """Start the threads.

        Args:
            at_once: How many questions are asked at a time.
            most_waiting: How many others may wait for their turn.
        """
        self._most_waiting = most_waiting
        self._guard = threading.Lock()
        self._has_question = threading.Condition(self._guard)
        self._has_waiter = threading.Condition(self._guard)
        self._lookups: dict[Hashable, SharedLookup] = {}
        self._queue: deque[SharedLookup] = deque()
        self._asking = 0
        self._at_once = at_once
        self._waiters: deque[_Waiter] = deque()
        """In the order in which their waits end, as all wait equally long."""
        for number in range(at_once):
            start_helper_thread(f"lookups-{number}", self._work)
        start_helper_thread("lookups-end", self._expire)

    def wait_for(
        self,
        key: Hashable,
        ask: Callable[[], Any],
        go_on: "_GoOn",
        is_gone: Callable[[], bool] | None = None,
    ) -> None:
        """Ask, or wait with those who have asked the same.

        Args:
            key: What the question depends on.
            ask: Asks it; called in another thread.
            go_on: Called once with the question, from some thread, perhaps before this returns: when
                it is over, or after `LONGEST_WAIT`.
            is_gone: Tells whether nobody waits any more.

        Raises:
            OverloadedError: if too many questions wait; nothing is called then.
        """
        with self._guard:
            lookup = self._lookups.get(key)
            if lookup is None:
                lookup = self._begun(key, ask)
            waiter = _Waiter(lookup, go_on, is_gone)
            lookup.waiters.append(waiter)
            self._waiters.append(waiter)
            self._has_waiter.notify()

    def _begun(self, key: Hashable, ask: Callable[[], Any]) -> SharedLookup:
        free = self._at_once - self._asking
        if len(self._queue) >= self._most_waiting + free:
            raise OverloadedError(_BUSY)
        lookup = self._lookups[key] = SharedLookup(key, ask)
        self._queue.append(lookup)
        self._has_question.notify()
        return lookup

    def _work(self) -> None:
        while True:
            with self._guard:
                while not self._queue:
                    self._has_question.wait()
                lookup = self._queue.popleft()
                if not lookup.is_wanted:
                    # The request that asked it has gone, or has been refused.
                    self._finish(lookup)
                    continue
                self._asking += 1
            self._ask(lookup)

    def _ask(self, lookup: SharedLookup) -> None:
        begin = time.perf_counter()
        try:
            lookup.answer = lookup.ask()
        except Exception as error:  # noqa: BLE001 - those who wait get it
            lookup.error = error
        metrics.TOKEN_SECONDS.observe(time.perf_counter() - begin)
        lookup.is_over = True
        with self._guard:
            self._asking -= 1
            self._finish(lookup)

    def _finish(self, lookup: SharedLookup) -> None:
        """Call all that wait; from now on the same question is asked anew."""
        del self._lookups[lookup.key]
        for waiter in lookup.waiters:
            waiter.call()

    def _expire(self) -> None:
        """Call those who have waited too long."""
        while True:
            with self._guard:
                while not self._waiters:
                    self._has_waiter.wait()
                left = self._waiters[0].end - time.monotonic()
                if left <= 0:
                    self._waiters.popleft().call()
                    continue
            time.sleep(left)
