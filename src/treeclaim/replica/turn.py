# SPDX-License-Identifier: Apache-2.0
"""The turn at the Forest: one thread at a time uses it, and each turn is measured.

A turn must take at most 20 ms, for every operation at its greatest limits, because all other threads wait meanwhile.
The measure is the CPU time of the thread, which excludes waits for the database and for a processor.
"""

import os
import time
from collections.abc import Callable

from treeclaim import metrics
from treeclaim.gate import Gate
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.timing import has_passed
from treeclaim.replica.question import Arrival

LONGEST_HOLD = 0.020
"""Most seconds of CPU time of a turn."""

PATIENCE = 0.012
"""Seconds of CPU time for an attempt while other threads wait: longer than a usual search. After a few hard questions,
the next one is still answered in a tenth of a second."""

ALONE_PATIENCE = 0.250
"""Seconds of CPU time for an attempt while no other thread waits: about ten times the cost of starting a child. The
time is lost if the question starts again in a child."""


class OutOfPatienceError(TreeclaimError):
    """The attempt exceeds the time of a turn, or the length of an unstreamed answer."""


def make_attempt_check(turn: Gate, arrival: Arrival) -> Callable[[], None]:
    """Return a check that raises `OutOfPatienceError`, or `SearchGivenUpError` at the question's deadline.

    Patience is CPU time, because a wait for a busy processor is no reason to start again in a child.
    """
    begin = time.thread_time()

    def check() -> None:
        if has_passed(arrival.end):
            raise arrival.timeout_error()
        spent_seconds = time.thread_time() - begin
        if spent_seconds >= PATIENCE and (turn.waiting_count or spent_seconds > ALONE_PATIENCE):
            raise OutOfPatienceError("takes longer than a turn")

    return check


class Turn(Gate):
    """The gate to the Forest, for one thread at a time.

    Attributes:
        longest_seconds: The longest turn so far, in seconds of CPU time; may be reset to 0.
    """

    def __init__(self) -> None:
        super().__init__(1)
        self.longest_seconds = 0.0
        self._begin = 0.0

    def acquire(self, seconds: float, should_stop: Callable[[], bool] | None = None) -> bool:
        """Enter as `Gate.acquire`; the same thread must release."""
        is_inside = super().acquire(seconds, should_stop)
        if is_inside:
            self._begin = time.thread_time()
        return is_inside

    def release(self) -> None:
        """Leave, and admit the next thread."""
        held_seconds = time.thread_time() - self._begin
        is_record = held_seconds > self.longest_seconds
        if is_record:
            self.longest_seconds = held_seconds
        super().release()
        # After the release, other threads do not wait for the metrics.
        if held_seconds > LONGEST_HOLD:
            metrics.FOREST_LONG_HOLDS.inc()
        if is_record:
            metrics.FOREST_LONGEST_HOLD.labels(str(os.getpid())).set(held_seconds)
