# SPDX-License-Identifier: Apache-2.0
"""Equality of states by observations.

A state consists of the statements and results of each session, and the committed rows. These determine all else
(decision 0010): the next statements of a session, and the writes and locks of its open transaction. Generated ids are
numbered by their first occurrence.
"""

from tests.store.schedules.contents import renamed, text_of
from tests.store.schedules.footprints import takes_snapshot


class Observations:
    """The state of a schedule of two sessions after each step.

    For three sessions this does not suffice: the order of the commits of two sessions matters, but may be invisible to
    the third.
    """

    def __init__(self, histories, sessions, place):
        self._histories = histories
        self._sessions = sessions
        self._place = place
        self._committed = None
        self._past = [0 for _ in sessions]
        self._ids = [() for _ in sessions]

    @property
    def state(self):
        """A value that is equal for schedules with the same possible continuations."""
        self._record_results()
        committed = self._contents()
        ids = [row_id for session_ids in self._ids for row_id in session_ids]
        return (*self._past, committed.marked, renamed([*ids, *committed.ids]))

    @property
    def number_of_ids(self):
        """Number of generated ids in the results so far."""
        return sum(map(len, self._ids))

    def add(self, step):
        if step.footprint.shows:
            self._committed = None
        self._note(step.session, step.statement)
        if step.waited:
            # The committed rows at its start determine its locks.
            self._note_text(step.session, self._contents())
        self._record_results()
        if takes_snapshot(step.footprint):
            self._note_text(step.session, self._contents())

    def _contents(self):
        if self._committed is None:
            self._committed = self._place.contents()
        return self._committed

    def _record_results(self):
        """Record the results of a step, and of waiting sessions that continued during it."""
        for number, session in enumerate(self._sessions):
            for result in session.take_observed():
                self._note_text(number, text_of(result, self._place.known_ids))

    def _note_text(self, number, text):
        self._note(number, text.marked)
        self._ids[number] += text.ids

    def _note(self, number, event):
        self._past[number] = self._histories.after(self._past[number], event)
