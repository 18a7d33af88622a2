# SPDX-License-Identifier: Apache-2.0
"""Which entries of a table were written lately, for those who keep something that depends on them."""

from treeclaim.forest.bounds import thresholds


class ChangeLog:
    """The numbers of entries in the order in which they were written; old ones are forgotten."""

    __slots__ = ("_first", "_numbers")

    def __init__(self) -> None:
        """Begin with nothing written."""
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
