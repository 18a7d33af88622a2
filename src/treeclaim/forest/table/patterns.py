# SPDX-License-Identifier: Apache-2.0
"""Patterns: what inventories consume of others, relative to their own rows."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from treeclaim.forest.table.columns import Integers


class Use(NamedTuple):
    """What a unit of an inventory consumes of another one.

    Attributes:
        offset: How many rows the provider consumed of is behind the own one.
        class_id: Of the inventory consumed.
        amount: Units.
    """

    offset: int
    class_id: int
    amount: int


Uses = tuple[Use, ...]


class Patterns:
    """What inventories consume, each pattern once; number 0 is that of those that consume nothing.

    Attributes:
        are_any: Whether any inventory has ever consumed another one.
        consumed: Ids of the classes of which anything has been consumed.
    """

    def __init__(self) -> None:
        self._uses: list[Uses] = [()]
        self._numbers: dict[Uses, int] = {(): 0}
        self.are_any = False
        self.consumed: set[int] = set()

    def number_of(self, uses: Iterable[Use]) -> int:
        """Return the number of a pattern, a new one for one that is new."""
        pattern = tuple(sorted(uses))
        number = self._numbers.setdefault(pattern, len(self._uses))
        if number == len(self._uses):
            self._uses.append(pattern)
            self.are_any = True
            self.consumed.update(use.class_id for use in pattern)
        return number

    def __getitem__(self, number: int) -> Uses:
        """Return a pattern by its number."""
        return self._uses[number]

    def among(self, numbers: Integers) -> Iterator[tuple[Uses, Integers]]:
        """Yield each pattern that is among some numbers, and where that is, but for the one of nothing."""
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            if number:
                yield self._uses[number], np.flatnonzero(numbers == number)
