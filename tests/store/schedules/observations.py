# SPDX-License-Identifier: Apache-2.0
"""Equality of states: two are equal if nobody has seen a difference, and nothing is left of any.

A state is what each session sent and was answered, and what is committed. From that follows all the
rest (decision 0010): what a session does next, and what its open transaction has written and locked.
Ids that sequences gave out are told by the order in which they come first.
"""

from tests.store.schedules.contents import renamed, text_of
from tests.store.schedules.footprints import takes_snapshot


class Observations:
    """The state of a schedule of two sessions, after each step.

    With three it would not be told by this: who of two others committed before a statement matters
    then, and shows in no answer.

    Args:
        histories: Numbers for what has happened in a session.
        sessions: Both.
        place: The database, as it is filled.
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
        """Note what was answered, also to those that waited for it during the steps of the other."""
        for number, session in enumerate(self._sessions):
            for answer in session.taken():
                self._note_text(number, text_of(answer, self._place.known))

    def _note_text(self, number, text):
        self._note(number, text.marked)
        self._ids[number] += text.ids

    def _note(self, number, event):
        self._past[number] = self._histories.after(self._past[number], event)
