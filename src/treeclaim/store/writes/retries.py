# SPDX-License-Identifier: Apache-2.0
"""Attempts of one write: how many, and with which pauses."""

import random
import threading

from treeclaim import metrics
from treeclaim.model.deadlines import has_passed
from treeclaim.model.errors import TreeclaimError

ATTEMPTS = 12
"""How often a write is tried. With pauses that double, they add up to about a second."""

_FIRST_PAUSE = 0.005
"""Seconds at most before the second attempt: about one transaction."""

_LONGEST_PAUSE = 0.25
"""Seconds at most before any attempt: a loaded server needs time, a client wants its answer."""


class Retries:
    """The attempts that one write has left.

    Attributes:
        deadline: On the monotonic clock; no statement of the write begins later.
    """

    def __init__(self, attempts: int, deadline: float, closing: threading.Event) -> None:
        self.deadline = deadline
        self._left = attempts
        self._closing = closing
        self._pause = _FIRST_PAUSE

    def again(self, cause: Exception, final: TreeclaimError) -> None:
        """Pause before the next attempt.

        Args:
            cause: Why the last attempt failed.
            final: What to raise if there is no next attempt.

        Raises:
            TreeclaimError: `final`.
        """
        self._left -= 1
        if self._left <= 0 or has_passed(self.deadline):
            raise final from cause
        metrics.RETRIES.inc()
        # Jitter, so retries do not collide again.
        self._closing.wait(self._pause * random.random())  # noqa: S311
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
