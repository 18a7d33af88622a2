# SPDX-License-Identifier: Apache-2.0
"""Memory that connections share: when it is exhausted, the oldest holder gives up its part."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_Holder = TypeVar("_Holder", bound=Hashable)


class Budget(Generic[_Holder]):
    """Counts bytes by holder, in the order in which they began to hold some.

    Attributes:
        total: Bytes held now.
    """

    def __init__(self, most: int, give_up: Callable[[_Holder], None]) -> None:
        """Set a limit; `give_up` makes a holder release what it has, at once."""
        self.total = 0
        self._most = most
        self._give_up = give_up
        self._held: dict[_Holder, int] = {}

    def note(self, holder: _Holder, size: int) -> None:
        """Set how much a holder has now; if the budget is exceeded, the oldest holders give up theirs.

        A single holder may have any amount: no other would gain.
        """
        self.total += size - self._held.get(holder, 0)
        self._held[holder] = size
        while self.total > self._most and len(self._held) > 1:
            longest = next(iter(self._held))
            self.release(longest)
            self._give_up(longest)

    def release(self, holder: _Holder) -> None:
        """Set the holder's amount to zero."""
        self.total -= self._held.pop(holder, 0)
