# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is at the Forest, and how long each had it.

One thread at a time uses the Forest, and all others wait meanwhile. So there is a promise how long that
may be: 20 ms of CPU time for every operation, at its greatest limits. It is measured at
every turn, since reading the code cannot show it: the thread's own time, in which waits for the
database, or for a processor that others use, do not count.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from treeclaim import metrics
from treeclaim.gate import Gate
from treeclaim.model.deadlines import has_passed
from treeclaim.model.errors import OverloadedError, TreeclaimError
from treeclaim.replica.asking import LONGEST_WAIT, Asked

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
        asked: The arrival of the question.
        begin: CPU time of the thread at the beginning.
    """

    turn: Gate
    asked: Asked
    begin: float = field(default_factory=time.thread_time)

    def check(self) -> None:
        """Raise if the time is over.

        Raises:
            OutOfPatienceError: if the attempt took too long.
            SearchGivenUpError: if the deadline has passed.
        """
        if has_passed(self.asked.end):
            raise self.asked.given_up()
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
        self._told = 0.0
        self._taken_at = 0.0

    def acquire(self, seconds: float, gives_up: Callable[[], bool] | None = None) -> bool:
        """Enter, as `Gate.acquire` does. The thread that enters must leave."""
        is_inside = super().acquire(seconds, gives_up)
        if is_inside:
            self._taken_at = time.thread_time()
        return is_inside

    def release(self) -> None:
        """Leave, and let the next one in."""
        held = time.thread_time() - self._taken_at
        self.longest = max(self.longest, held)
        is_record = held > self._told
        if is_record:
            self._told = held
        super().release()
        # The others need not wait for this.
        if held > LONGEST_HOLD:
            metrics.FOREST_LONG_HOLDS.inc()
        if is_record:
            metrics.FOREST_LONGEST_HOLD.labels(str(os.getpid())).set(held)


class HeldTurn:
    """A turn that may be given back early."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._is_taken = False

    def take(self) -> None:
        """Wait for the turn, unless it is taken already.

        Raises:
            OverloadedError: if it was not free in time.
        """
        if self._is_taken:
            return
        if not self._gate.acquire(LONGEST_WAIT):
            raise OverloadedError("inventory")
        self._is_taken = True

    def give(self) -> None:
        """Give it back, if it is taken."""
        if self._is_taken:
            self._is_taken = False
            self._gate.release()
