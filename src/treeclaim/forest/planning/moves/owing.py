# SPDX-License-Identifier: Apache-2.0
"""What is owed where a consumer has taken a place without room, by numbers of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.order.totals import Floats
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.clearing import Clearing, Option
from treeclaim.forest.planning.moves.picture import Cell
from treeclaim.forest.table.columns import Integers

Units = Mapping[int, int]
"""Units by number of a cell."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Places of a request.

    Attributes:
        options: The places.
        cells: Numbers of the cells of each, shape (places, most cells of any).
        needs: Units that each needs there; none of the first cell where it has fewer.
    """

    options: Sequence[Option]
    cells: Integers
    needs: Integers

    def units(self, number: int) -> Units:
        """Return what one of them needs."""
        row = zip(self.cells[number].tolist(), self.needs[number].tolist(), strict=True)
        return {at: n for at, n in row if n}


class Owing:
    """Adds up what is owed, from what is free on a board at the beginning.

    Attributes:
        weights: What a unit counts that is owed, by number of a cell.
    """

    def __init__(self, board: Board, clearing: Clearing) -> None:
        self._board = board
        self._clearing = clearing
        self._numbers: dict[Cell, int] = {}
        self._cells: list[Cell] = []
        self._free: Integers = np.zeros(0, dtype=np.int64)
        self._owed: Integers = np.zeros(0, dtype=np.int64)
        self._power = 0.0
        self._by_class: dict[str, float] = {}
        self.weights: Floats = np.zeros(0)

    def weigh(self, power: float) -> None:
        """Count a class by how much of it there is in all, and more if little of that is free."""
        self._power = power
        self._by_class.clear()
        self.weights = np.array([self._weight(name) for _, name in self._cells])

    def _weight(self, name: str) -> float:
        if name not in self._by_class:
            columns = self._board.forest.class_inventories(name)
            free = np.maximum(columns.free.values[columns.living()], 0).sum(dtype=np.float64)
            size = self._clearing.all_of(name)
            self._by_class[name] = (size / max(float(free), 1.0)) ** self._power / size
        return self._by_class[name]

    def numbered(self, units: Mapping[Cell, int]) -> Units:
        """Return units by number of a cell."""
        new = [cell for cell in units if cell not in self._numbers]
        for cell in new:
            self._numbers[cell] = len(self._numbers)
            self._cells.append(cell)
        if new:
            free = np.array([self._board.free_of(cell) for cell in new], dtype=np.int64)
            self._free = np.concatenate((self._free, free))
            self._owed = np.zeros(len(self._free), dtype=np.int64)
            more = np.array([self._weight(name) for _, name in new])
            self.weights = np.concatenate((self.weights, more))
        return {self._numbers[cell]: n for cell, n in units.items()}

    def cell(self, number: int) -> Cell:
        """Return the cell of a number."""
        return self._cells[number]

    def places(self, options: Sequence[Option]) -> Places:
        """Return places with what they need, and what that consumes."""
        cells = dict.fromkeys(
            cell for option in options for cell in self._board.picture.with_consumed(option.needs)
        )
        self.numbered(dict.fromkeys(cells, 0))
        rows = [
            self.numbered(self._board.picture.with_consumed(option.needs)) for option in options
        ]
        shape = len(rows), max(map(len, rows), default=0)
        places = Places(options, np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))
        for number, row in enumerate(rows):
            places.cells[number, : len(row)] = list(row)
            places.needs[number, : len(row)] = list(row.values())
        return places

    def worth(self, debts: Units) -> float:
        """Return what all that is owed counts."""
        return float(sum(n * self.weights[at] for at, n in debts.items()))

    def added(self, places: Places, change: Units, debts: Units) -> Floats:
        """Return how much more would be owed if a consumer took a place, for each of some."""
        changed, owing = list(change), list(debts)
        before = self._free[changed]
        self._free[changed] += np.array(list(change.values()), dtype=np.int64)
        self._owed[owing] = list(debts.values())
        more = np.maximum(places.needs - self._free[places.cells], 0) - self._owed[places.cells]
        self._free[changed] = before
        self._owed[owing] = 0
        needed = places.needs > 0
        sums: Floats = (more * needed * self.weights[places.cells]).sum(axis=1)
        return sums

    def after(self, change: Units, debts: Units, used: Units) -> tuple[Units, Units]:
        """Return change and debts when more is used, or less where that is below zero.

        Where there was too little before, nothing is owed until somebody comes.
        """
        changed, owed = dict(change), dict(debts)
        for at, n in used.items():
            changed[at] = changed.get(at, 0) - n
            if n > 0 or at in owed:
                missing = -int(self._free[at]) - changed[at]
                if missing > 0:
                    owed[at] = missing
                else:
                    owed.pop(at, None)
        return changed, owed
