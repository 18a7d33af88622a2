# SPDX-License-Identifier: Apache-2.0
"""Used amounts and capacities, by provider and by tree, in the form for scores: whole, at least 0."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.followed import follow
from treeclaim.forest.domains.pairs import Window
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Rows, Trees, search_ascending
from treeclaim.forest.table.forest import Forest

Floats = npt.NDArray[np.float64]
"""Scores, parts of them, or amounts that are divided by others."""


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """Used amounts and capacities of a class, in units, as float64.

    Attributes:
        positions: Rows of the providers that have an inventory of it.
        some_used, some_capacity: Used amount and capacity of each of them.
        tree_used, tree_capacity: Sums by number of the tree, shape (roots,).
        count: Number of all providers.
    """

    positions: Rows
    some_used: Floats
    some_capacity: Floats
    tree_used: Floats
    tree_capacity: Floats
    count: int

    @cached_property
    def used(self) -> Floats:
        """Return what is used by row; 0 where a provider has no such inventory."""
        return self._by_position(self.some_used)

    @cached_property
    def capacity(self) -> Floats:
        """Return the capacity by row; 0 where a provider has no such inventory."""
        return self._by_position(self.some_capacity)

    def _by_position(self, values: Floats) -> Floats:
        at_positions = np.zeros(self.count)
        at_positions[self.positions] = values
        return at_positions

    @property
    def nbytes(self) -> int:
        """Return the memory that the sums take; the rows are kept elsewhere."""
        return 2 * (self.some_used.nbytes + self.tree_used.nbytes)

    def copied(self) -> "ClassTotals":
        """Return the same totals, of which `take` may be called."""
        return replace(self, tree_used=self.tree_used.copy())

    def take(self, position: int, tree: int, amount: int) -> None:
        """Note that more is used of a provider."""
        self.used[position] += amount
        self.tree_used[tree] += amount


def class_rows(forest: Forest, name: str) -> tuple[Rows, Rows, Trees]:
    """Return slots of living providers in the columns of a class, ascending, their rows and trees."""

    def made() -> tuple[Rows, Rows, Trees]:
        columns = forest.class_inventories(name)
        slots = columns.living()
        positions = columns.row.values[slots]
        return slots, positions, forest.order.tree[positions]

    return forest.cache.get(("positions of class", name), made)


def totals_of(forest: Forest, name: str) -> ClassTotals:
    """Return the totals of an existing class as they are now, not to be changed.

    They are cached without the amounts by row, which a caller may derive from them.
    """
    columns = forest.class_inventories(name)
    totals = follow(
        forest,
        ("totals of class", name),
        [columns],
        lambda: _read(forest, name, columns),
        lambda totals, trees: _reread(forest, name, columns, totals, trees),
    )
    return replace(totals)


def _reread(
    forest: Forest, name: str, columns: ClassInventories, totals: ClassTotals, trees: Trees
) -> ClassTotals:
    """Return totals in which some trees are read again."""
    slots, positions, _ = class_rows(forest, name)
    roots = forest.order.roots[trees]
    first, end = search_ascending(positions, [roots, forest.end.values[roots]])
    number, at = Window(first, end - first).pairs()
    arrays = totals.some_used, totals.some_capacity, totals.tree_used, totals.tree_capacity
    some_used, some_capacity, tree_used, tree_capacity = (array.copy() for array in arrays)
    some_used[at], some_capacity[at] = _amounts(columns, slots[at])
    tree_used[trees] = np.bincount(number, some_used[at], minlength=len(trees))
    tree_capacity[trees] = np.bincount(number, some_capacity[at], minlength=len(trees))
    return ClassTotals(positions, some_used, some_capacity, tree_used, tree_capacity, totals.count)


def _read(forest: Forest, name: str, columns: ClassInventories) -> ClassTotals:
    slots, positions, trees = class_rows(forest, name)
    used, capacity = _amounts(columns, slots)
    roots = len(forest.order.roots)
    tree_used, tree_capacity = (
        np.bincount(trees, amounts, minlength=roots).astype(np.float64)
        for amounts in (used, capacity)
    )
    return ClassTotals(positions, used, capacity, tree_used, tree_capacity, forest.row_count)


def _amounts(columns: ClassInventories, slots: Rows) -> tuple[Floats, Floats]:
    """Return what is used of some inventories, and what there is."""
    used: Floats = columns.used.values[slots].astype(np.float64)
    capacity: Floats = np.maximum(columns.capacity(slots).astype(np.float64), 0)
    return used, capacity
