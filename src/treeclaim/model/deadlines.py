# SPDX-License-Identifier: Apache-2.0
"""The one clock for work: code that works through input checks here whether its time is over.

Searches, transactions, and what reads bodies have deadlines of their own; all look at them by
`has_passed`. So one test can tell, for every operation, how long it works between two looks.
"""

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

from treeclaim.model.errors import RequestGivenUpError

Item = TypeVar("Item")


def has_passed(at: float | None) -> bool:
    """Look whether a time of the monotonic clock has passed; None never does."""
    return at is not None and monotonic() > at


class Deadline:
    """The end of the work for a request, apart from its search and its transaction.

    Attributes:
        at: On the monotonic clock.
    """

    def __init__(self, seconds: float) -> None:
        """Let work end this many seconds from now."""
        self.at = monotonic() + seconds
        self._seconds = seconds

    @property
    def is_over(self) -> bool:
        """Look whether it has passed."""
        return has_passed(self.at)

    def look(self) -> None:
        """Go on, unless it has passed.

        Raises:
            RequestGivenUpError: if it has.
        """
        if self.is_over:
            raise RequestGivenUpError(self._seconds)

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, and check the deadline before each.

        Raises:
            RequestGivenUpError: if it has passed.
        """
        for item in items:
            self.look()
            yield item
