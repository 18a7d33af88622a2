# SPDX-License-Identifier: Apache-2.0
"""Equality of schedules up to the order of independent statements.

A schedule is identified by its partial order (Lamport's "happens before"): the vector clock of each step counts the steps
of each session that it depends on, directly or indirectly. Schedules with the same clocks differ only in the order of
independent steps (Mazurkiewicz), so they lead to the same state. `exploration.py` continues each such state once.
"""

from tests.store.schedules.footprints import EVERYTHING, dependent


class Histories:
    """Numbers the histories of sessions: each step with all steps that it depends on."""

    def __init__(self):
        self._numbers = {}

    def after(self, history, step):
        """Return the number of a history with one more step."""
        return self._numbers.setdefault((history, step), len(self._numbers) + 1)


class Order:
    """The partial order of the steps of a schedule.

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
            statement: The statement.
            footprint: Its footprint.
            meets_all: Whether it waited, failed or woke another session. Footprints do not cover these, so all
                steps depend on it, and it depends on all steps.
        """
        footprint = EVERYTHING if meets_all else footprint
        clock = self._clock(session, footprint, meets_all)
        self.state = self._state(session, statement, clock, meets_all)
        self._last[session] = clock
        self._steps.append((session, footprint, meets_all, clock))

    def state_after(self, session, statement, footprint):
        """Return the state after one more step that does not wait, fail or wake another session.

        If another schedule has reached this state, the step does none of these here either: the steps that it
        depends on decide this, and they are the same.
        """
        return self._state(session, statement, self._clock(session, footprint, False), False)

    def _state(self, session, statement, clock, meets_all):
        history = self._histories.after(self.state[session], (statement, clock, meets_all))
        return (*self.state[:session], history, *self.state[session + 1 :])

    def _clock(self, session, footprint, meets_all):
        clock = list(self._last[session])
        for earlier_session, earlier_footprint, met_all, earlier_clock in reversed(self._steps):
            if (
                earlier_session == session
                or earlier_clock[earlier_session] <= clock[earlier_session]
            ):
                continue
            if meets_all or met_all or dependent(footprint, earlier_footprint):
                clock = [max(pair) for pair in zip(clock, earlier_clock, strict=True)]
        clock[session] += 1
        return tuple(clock)
