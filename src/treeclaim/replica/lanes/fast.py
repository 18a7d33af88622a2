# SPDX-License-Identifier: Apache-2.0
"""How long a question may use the Forest in the worker itself: the fast lane, and slices of time.

One thread at a time uses the Forest; under Python's own lock a second one would gain nothing. So a
question has some patience there. When that is over it is abandoned where it next looks at the clock,
and begins again elsewhere: in a child, or, where none can be forked, in slices. There it keeps its place
in the search and lets others have a turn in between. If one of them applies a change, the Forest
is not the one that the question began with, and the question is given up.

Patience is counted in CPU time of the thread, as a turn is (`turn.py`): a question that had to wait for a
processor, or for the interpreter, has not become longer, and beginning it again would take more of both.
"""

import time
from dataclasses import dataclass, field

from treeclaim.gate import Gate
from treeclaim.model.deadlines import has_passed
from treeclaim.model.errors import SearchTooLargeError, TreeclaimError
from treeclaim.replica.asking import LONGEST_WAIT, Asked, Drawn
from treeclaim.replica.following import Follower
from treeclaim.replica.kept import KeptAnswer

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


@dataclass(frozen=True, slots=True)
class FastLaneClock:
    """Ends a question in the fast lane when its time there, or all its time, is over.

    Attributes:
        turn: What the caller holds.
        asked: The question.
        seconds: Its patience while others wait.
        begin: Processor time of the thread when it began.
    """

    turn: Gate
    asked: Asked
    seconds: float
    begin: float = field(default_factory=time.thread_time)

    def check(self) -> None:
        """Raise if the time is over.

        Raises:
            OutOfPatienceError: if there is none left in this lane.
            SearchGivenUpError: if there is none left at all.
        """
        if has_passed(self.asked.end):
            raise self.asked.given_up()
        spent = time.thread_time() - self.begin
        if spent < self.seconds:
            return
        if self.turn.waiting or spent > ALONE_PATIENCE:
            raise OutOfPatienceError


SLICE = FIRST_PATIENCE
"""Seconds until those who wait have a turn: as long as a question of theirs may take at once."""

MOST_BYTES = 64_000_000
"""Bytes of an answer, all of which is in the worker's own memory here."""


class Slices:
    """Yields the turn now and then; the caller holds it before and after."""

    def __init__(
        self, turn: Gate, follower: Follower, asked: Asked, patience: float | None = None
    ) -> None:
        """Begin the first slice.

        Args:
            turn: What the caller holds.
            follower: Tells whether the Forest has changed meanwhile.
            asked: The question.
            patience: Seconds of all slices together while others wait; None for any number. A question
                with patience can be asked elsewhere, and is sent there.
        """
        self._turn = turn
        self._follower = follower
        self._version = follower.version
        self._asked = asked
        self._patience = patience
        self._begin = time.thread_time()
        self._before = 0.0

    def check(self) -> None:
        """Go on, possibly after others had a turn.

        Raises:
            SearchGivenUpError: if the time is over.
            OutOfPatienceError: if that of this lane is, or the Forest has changed meanwhile, and the
                question can be asked elsewhere.
            OverloadedError: if the Forest has changed meanwhile, and it cannot.
            ClientGoneError: if the client has hung up.
        """
        if has_passed(self._asked.end):
            raise self._asked.given_up()
        spent = time.thread_time() - self._begin
        others_wait = self._turn.waiting > 0
        if self._patience is not None and self._before + spent > (
            self._patience if others_wait else ALONE_PATIENCE
        ):
            raise OutOfPatienceError
        if spent < SLICE or not others_wait:
            return
        self._before += spent
        self._turn.release()
        # Whatever happens, the caller must have the turn again.
        while not self._turn.acquire(LONGEST_WAIT):
            pass
        self._begin = time.thread_time()
        is_gone = self._asked.is_gone()
        if is_gone or self._follower.version != self._version:
            if self._patience is not None and not is_gone:
                raise OutOfPatienceError
            raise self._asked.refused("search for long questions")


def written(drawn: Drawn) -> KeptAnswer:
    """Write a whole answer.

    Raises:
        SearchTooLargeError: if it is too long to be kept in memory.
    """
    parts: list[bytes | memoryview] = []
    size = 0
    for piece in drawn.pieces():
        parts.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise SearchTooLargeError(MOST_BYTES // 1_000_000)
    return KeptAnswer.of(parts, drawn.candidates)
