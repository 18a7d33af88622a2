# SPDX-License-Identifier: Apache-2.0
"""The fast lane: how long a question may use the Forest in the worker itself.

One thread at a time uses the Forest; under Python's own lock a second one would gain nothing. So a
question has some patience there. When that is over it is abandoned where it next looks at the clock,
and begins again elsewhere.
"""

import time

from treeclaim.gate import Gate
from treeclaim.model.deadlines import has_passed
from treeclaim.model.errors import TreeclaimError
from treeclaim.replica.asking import Asked

FIRST_PATIENCE = 0.012
"""Seconds at the first attempt while others wait: more than a search usually takes, and with a
few hard questions ahead the next one is still answered in a tenth of a second."""

SECOND_PATIENCE = 0.040
"""Seconds at the second attempt, which only one question at a time can make, in slices between which
those who wait have their turn. Questions of some medium length, of which there may be many at once, get
through here and need no child."""

ALONE_PATIENCE = 0.250
"""Seconds while no other question waits: what is lost if the question takes longer and begins again, and
about ten times what starting a child costs."""


class OutOfPatienceError(TreeclaimError):
    """The question takes too long for this lane."""


class AnswerTooLongError(TreeclaimError):
    """The answer is too long for this lane, regardless of time."""


class FastLaneClock:
    """Ends a question in the fast lane when its time there, or all its time, is over."""

    def __init__(self, turn: Gate, asked: Asked, seconds: float) -> None:
        self._turn = turn
        self._asked = asked
        self._begin = time.monotonic()
        self._seconds = seconds

    def check(self) -> None:
        """Raise if the time is over.

        Raises:
            OutOfPatienceError: if there is none left in this lane.
            SearchGivenUpError: if there is none left at all.
        """
        if has_passed(self._asked.end):
            raise self._asked.given_up()
        spent = time.monotonic() - self._begin
        if spent < self._seconds:
            return
        if self._turn.waiting or spent > ALONE_PATIENCE:
            raise OutOfPatienceError
