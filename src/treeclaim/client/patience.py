# SPDX-License-Identifier: Apache-2.0
"""Repeats calls while a service is busy, or starts again."""

import time
from collections.abc import Callable
from http import HTTPStatus

from treeclaim.client.errors import LostConnectionError, UnreachableError
from treeclaim.client.transport import Response

_SECONDS = 60.0
"""That a call is repeated for: longer than a restart with a large inventory takes, mostly."""

_LEAST = 0.2
_LONGEST = 5.0
"""Seconds between two attempts: each pause doubles from the least, or is what the service asks for."""


class Patience:
    """How long calls that may be repeated are.

    A service that has never answered is not waited for: nobody may be there.
    """

    def __init__(
        self,
        seconds: float = _SECONDS,
        tell: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set the limits.

        Args:
            seconds: From the first failure of a call to its last attempt; 0 to repeat nothing.
            tell: Called with a sentence for people before the first repetition of a call.
            sleep: Waits.
        """
        self._seconds = seconds
        self._tell = tell
        self._sleep = sleep
        self._has_answered = False

    def ask(self, send: Callable[[], Response], *, may_repeat: bool) -> Response:
        """Send a request, again and again if it may be repeated; return the last answer.

        Raises:
            ClientError: as `send`; UnreachableError or LostConnectionError where the service does not
                come back in time.
        """
        deadline = time.monotonic() + self._seconds
        pause = _LEAST
        was_told = False
        while True:
            left = deadline - time.monotonic() if may_repeat else 0.0
            try:
                answer = send()
            except (UnreachableError, LostConnectionError) as error:
                if not self._has_answered or left <= 0:
                    raise
                why, wait = str(error), pause
            else:
                self._has_answered = True
                asked = retry_after(answer)
                if answer.status != HTTPStatus.SERVICE_UNAVAILABLE or asked is None or left <= 0:
                    return answer
                why, wait = "the service is busy (503)", max(asked, pause)
            if not was_told:
                self._tell(f"{why}; trying again for {self._seconds:.0f} s")
                was_told = True
            self._sleep(min(wait, max(left, _LEAST)))
            pause = min(2 * pause, _LONGEST)


def retry_after(answer: Response) -> float | None:
    """Return the seconds after which a server asks to be called again; None if it does not."""
    value = str(answer.headers.get("retry-after", ""))
    return float(value) if value.isascii() and value.isdigit() else None
