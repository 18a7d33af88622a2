# SPDX-License-Identifier: Apache-2.0
"""The turn at the Forest, which one thread at a time has, and the time of each.

All other threads wait meanwhile. So a turn takes at most 20 ms of CPU time for every operation, at its greatest limits.
Each turn is measured, since reading the code cannot show it. The measure is the thread's own time, in which waits for the
database, or for a processor, do not count.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from treeclaim import metrics
from treeclaim.gate import Gate
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.timing import has_passed
from treeclaim.replica.question import Arrival

LONGEST_HOLD = 0.020
"""Seconds of CPU time for which one thread may keep all others from the Forest."""

PATIENCE = 0.012
"""Seconds of CPU time for the attempt within a turn while others wait: more than a search usually takes. With a few
hard questions ahead, the next one is still answered in a tenth of a second."""

ALONE_PATIENCE = 0.250
"""Seconds while no other question waits: the loss if the question takes longer and begins again in a child, and
about ten times the cost of starting the child."""


class OutOfPatienceError(TreeclaimError):
    """The attempt takes too long for a turn."""


@dataclass(frozen=True, slots=True)
class AttemptClock:
    """Ends an attempt within a turn after its patience, or at the deadline of the question.

    Patience is CPU time of the thread: a question that waited for a processor has not become longer, and beginning
    it again would take more of what is scarce.

    Attributes:
        turn: The gate that the caller is in.
        arrival: The arrival of the question.
        begin: CPU time of the thread at the beginning.
    """

    turn: Gate
    arrival: Arrival
    begin: float = field(default_factory=time.thread_time)

    def check(self) -> None:
        """Raise if the time is over.

        Raises:
            OutOfPatienceError: if the attempt took too long.
            SearchGivenUpError: if the deadline has passed.
        """
        if has_passed(self.arrival.end):
            raise self.arrival.timeout_error()
        spent = time.thread_time() - self.begin
        if spent >= PATIENCE and (self.turn.waiting or spent > ALONE_PATIENCE):
            raise OutOfPatienceError("takes longer than a turn")


class Turn(Gate):
    """The gate to the Forest: a single place, timed.

    Attributes:
        longest: The longest of all turns so far, in seconds of CPU time; may be set back to 0.
    """

    def __init__(self) -> None:
        super().__init__(1)
        self.longest = 0.0
        self._begin = 0.0

    def acquire(self, seconds: float, gives_up: Callable[[], bool] | None = None) -> bool:
        """Enter, as `Gate.acquire` does. The thread that enters must leave."""
        is_inside = super().acquire(seconds, gives_up)
        if is_inside:
            self._begin = time.thread_time()
        return is_inside

    def release(self) -> None:
        """Leave, and let the next thread in."""
        held_seconds = time.thread_time() - self._begin
        is_record = held_seconds > self.longest
        if is_record:
            self.longest = held_seconds
        super().release()
        # The others need not wait for this.
        if held_seconds > LONGEST_HOLD:
            metrics.FOREST_LONG_HOLDS.inc()
        if is_record:
            metrics.FOREST_LONGEST_HOLD.labels(str(os.getpid())).set(held_seconds)
