# SPDX-License-Identifier: Apache-2.0
"""The time for which a request works between two checks of a deadline.

The time is processor time of the thread that answers, without that of the database. A stretch lasts from one check
to the next; the begin and the end of a request are checks too. So is a statement, as none begins after the deadline.
"""

import gc
import time
from contextlib import contextmanager
from unittest.mock import patch

from sqlalchemy import event

from treeclaim.model import timing

LONGEST_STRETCH = 0.300
"""Seconds of processor time between two checks: three times what the service aims at, since machines of
tests are slow and uneven. A loop over a full body that forgets to check takes seconds."""


class MeasuredApplication:
    """An application whose requests are measured, one at a time.

    Attributes:
        longest: Seconds of the longest stretch of the latest request.
    """

    def __init__(self, application):
        self.longest = 0.0
        self._application = application
        self._since = None

    def __call__(self, environment, start):
        # Objects of other tests in this process are not collected at its expense.
        gc.disable()
        self.longest, self._since = 0.0, time.thread_time()
        try:
            yield from self._application(environment, start)
            self.end_stretch()
        finally:
            self._since = None
            gc.enable()

    def end_stretch(self, *_):
        """End a stretch, and begin another."""
        # Another thread may check when the request has just ended.
        since = self._since
        if since is not None:
            self.longest = max(self.longest, time.thread_time() - since)
            self._since = time.thread_time()

    def begin_stretch(self, *_):
        """Begin a stretch after a statement."""
        if self._since is not None:
            self._since = time.thread_time()


@contextmanager
def measured_stretches(application, *engines):
    """Yield the measured application, which uses these engines of the database."""
    measured = MeasuredApplication(application)
    clock = time.monotonic

    def check():
        measured.end_stretch()
        return clock()

    listeners = {
        "before_cursor_execute": measured.end_stretch,
        "after_cursor_execute": measured.begin_stretch,
    }
    listened = [(engine, *pair) for engine in engines for pair in listeners.items()]
    for engine, name, listener in listened:
        event.listen(engine, name, listener)
    try:
        with patch.object(timing, "monotonic", check):
            yield measured
    finally:
        for engine, name, listener in listened:
            event.remove(engine, name, listener)
