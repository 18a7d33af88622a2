# SPDX-License-Identifier: Apache-2.0
"""How long to wait before a process that has ended is replaced."""

import signal
import time

_FIRST_PAUSE = 0.25
"""Seconds before the second of two processes that died young is replaced; it doubles each time."""

_LONGEST_PAUSE = 5.0
"""Longest pause: the service comes back soon after the cause is gone."""

_YOUNG = 30.0
"""Seconds; a process that lived longer is replaced at once."""


class Patience:
    """The pauses of one place.

    Attributes:
        pause: Seconds until the next process is started.
    """

    def __init__(self) -> None:
        self.pause = 0.0

    def note_life(self, born: float) -> None:
        """Note that a process has ended that was born then, by the monotonic clock."""
        if time.monotonic() - born > _YOUNG:
            self.pause = 0.0

    def lengthen(self) -> None:
        """Make the next pause longer."""
        self.pause = min(max(2 * self.pause, _FIRST_PAUSE), _LONGEST_PAUSE)


def reason(code: int) -> str:
    """Say why a process has ended."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
