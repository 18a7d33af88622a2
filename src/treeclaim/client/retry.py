# SPDX-License-Identifier: Apache-2.0
"""Repeats calls while a service is away, and attempts that conflict with concurrent writes."""

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from treeclaim.client.errors import ClientError, LostConnectionError, UnreachableError

_SECONDS = 60.0
"""Seconds for which a call is repeated: mostly longer than a restart with a large inventory takes."""

_LEAST = 0.2
_LONGEST = 5.0
"""Seconds between two attempts: each pause doubles from the least, or is the one that the service requests."""

_MOST_CONFLICTS = 4
"""Conflicts with concurrent writes after which an attempt is repeated, at once."""

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
"""Calls by POST that only read, or end alike when made twice (contract pages 98 to 100)."""

Result = TypeVar("Result")


class Patience:
    """The time for which calls are repeated while a service is busy or restarting.

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
            tell: Called with a message for people before the first repetition of a call.
            sleep: Waits.
        """
        self._seconds = seconds
        self._tell = tell
        self._sleep = sleep
        self._has_answered = False

    def repeat(self, attempt: Callable[[], Result]) -> Result:
        """Make an attempt until its outcome is known, and it conflicts with no concurrent write.

        Args:
            attempt: May be made again whatever became of the one before.

        Raises:
            ClientError: if the attempt fails for another reason, or the service does not come back in time.
        """
        deadline = time.monotonic() + self._seconds
        pause, conflicts, was_told = _LEAST, 0, False
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
                if not was_told:
                    self._tell(f"{error}; trying again for {self._seconds:.0f} s")
                    was_told = True
                self._sleep(
                    min(max(error.retry_after or 0, pause), max(remaining_seconds, _LEAST))
                )
                pause = min(2 * pause, _LONGEST)
            else:
                self._has_answered = True
                return result


def is_outcome_unknown(error: ClientError) -> bool:
    """Return whether a call may or may not have been carried out: no answer, or 503."""
    if isinstance(error, UnreachableError | LostConnectionError):
        return True
    return error.status == HTTPStatus.SERVICE_UNAVAILABLE and error.retry_after is not None


def is_repeatable(method: str, path: str) -> bool:
    """Return whether a call may be made again, whatever became of the first one.

    A write of one object has a generation, which the first call may have raised: the caller has to check.
    """
    return method == "GET" or (method == "POST" and path.partition("?")[0] in _REPEATABLE)


def is_conflict(error: ClientError) -> bool:
    """Return whether a call failed because of a concurrent write."""
    return error.status == HTTPStatus.CONFLICT and error.code == _CONCURRENT
