# SPDX-License-Identifier: Apache-2.0
"""Keeps a Forest small while nobody writes: steps between the turns of others.

Each write does a step too. But a worker that nobody asks anything, or that is only read from, must not
have two tables for long.
"""

import threading
import time

from treeclaim.gate import Gate
from treeclaim.replica.asking import LONGEST_WAIT
from treeclaim.replica.following import Follower

_PAUSE = 0.005
"""Seconds between two steps, each of about a millisecond: a million providers take five seconds."""


class Tidying:
    """A thread that is there as long as there is something to do."""

    def __init__(self, turn: Gate, follower: Follower) -> None:
        """Begin with nothing to do."""
        self._turn = turn
        self._follower = follower
        self._is_running = threading.Lock()

    def wake(self) -> None:
        """Begin, if there is something to do and nobody does it; called within a turn.

        Where no thread can be started, who has the next turn tries again.
        """
        if self._follower.forest.is_tidy or not self._is_running.acquire(blocking=False):
            return
        try:
            threading.Thread(target=self._run, name="tidying", daemon=True).start()
        except RuntimeError:
            self._is_running.release()

    def _run(self) -> None:
        try:
            while self._step():
                time.sleep(_PAUSE)
        finally:
            self._is_running.release()

    def _step(self) -> bool:
        if not self._turn.acquire(LONGEST_WAIT):
            return True
        try:
            return self._follower.tidy()
        finally:
            self._turn.release()
