# SPDX-License-Identifier: Apache-2.0
"""A schedule: sessions advance one at a time; before each statement, one of them is chosen."""

import time
from dataclasses import dataclass, field
from itertools import groupby

from tests.store.schedules.footprints import Footprint, takes_snapshot
from tests.store.schedules.sessions import LIMIT, StuckError

_USUAL = 0.004
"""Seconds in which nearly every statement without a wait ends; after these the locks are read."""

_PAUSE = 0.001
_LONGEST_PAUSE = 0.064
"""Seconds between two reads of the server's locks; they double with each read."""


@dataclass(frozen=True)
class Step:
    """An executed statement.

    Attributes:
        session: Number of the session.
        waited: Whether it waited for a lock.
        meets_all: Whether it waited, failed or woke another session.
    """

    session: int
    statement: str
    footprint: Footprint
    waited: bool
    meets_all: bool

    @property
    def reads_only(self):
        """Whether it neither affects other sessions nor creates a snapshot."""
        footprint = self.footprint
        writes = footprint.locks or footprint.shows or footprint.frees
        return not writes and not takes_snapshot(footprint)


@dataclass(frozen=True)
class Moment:
    """A moment at which a session is chosen.

    Attributes:
        number: Number of the next step.
        able: Numbers of the sessions that can continue.
        last: Number of the session that ran last; None at the beginning.
        spent: Number of preemptions so far.
    """

    number: int
    able: tuple[int, ...]
    last: int | None
    spent: int

    @property
    def usual(self):
        """The session that continues by default: the last one while it can."""
        return self.last if self.last in self.able else self.able[0]

    @property
    def interrupted(self):
        """The last session, if it and another session can continue; else None."""
        return self.last if self.last in self.able and len(self.able) > 1 else None

    def spent_by(self, session):
        """Return the number of preemptions after a choice."""
        return self.spent + (self.last in self.able and session != self.last)


@dataclass
class Course:
    """The course of a schedule.

    Attributes:
        steps: The statements in their order.
        results: The results of each session; None if the schedule was abandoned.
        seconds: Duration.
    """

    steps: list[Step] = field(default_factory=list)
    results: tuple | None = None
    seconds: float = 0.0

    @property
    def choices(self):
        """The sessions of the steps."""
        return tuple(step.session for step in self.steps)

    @property
    def is_serial(self):
        """Whether each session ended before the next session began."""
        turns = [session for session, _ in groupby(self.choices)]
        return len(turns) == len(set(turns)) and not any(step.waited for step in self.steps)


class Scheduler:
    """Runs scripts in the sessions of a filled place."""

    def __init__(self, place, scripts):
        self._place = place
        self._sessions = place.sessions[: len(scripts)]
        self._scripts = scripts
        self._waiting = []

    def run(self, choices=(), watch=None):
        """Follow the choices; afterwards let each session run while it can.

        Args:
            choices: Numbers of sessions, one for each step.
            watch: Receives each moment and step, and may abandon the schedule.
        """
        course = Course()
        begin = time.monotonic()
        spent = 0
        try:
            for session, script in zip(self._sessions, self._scripts, strict=True):
                session.start(script.run)
            while able := self._able():
                number = len(course.steps)
                last = course.steps[-1].session if course.steps else None
                moment = Moment(number, tuple(able), last, spent)
                chosen_session = choices[number] if number < len(choices) else moment.usual
                if chosen_session not in able:
                    chosen_session = moment.usual
                if watch is not None and not watch.enter_moment(
                    moment, chosen_session, self._sessions
                ):
                    self._abandon()
                    return course
                spent = moment.spent_by(chosen_session)
                self._step(course, chosen_session)
                if watch is not None:
                    watch.add_step(course.steps[-1])
        except BaseException:
            self._abandon()
            raise
        course.results = tuple(session.results for session in self._sessions)
        course.seconds = time.monotonic() - begin
        return course

    def _able(self):
        """Return the numbers of the sessions that can continue; in a deadlock, wait until the server ends it."""
        deadline = time.monotonic() + LIMIT
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

    def _step(self, course, number):
        session = self._sessions[number]
        statement, footprint = session.next_step, session.footprint
        session.advance()
        waits = not self._await_step(session)
        if waits:
            self._waiting.append(session)
        may_wake = not waits and (footprint.frees or session.failed)
        woke = (
            self._wake(but=session) if may_wake or not self._place.locks_until_the_end else False
        )
        meets_all = waits or woke or session.failed
        course.steps.append(Step(number, statement, footprint, waits, meets_all))

    def _wake(self, but=None):
        """Let sessions that acquired their locks run to their next statements; return whether any did."""
        woken = [
            session
            for session in self._waiting
            if session is not but and self._await_step(session, usual=0.0)
        ]
        for session in woken:
            self._waiting.remove(session)
        return bool(woken)

    def _await_step(self, session, usual=_USUAL):
        """Return True once the statement of a session has ended, False once it waits for a lock."""
        deadline = time.monotonic() + LIMIT
        if session.reported(usual):
            return True
        pause = _PAUSE
        while not self._place.waiting([session]):
            if session.reported(pause):
                return True
            # Frequent queries would slow down a running statement.
            pause = min(2 * pause, _LONGEST_PAUSE)
            if time.monotonic() > deadline:
                raise StuckError(session.name)
        # The wait may have ended meanwhile.
        return session.reported()

    def _abandon(self):
        """Abandon all operations, waiting sessions last: they acquire their locks by the rollback of the others."""
        for session in sorted(self._sessions, key=lambda session: session.is_running):
            session.abandon()
