# SPDX-License-Identifier: Apache-2.0
"""The assignment problem: rows take different columns, so that what they are worth is the most.

Solved by shortest augmenting paths with potentials (Kuhn; Jonker and Volgenant, "A shortest augmenting
path algorithm for dense and sparse linear assignment problems", 1987). The potentials are what is
wanted: prices of columns and claims of rows that bound every assignment from above, and are equal to
the best one. In whole numbers, so that this is exact.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import Integers

_NEVER = np.iinfo(np.int64).max

Matrix = npt.NDArray[np.int64]


class Potentials(NamedTuple):
    """A proof of how much an assignment is worth at most.

    No worth is above the claim of its row plus the price of its column. So what some rows get of some
    columns is no more than all their claims and prices together.

    Attributes:
        claims: By row, int64.
        prices: By column, int64, at least 0; 0 where the best assignment has no use for the column.
    """

    claims: Integers
    prices: Integers


def potentials(
    worth: Matrix, allowed: npt.NDArray[np.bool_], check: Callable[[], None]
) -> Potentials | None:
    """Return the potentials of the best assignment; None if some row is left without a column.

    Args:
        worth: What each column is worth to each row, shape (rows, columns); far from the ends of int64.
        allowed: Which columns each row may take.
        check: Called again and again; may raise to give up.
    """
    rows, columns = worth.shape
    solver = _Solver(worth, allowed, check)
    if rows > columns or not all(solver.add(row) for row in range(rows)):
        return None
    return Potentials(-solver.of_row, -solver.of_column)


class _Solver:
    """Takes one row after the other in, at the least costs; costs are what is lost of the worth."""

    def __init__(
        self, worth: Matrix, allowed: npt.NDArray[np.bool_], check: Callable[[], None]
    ) -> None:
        self._cost = -worth
        self._allowed = allowed
        self._check = check
        self.of_row = np.zeros(len(worth), dtype=np.int64)
        self.of_column = np.zeros(worth.shape[1], dtype=np.int64)
        self._taker = np.full(worth.shape[1], -1, dtype=np.int64)

    def add(self, row: int) -> bool:
        """Let one more row take a column; say no if there is no way."""
        columns = len(self._taker)
        reached = np.zeros(columns, dtype=np.bool_)
        distance = np.full(columns, _NEVER, dtype=np.int64)
        before = np.full(columns, -1, dtype=np.int64)
        last, taker = -1, row
        while taker >= 0:
            self._check()
            reduced = self._cost[taker] - self.of_row[taker] - self.of_column
            shorter = self._allowed[taker] & ~reached & (reduced < distance)
            distance[shorter] = reduced[shorter]
            before[shorter] = last
            last = int(np.where(reached, _NEVER, distance).argmin())
            step = distance[last]
            if reached[last] or step == _NEVER:
                return False
            self.of_row[row] += step
            self.of_row[self._taker[reached]] += step
            self.of_column[reached] -= step
            distance[~reached & (distance < _NEVER)] -= step
            reached[last] = True
            taker = int(self._taker[last])
        while last >= 0:
            earlier = int(before[last])
            self._taker[last] = row if earlier < 0 else self._taker[earlier]
            last = earlier
        return True
