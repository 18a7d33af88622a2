# SPDX-License-Identifier: Apache-2.0
"""A circuit breaker: a standby that could not be read is left alone until a thread finds that it can be."""

import logging
import threading
import weakref
from time import monotonic
from typing import Protocol

_LOG = logging.getLogger(__name__)

PROBE_SECONDS = 5.0
"""Seconds between two probes of a standby that is left alone: short enough to find it again soon, long enough not to add
to the load of a busy server."""

PROBING_THREAD = "treeclaim-standby"
"""Name of the thread that probes."""


class Probed(Protocol):
    """A standby that can be probed."""

    def fault(self) -> str | None:
        """Return why it cannot be read from now; None if it can."""
        ...


class CircuitBreaker:
    """Whether a standby is left alone; threads may share it.

    No thread exists until something is wrong.

    Args:
        standby: The standby.
    """

    def __init__(self, standby: Probed) -> None:
        self._standby = weakref.ref(standby)
        self._lock = threading.Lock()
        self._why: str | None = None
        self._since = 0.0
        self._thread: threading.Thread | None = None
        self.closing = threading.Event()

    @property
    def is_open(self) -> bool:
        """Tell whether the standby is left alone."""
        return self._why is not None

    def trip(self, why: str) -> None:
        """Leave the standby alone from now on, and tell the operator once."""
        with self._lock:
            if self._why is not None or self.closing.is_set():
                return
            self._why, self._since = why, monotonic()
            self._thread = threading.Thread(target=self._probe, name=PROBING_THREAD, daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                # The next reader tries it.
                self._thread, self._why = None, None
        _LOG.warning("The standby is not read from, but the primary: %s", why)

    def _probe(self) -> None:
        while not self.closing.wait(PROBE_SECONDS):
            standby = self._standby()
            if standby is None:
                return
            why = standby.fault()
            del standby
            if why is None:
                self._reset()
                return
            self._note(why)

    def _note(self, why: str) -> None:
        if why != self._why:
            _LOG.warning("The standby is still not read from: %s", why)
            self._why = why

    def _reset(self) -> None:
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
