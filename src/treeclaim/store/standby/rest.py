# SPDX-License-Identifier: Apache-2.0
"""A standby that could not be read from is left alone until a thread finds that it can be."""

import logging
import threading
import weakref
from time import monotonic
from typing import Protocol

_LOG = logging.getLogger(__name__)

RESPITE_SECONDS = 5.0
"""Between two looks at a standby that is left alone: so often it is found again, so seldom is somebody
bothered who has enough to do."""

RESTING_THREAD = "treeclaim-standby"
"""Name of the thread that looks."""


class Looked(Protocol):
    """A standby that can be looked at."""

    def fault(self) -> str | None:
        """Return why it cannot be read from now; None if it can."""
        ...


class Rest:
    """Whether a standby is left alone; threads may share it.

    No thread is there until something is wrong.

    Args:
        standby: The standby.
    """

    def __init__(self, standby: Looked) -> None:
        self._standby = weakref.ref(standby)
        self._lock = threading.Lock()
        self._why: str | None = None
        self._since = 0.0
        self._thread: threading.Thread | None = None
        self.closing = threading.Event()

    @property
    def is_on(self) -> bool:
        """Tell whether the standby is left alone."""
        return self._why is not None

    def begin(self, why: str) -> None:
        """Leave the standby alone from now on, and tell the operator once."""
        with self._lock:
            if self._why is not None or self.closing.is_set():
                return
            self._why, self._since = why, monotonic()
            self._thread = threading.Thread(target=self._look_on, name=RESTING_THREAD, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                # The next one who reads looks.
                self._thread, self._why = None, None
        _LOG.warning("The standby is not read from, but the primary: %s", why)

    def _look_on(self) -> None:
        while not self.closing.wait(RESPITE_SECONDS):
            standby = self._standby()
            if standby is None:
                return
            why = standby.fault()
            del standby
            if why is None:
                self._end()
                return
            self._note(why)

    def _note(self, why: str) -> None:
        if why != self._why:
            _LOG.warning("The standby is still not read from: %s", why)
            self._why = why

    def _end(self) -> None:
        seconds = monotonic() - self._since
        self._thread, self._why = None, None
        _LOG.warning("The standby is read from again after %.0f s", seconds)

    def close(self, seconds: float) -> None:
        """End the thread, if there is one; wait so long for it."""
        self.closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(seconds)
