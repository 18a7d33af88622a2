# SPDX-License-Identifier: Apache-2.0
"""Equality of states by observations.

A state consists of the statements and answers of each session, and the committed rows. These determine everything else
(decision 0010): the next statements of a session, and the writes and locks of its open transaction. Ids of sequences are
numbered by their first occurrence.
"""

from tests.store.schedules.contents import renamed, text_of
from tests.store.schedules.footprints import takes_snapshot


class Observations:
    """The state of a schedule of two sessions, after each step.

    For three sessions this does not suffice: the order of the commits of two other sessions matters, but may be visible
    in no answer.

    Args:
        histories: Numbers the histories of sessions.
        sessions: Both sessions.
        place: The filled database.
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
        """Return a value that is equal for all schedules with the same possible continuations."""
        self._hear()
        committed = self._contents()
        ids = [row_id for session_ids in self._ids for row_id in session_ids]
        return (*self._past, committed.marked, renamed([*ids, *committed.ids]))

    @property
    def number_of_ids(self):
        """Return how many ids sessions were answered."""
        return sum(map(len, self._ids))

    def add(self, step):
        """Add a step."""
        if step.footprint.shows:
            self._committed = None
        self._note(step.session, step.statement)
        if step.waited:
            # Its locks follow from its beginning.
            self._note_text(step.session, self._contents())
        self._hear()
        if takes_snapshot(step.footprint):
            self._note_text(step.session, self._contents())

    def _contents(self):
        if self._committed is None:
            self._committed = self._place.contents()
        return self._committed

    def _hear(self):
        """Record the answers of a step, also those that a waiting session received during it."""
        for number, session in enumerate(self._sessions):
            for answer in session.taken():
                self._note_text(number, text_of(answer, self._place.known))

    def _note_text(self, number, text):
        self._note(number, text.marked)
        self._ids[number] += text.ids

    def _note(self, number, event):
        self._past[number] = self._histories.after(self._past[number], event)
