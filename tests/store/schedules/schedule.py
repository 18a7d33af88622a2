# SPDX-License-Identifier: Apache-2.0
"""One schedule: sessions advance one at a time, in an order that is chosen at every statement."""

import time
from dataclasses import dataclass, field

from tests.store.schedules.footprints import Footprint, footprint_of
from tests.store.schedules.sessions import StuckError

_USUAL = 0.004
"""Seconds in which nearly every statement that need not wait is done; then the locks are looked at."""

_PAUSE = 0.001
"""Seconds between two looks at the server's locks."""

_LIMIT = 20.0
"""Seconds after which a schedule in which nothing moves is given up: no lock is waited for so long."""


@dataclass(frozen=True)
class Step:
    """A statement that was executed.

    Attributes:
        session: Number of the session.
        statement: What it sent.
        waited: Whether it had to wait for a lock.
    """

    session: int
    statement: str
    waited: bool


@dataclass(frozen=True)
class Decision:
    """A moment at which a session was chosen.

    Attributes:
        chosen: Number of the session.
        others: Those that could have been chosen instead, if that is worth trying.
        price: Preemptions that choosing another one costs: 1 where the one before could go on.
        spent: Preemptions before.
    """

    chosen: int
    others: tuple[int, ...]
    price: int
    spent: int


@dataclass
class Course:
    """How a schedule went.

    Attributes:
        steps: The statements in their order.
        decisions: The choices, one for each step.
        results: What each session's client learnt.
        strayed: Whether a choice that was asked for was not possible.
    """

    steps: list[Step] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    results: tuple = ()
    strayed: bool = False

    @property
    def choices(self):
        """The sessions in the order in which they advanced."""
        return tuple(decision.chosen for decision in self.decisions)


class Scheduler:
    """Runs the sessions of a place as a schedule says.

    Args:
        place: The database, filled.
        scripts: Of each session.
        footprints: Of each session's operations, as far as they are known: between statements
            that meet nothing of the other sessions nobody else need be let in.
    """

    def __init__(self, place, scripts, footprints=None):
        self._place = place
        self._sessions = place.sessions[: len(scripts)]
        self._scripts = scripts
        self._footprints = footprints
        self._waiting = []

    def run(self, choices=()):
        """Follow some choices; afterwards each session goes on for as long as it can."""
        course = Course()
        try:
            for session, script in zip(self._sessions, self._scripts, strict=True):
                session.start(script.run)
            while able := self._able():
                self._choose(course, able, choices)
        except BaseException:
            self._abandon()
            raise
        course.results = tuple(session.results for session in self._sessions)
        return course

    def _able(self):
        """Numbers of the sessions that can go on; if all wait, deadlock, the server ends that."""
        deadline = time.monotonic() + _LIMIT
        while True:
            able = [
                number
                for number, session in enumerate(self._sessions)
                if session.next_step is not None and self._place.may_advance(session)
            ]
            if able or all(session.results is not None for session in self._sessions):
                return able
            if time.monotonic() > deadline:
                raise StuckError([session.name for session in self._waiting])
            time.sleep(_PAUSE)
            self._wake()

    def _choose(self, course, able, choices):
        before = course.decisions[-1].chosen if course.decisions else None
        spent = sum(
            decision.price
            for decision, earlier in zip(course.decisions[1:], course.decisions, strict=False)
            if decision.chosen != earlier.chosen
        )
        goes_on = before in able
        chosen = before if goes_on else able[0]
        asked = choices[len(course.decisions)] if len(course.decisions) < len(choices) else chosen
        if asked in able:
            chosen = asked
        else:
            course.strayed = True
        others = tuple(one for one in able if one != chosen)
        if goes_on and not self._matters(before):
            others = ()
        course.decisions.append(Decision(chosen, others, int(goes_on), spent))
        self._step(course, chosen)

    def _matters(self, number):
        """Whether it makes a difference if others come before a session's next statement."""
        if self._footprints is None:
            return True
        others = Footprint()
        for other, footprint in enumerate(self._footprints):
            if other != number:
                others |= footprint
        return footprint_of(self._sessions[number].next_step).meets(others)

    def _step(self, course, number):
        session = self._sessions[number]
        statement = session.next_step
        session.advance()
        waits = not self._done_or_waiting(session)
        course.steps.append(Step(number, statement, waits))
        if waits:
            self._waiting.append(session)
        self._wake(but=session)

    def _wake(self, but=None):
        """Let those who got their lock come to their next statement."""
        for session in [one for one in self._waiting if one is not but]:
            if self._done_or_waiting(session, usual=0.0):
                self._waiting.remove(session)

    def _done_or_waiting(self, session, usual=_USUAL):
        """True once its statement is done; False if it waits for a lock."""
        deadline = time.monotonic() + _LIMIT
        if session.reported(usual):
            return True
        while not self._place.waiting([session]):
            if session.reported(_PAUSE):
                return True
            if time.monotonic() > deadline:
                raise StuckError(session.name)
        # It may have been waiting for no more than the moment of looking.
        return session.reported()

    def _abandon(self):
        for session in self._sessions:
            session.abandon()
