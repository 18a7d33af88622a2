# SPDX-License-Identifier: Apache-2.0
"""Recent changes, for caches by inventory or tree that follow them."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

_Change = TypeVar("_Change")


class RecentEntries(Generic[_Change]):
    """The latest changes in order; older ones are forgotten.

    Attributes:
        mark: Stands for the present moment.
    """

    __slots__ = ("_changes", "mark")

    def __init__(self, most: int) -> None:
        self.mark = 0
        self._changes: deque[_Change] = deque(maxlen=most)

    def note(self, changes: Sequence[_Change]) -> None:
        """Note some changes."""
        self.mark += len(changes)
        self._changes.extend(changes)

    def forget(self) -> None:
        """Note a change that cannot be followed."""
        self.mark += 1
        self._changes.clear()

    def since(self, mark: int) -> Sequence[_Change] | None:
        """Return the changes since a moment, in order; None if they are not known any more."""
        count = self.mark - mark
        if not 0 <= count <= len(self._changes):
            return None
        return list(islice(reversed(self._changes), count))[::-1]


@dataclass(frozen=True, slots=True)
class Splice:
    """A tree that was written again, made or taken away.

    Attributes:
        tree: Its number, or that of the tree behind it.
        trees_before: How many trees there were: one or none.
        trees_now: How many trees there are instead: one or none.
        rows: The rows that it has now; empty where it is gone.
    """

    tree: int
    trees_before: int
    trees_now: int
    rows: range
