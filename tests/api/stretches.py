# SPDX-License-Identifier: Apache-2.0
"""The time for which a request works between two looks at a deadline.

What is measured is processor time of the thread that answers, without that of the database: from one look
to the next, from the beginning of the request, and to its end. A statement is a look too, as none
begins after the deadline.
"""

import gc
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import event

from treeclaim.model import timing

LONGEST_STRETCH = 0.300
"""Seconds of processor time between two looks: three times what the service aims at, since machines of
tests are slow and uneven. A loop over a full body that forgets to look takes seconds."""

_FRAMES = 4
"""Callers that are named for a look."""


class Stretches:
    """The longest stretch of one request at a time.

    Attributes:
        longest: In seconds.
        where: The checks at its beginning and at its end.
    """

    def __init__(self, monkeypatch, *engines):
        """Note each look from now on."""
        self.longest = 0.0
        self.where = ("", "")
        self._since = None
        self._before = ""
        clock = time.monotonic

        def looked():
            self._note()
            return clock()

        monkeypatch.setattr(timing, "monotonic", looked)
        self._told = [
            (engine, name, listener)
            for engine in engines
            for name, listener in (
                ("before_cursor_execute", self._noted),
                ("after_cursor_execute", self._went_on),
            )
        ]

    @contextmanager
    def listening(self):
        """Note the statements as long as the block runs."""
        for engine, name, listener in self._told:
            event.listen(engine, name, listener)
        try:
            yield self
        finally:
            for engine, name, listener in self._told:
                event.remove(engine, name, listener)

    def around(self, application):
        """The application; what it does itself is measured, and nothing else."""

        def answer(environment, start):
            # Objects of other tests in this process are not collected at its expense.
            gc.disable()
            self.longest, self.where, self._before = 0.0, ("", ""), "begin"
            self._since = time.thread_time()
            try:
                yield from application(environment, start)
                self._note()
            finally:
                self._since = None
                gc.enable()

        return answer

    def _noted(self, *_):
        self._note()

    def _went_on(self, *_):
        if self._since is not None:
            self._since = time.thread_time()

    def _note(self):
        # Another thread may look when the request has just ended.
        since = self._since
        if since is None:
            return
        spent = time.thread_time() - since
        here = _callers()
        if spent > self.longest:
            self.longest, self.where = spent, (self._before, here)
        self._before = here
        self._since = time.thread_time()


def _callers():
    frame, names = sys._getframe(2), []
    while frame is not None and len(names) < _FRAMES:
        path = Path(frame.f_code.co_filename)
        if "treeclaim" in path.parts:
            names.append(f"{path.name}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(names)
