# SPDX-License-Identifier: Apache-2.0
"""Repeats calls while a service is busy or restarting, and attempts that conflict with others."""

import time
from collections.abc import Callable
from http import HTTPStatus

from treeclaim.client.errors import ClientError, LostConnectionError, UnreachableError
from treeclaim.client.transport import Response

_SECONDS = 60.0
"""Seconds for which a call is repeated: mostly longer than a restart with a large inventory takes."""

_LEAST = 0.2
_LONGEST = 5.0
"""Seconds between two attempts: each pause doubles from the least, or is what the service asks for."""

_ATTEMPTS = 5
_CONCURRENT = "placement.concurrent_update"
_CONCURRENT_WORDS = ("generation conflict", "concurrently", "concurrent")
"""How servers below 1.23, without error codes, report a concurrent change."""

_REPEATABLE = (
    "/treeclaim/candidates",
    "/treeclaim/capacity",
    "/treeclaim/placements",
    "/treeclaim/audit",
    "/treeclaim/providers",
    "/treeclaim/holds",
    "/treeclaim/requests",
    "/treeclaim/aggregates/names",
)
"""Calls by POST that only read, or end alike when made twice (contract pages 98 to 100)."""


class Patience:
    """How long calls are repeated that may be.

    A service that has never answered is not waited for: it may not exist.
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
                asked = answer.retry_after
                if answer.status != HTTPStatus.SERVICE_UNAVAILABLE or asked is None or left <= 0:
                    return answer
                why, wait = "the service is busy (503)", max(asked, pause)
            if not was_told:
                self._tell(f"{why}; trying again for {self._seconds:.0f} s")
                was_told = True
            self._sleep(min(wait, max(left, _LEAST)))
            pause = min(2 * pause, _LONGEST)

    def complete(self, attempt: Callable[[], None]) -> None:
        """Repeat an attempt that reads before it writes, until its outcome is known.

        Raises:
            ClientError: if the attempt fails for another reason, or the service does not come back in time.
        """
        deadline = time.monotonic() + self._seconds
        pause = _LEAST
        while True:
            try:
                retried(attempt)
            except ClientError as error:
                left = deadline - time.monotonic()
                if not (self._has_answered and is_outcome_unknown(error) and left > 0):
                    raise
                self._sleep(min(max(error.retry_after or 0, pause), max(left, _LEAST)))
                pause = min(2 * pause, _LONGEST)
            else:
                return


def is_outcome_unknown(error: ClientError) -> bool:
    """Return whether a call may or may not have been carried out: no answer, or 503."""
    if isinstance(error, UnreachableError | LostConnectionError):
        return True
    return error.status == HTTPStatus.SERVICE_UNAVAILABLE and error.retry_after is not None


def may_repeat(method: str, path: str) -> bool:
    """Tell whether a call may be made again, whatever became of the first one.

    A write of one object has a generation, which the first call may have raised: the caller has to check.
    """
    return method == "GET" or (method == "POST" and path.partition("?")[0] in _REPEATABLE)


def retried(attempt: Callable[[], None]) -> None:
    """Repeat an attempt that fails because of a concurrent change."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            attempt()
        except ClientError as error:
            if not (left and is_conflict(error)):
                raise
        else:
            return


def is_conflict(error: ClientError) -> bool:
    """Return whether a call failed because of a concurrent change."""
    message = str(error)
    return error.status == HTTPStatus.CONFLICT and (
        error.code == _CONCURRENT or any(word in message for word in _CONCURRENT_WORDS)
    )
