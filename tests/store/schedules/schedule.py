# SPDX-License-Identifier: Apache-2.0
"""A schedule: sessions advance one at a time, in an order that is chosen at every statement."""

import time
from dataclasses import dataclass, field
from itertools import groupby

from tests.store.schedules.footprints import Footprint, takes_snapshot
from tests.store.schedules.sessions import LIMIT, StuckError

_USUAL = 0.004
"""Seconds in which nearly every statement that need not wait is done; then the locks are looked at."""

_PAUSE = 0.001
_LONGEST_PAUSE = 0.064
"""Seconds between two reads of the server's locks; each pause is twice the previous pause."""


@dataclass(frozen=True)
class Step:
    """A statement that was executed.

    Attributes:
        session: Number of the session.
        statement: Its statement.
        footprint: The effects of the statement on other sessions.
        waited: Whether it had to wait for a lock.
        meets_all: Whether it waited or failed, or others waited no longer after it.
    """

    session: int
    statement: str
    footprint: Footprint
    waited: bool
    meets_all: bool

    @property
    def reads_only(self):
        """Return whether it does nothing to other sessions, and all that it is answered is of this moment."""
        footprint = self.footprint
        writes = footprint.locks or footprint.shows or footprint.frees
        return not writes and not takes_snapshot(footprint)


@dataclass(frozen=True)
class Moment:
    """A moment at which a session is chosen.

    Attributes:
        number: Number of the next step.
        able: Numbers of the sessions that can go on.
        last: Number of the one that went on last; None at the beginning.
        spent: Preemptions before: how often the one before could have gone on.
    """

    number: int
    able: tuple[int, ...]
    last: int | None
    spent: int

    @property
    def usual(self):
        """Return the session that continues by default: the present one for as long as it can."""
        return self.last if self.last in self.able else self.able[0]

    @property
    def interrupted(self):
        """Return the session that continues unless it is preempted; None if no session can continue."""
        return self.last if self.last in self.able and len(self.able) > 1 else None

    def spent_by(self, chosen):
        """Preemptions after it, with a choice."""
        return self.spent + (self.last in self.able and chosen != self.last)


@dataclass
class Course:
    """The course of a schedule.

    Attributes:
        steps: The statements in their order.
        results: Results for the client of each session; none if it was given up.
        seconds: How long it took.
    """

    steps: list[Step] = field(default_factory=list)
    results: tuple | None = None
    seconds: float = 0.0

    @property
    def choices(self):
        """The sessions in the order in which they advanced."""
        return tuple(step.session for step in self.steps)

    @property
    def is_serial(self):
        """Return whether each session was done before the next one sent anything."""
        turns = [session for session, _ in groupby(self.choices)]
        return len(turns) == len(set(turns)) and not any(step.waited for step in self.steps)


class Scheduler:
    """Runs the sessions of a place as a schedule says.

    Args:
        place: The database, filled.
        scripts: The script of each session.
    """

    def __init__(self, place, scripts):
        self._place = place
        self._sessions = place.sessions[: len(scripts)]
        self._scripts = scripts
        self._waiting = []

    def run(self, choices=(), watch=None):
        """Follow some choices; afterwards each session runs for as long as it can.

        Args:
            choices: Numbers of sessions, step by step.
            watch: Is called at each choice and step, and may abandon the schedule.
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
                chosen = choices[number] if number < len(choices) else moment.usual
                if chosen not in able:
                    chosen = moment.usual
                if watch is not None and not watch.goes_on(moment, chosen, self._sessions):
                    self._abandon()
                    return course
                spent = moment.spent_by(chosen)
                self._step(course, chosen)
                if watch is not None:
                    watch.stepped(course.steps[-1])
        except BaseException:
            self._abandon()
            raise
        course.results = tuple(session.results for session in self._sessions)
        course.seconds = time.monotonic() - begin
        return course

    def _able(self):
        """Numbers of the sessions that can go on; if all wait, deadlock, the server ends that."""
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
        waits = not self._done_or_waiting(session)
        if waits:
            self._waiting.append(session)
        lets_go = not waits and (footprint.frees or session.failed)
        woke = self._wake(but=session) if lets_go or not self._place.locks_until_the_end else False
        meets_all = waits or woke or session.failed
        course.steps.append(Step(number, statement, footprint, waits, meets_all))

    def _wake(self, but=None):
        """Let sessions that got their lock run to their next statement; return whether any did."""
        woken = [
            session
            for session in self._waiting
            if session is not but and self._done_or_waiting(session, usual=0.0)
        ]
        for session in woken:
            self._waiting.remove(session)
        return bool(woken)

    def _done_or_waiting(self, session, usual=_USUAL):
        """True once its statement is done; False if it waits for a lock."""
        deadline = time.monotonic() + LIMIT
        if session.reported(usual):
            return True
        pause = _PAUSE
        while not self._place.waiting([session]):
            if session.reported(pause):
                return True
            # Frequent queries would slow down a statement that runs.
            pause = min(2 * pause, _LONGEST_PAUSE)
            if time.monotonic() > deadline:
                raise StuckError(session.name)
        # It may have been waiting for no more than the moment of looking.
        return session.reported()

    def _abandon(self):
        """Abandon the running operations; waiting sessions get their locks when the others roll back."""
        for session in sorted(self._sessions, key=lambda one: one.is_running):
            session.abandon()
