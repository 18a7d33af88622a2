# SPDX-License-Identifier: Apache-2.0
"""Recent changes, for caches by inventory or tree that follow them."""

from dataclasses import dataclass

from treeclaim.forest.bounds import thresholds


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
