# SPDX-License-Identifier: Apache-2.0
"""Equality of schedules, except for the order of statements whose order makes no difference.

A schedule is told by what came before what (Lamport's "happens before"): each step has a vector
clock, which counts the steps of each session that it depends on, directly or by others. Two
schedules with the same clocks differ only in the order of independent steps (Mazurkiewicz), so the
database and all sessions are in the same state after them. `exploration.py` goes on from each such
state once.
"""

from tests.store.schedules.footprints import EVERYTHING, dependent


class Histories:
    """Numbers for what has happened in a session: each step, with all that came before it."""

    def __init__(self):
        self._numbers = {}

    def after(self, history, step):
        """The number of a history that is followed by one more step."""
        return self._numbers.setdefault((history, step), len(self._numbers) + 1)


class Order:
    """The order of the steps of a schedule, as far as it matters.

    Attributes:
        state: Equal for all schedules that differ only in the order of independent steps.
    """

    def __init__(self, histories, sessions):
        self._histories = histories
        self._steps = []
        self._last = [(0,) * sessions for _ in range(sessions)]
        self.state = (0,) * sessions

    def add(self, session, statement, footprint, *, meets_all=False):
        """Add a step.

        Args:
            session: Number of the session.
            statement: Its text.
            footprint: Footprint of the statement.
            meets_all: Whether it waited, failed or woke others; what that means for the others no
                footprint tells, so that it depends on all steps, and all on it.
        """
        footprint = EVERYTHING if meets_all else footprint
        clock = self._clock(session, footprint, meets_all)
        self.state = self._state(session, statement, clock, meets_all)
        self._last[session] = clock
        self._steps.append((session, footprint, meets_all, clock))

    def state_after(self, session, statement, footprint):
        """The state after one more step, if that one does not wait, fail or wake others.

        Should another schedule have led to that state, it does not: whether it does is decided by
        steps that it depends on, and those are the same ones.
        """
        return self._state(session, statement, self._clock(session, footprint, False), False)

    def _state(self, session, statement, clock, meets_all):
        history = self._histories.after(self.state[session], (statement, clock, meets_all))
        return (*self.state[:session], history, *self.state[session + 1 :])

    def _clock(self, session, footprint, meets_all):
        clock = list(self._last[session])
        for other, others, met_all, at in reversed(self._steps):
            if other == session or at[other] <= clock[other]:
                continue
            if meets_all or met_all or dependent(footprint, others):
                clock = [max(pair) for pair in zip(clock, at, strict=True)]
        clock[session] += 1
        return tuple(clock)
