# SPDX-License-Identifier: Apache-2.0
"""What happened lately, for those who keep something by inventories or positions."""

from dataclasses import dataclass

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.columns import Positions, search_ascending


class ChangeLog:
    """The numbers of entries in the order in which they were written; old ones are forgotten."""

    __slots__ = ("_first", "_numbers")

    def __init__(self) -> None:
        self._first = 0
        self._numbers: list[int] = []

    @property
    def mark(self) -> int:
        """Return what stands for this moment."""
        return self._first + len(self._numbers)

    def note(self, number: int) -> None:
        """Note that an entry was written."""
        if len(self._numbers) >= thresholds.MOST_WRITES_KNOWN:
            forgotten = (len(self._numbers) + 1) // 2
            del self._numbers[:forgotten]
            self._first += forgotten
        self._numbers.append(number)

    def since(self, mark: int) -> list[int] | None:
        """Return what was written since a moment, ascending; None if that is not known any more."""
        if mark < self._first:
            return None
        return sorted(set(self._numbers[mark - self._first :]))


@dataclass(frozen=True, slots=True)
class Splice:
    """A tree that was written again, made or taken away, in terms of positions.

    Attributes:
        first, end: The positions that the tree had; they are equal where there was none.
        row, size: First row and number of rows that it has now; size 0 where it is gone.
        tree: Its number, or that of the tree behind it.
        moved: Where the positions from `end` on are now, int64; those that were spare mean nothing,
            and those behind have not moved.
    """

    first: int
    end: int
    row: int
    size: int
    tree: int
    moved: Positions

    @property
    def behind(self) -> int:
        """Return the first position behind the tree as it is now."""
        return self.first + self.size

    @property
    def trees_before(self) -> int:
        """Return how many trees there were: one or none."""
        return int(self.end > self.first)

    @property
    def trees_now(self) -> int:
        """Return how many trees there are instead: one or none."""
        return int(self.size > 0)

    def move(self, positions: Positions) -> None:
        """Write where some ascending positions, none of them of the tree, are now."""
        first, end = search_ascending(positions, [self.end, self.end + len(self.moved)]).tolist()
        positions[first:end] = self.moved[positions[first:end] - self.end]
