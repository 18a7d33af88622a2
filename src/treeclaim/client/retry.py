# SPDX-License-Identifier: Apache-2.0
"""Repeats calls while a service is unavailable, and after conflicts with concurrent writes."""

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from treeclaim.client.errors import ClientError, LostConnectionError, UnreachableError

_SECONDS = 60.0
"""Seconds for which a call is repeated; a restart with a large inventory mostly takes less."""

_LEAST_SECONDS = 0.2
_LONGEST_SECONDS = 5.0
"""Seconds between two attempts: each pause is twice the last one, or that of the header Retry-After if longer."""

_MOST_CONFLICTS = 4
"""Conflicts after which an attempt is repeated without a pause."""

_CONCURRENT = "placement.concurrent_update"

_REPEATABLE = frozenset(
    {
        "/treeclaim/candidates",
        "/treeclaim/capacity",
        "/treeclaim/placements",
        "/treeclaim/audit",
        "/treeclaim/providers",
        "/treeclaim/holds",
        "/treeclaim/requests",
        "/treeclaim/aggregates/names",
    }
)
"""Paths of idempotent calls by POST (contract pages 98 to 100)."""

Result = TypeVar("Result")


class Patience:
    """Rules for repeated calls while a service is busy or restarting.

    A call is not repeated if the service has never answered: it may not exist.

    Args:
        seconds: Time from the start of a call to its last attempt; 0 to repeat nothing.
        tell: Called with a message before the first repetition of a call.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        seconds: float = _SECONDS,
        tell: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds = seconds
        self._tell = tell
        self._sleep = sleep
        self._has_answered = False

    def repeat(self, attempt: Callable[[], Result]) -> Result:
        """Make an idempotent attempt until its outcome is known and no concurrent write conflicts with it."""
        deadline = time.monotonic() + self._seconds
        pause, conflicts, is_reported = _LEAST_SECONDS, 0, False
        while True:
            try:
                result = attempt()
            except ClientError as error:
                self._has_answered |= error.status is not None
                if is_conflict(error) and conflicts < _MOST_CONFLICTS:
                    conflicts += 1
                    continue
                remaining_seconds = deadline - time.monotonic()
                if not (
                    self._has_answered and is_outcome_unknown(error) and remaining_seconds > 0
                ):
                    raise
                if not is_reported:
                    self._tell(f"{error}; trying again for {self._seconds:.0f} s")
                    is_reported = True
                self._sleep(
                    min(max(error.retry_after or 0, pause), max(remaining_seconds, _LEAST_SECONDS))
                )
                pause = min(2 * pause, _LONGEST_SECONDS)
            else:
                self._has_answered = True
                return result


def is_outcome_unknown(error: ClientError) -> bool:
    """Return whether the outcome of a call is unknown: no response, or 503 with Retry-After."""
    if isinstance(error, UnreachableError | LostConnectionError):
        return True
    return error.status == HTTPStatus.SERVICE_UNAVAILABLE and error.retry_after is not None


def is_repeatable(method: str, path: str) -> bool:
    """Return whether a call may be repeated, whatever the outcome of the first one.

    A write of a single object is not repeatable: the first call may have increased its generation.
    """
    return method == "GET" or (method == "POST" and path.partition("?")[0] in _REPEATABLE)


def is_conflict(error: ClientError) -> bool:
    """Return whether a call failed because of a concurrent write."""
    return error.status == HTTPStatus.CONFLICT and error.code == _CONCURRENT
