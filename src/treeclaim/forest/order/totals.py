# SPDX-License-Identifier: Apache-2.0
"""Used amounts and capacities of a resource class, by provider and by tree."""

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
"""Scores, their parts, or amounts to divide."""


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """Used amounts and capacities of a class: whole units of at least 0, as float64.

    Attributes:
        rows: Rows of the providers that have an inventory of the class.
        provider_used, provider_capacity: Used amount and capacity of each of these providers.
        tree_used, tree_capacity: Sums by number of the tree, shape (roots,).
        row_count: Number of rows of the Forest.
    """

    rows: Rows
    provider_used: Floats
    provider_capacity: Floats
    tree_used: Floats
    tree_capacity: Floats
    row_count: int

    @cached_property
    def used(self) -> Floats:
        """Return the used amount by row; 0 where a provider has no such inventory."""
        return self._by_row(self.provider_used)

    @cached_property
    def capacity(self) -> Floats:
        """Return the capacity by row; 0 where a provider has no such inventory."""
        return self._by_row(self.provider_capacity)

    def _by_row(self, values: Floats) -> Floats:
        by_row = np.zeros(self.row_count)
        by_row[self.rows] = values
        return by_row

    @property
    def nbytes(self) -> int:
        """Return the memory of the amounts; another cache entry counts the rows."""
        return 2 * (self.provider_used.nbytes + self.tree_used.nbytes)

    def copy(self) -> "ClassTotals":
        """Return a copy that `add_used` may change."""
        return replace(self, tree_used=self.tree_used.copy())

    def add_used(self, row: int, tree: int, amount: int) -> None:
        """Add an amount to the used amounts of a provider and its tree."""
        self.used[row] += amount
        self.tree_used[tree] += amount


def find_class_rows(forest: Forest, name: str) -> tuple[Rows, Rows, Trees]:
    """Return the inventories of a class, as ascending indices of its columns, with their rows and trees."""

    def compute() -> tuple[Rows, Rows, Trees]:
        columns = forest.class_inventories(name)
        indices = columns.living_indices()
        rows = columns.row.values[indices]
        return indices, rows, forest.order.tree[rows]

    return forest.cache.get(("rows of class", name), compute)


def get_totals(forest: Forest, name: str) -> ClassTotals:
    """Return the current totals of an existing class; callers must copy them before a change."""
    columns = forest.class_inventories(name)
    totals = follow(
        forest,
        ("totals of class", name),
        [columns],
        lambda: _read(forest, name, columns),
        lambda totals, trees: _update_trees(forest, name, columns, totals, trees),
    )
    # The cached object would otherwise keep the arrays by row, which `nbytes` does not count.
    return replace(totals)


def _update_trees(
    forest: Forest, name: str, columns: ClassInventories, totals: ClassTotals, trees: Trees
) -> ClassTotals:
    """Return totals with the current amounts of some trees."""
    indices, rows, _ = find_class_rows(forest, name)
    roots = forest.order.roots[trees]
    first, end = search_ascending(rows, [roots, forest.end.values[roots]])
    number, at = Window(first, end - first).pairs()
    arrays = totals.provider_used, totals.provider_capacity, totals.tree_used, totals.tree_capacity
    used_units, capacity, tree_used, tree_capacity = (array.copy() for array in arrays)
    used_units[at], capacity[at] = _read_amounts(columns, indices[at])
    tree_used[trees] = np.bincount(number, used_units[at], minlength=len(trees))
    tree_capacity[trees] = np.bincount(number, capacity[at], minlength=len(trees))
    return ClassTotals(rows, used_units, capacity, tree_used, tree_capacity, totals.row_count)


def _read(forest: Forest, name: str, columns: ClassInventories) -> ClassTotals:
    indices, rows, trees = find_class_rows(forest, name)
    used_units, capacity = _read_amounts(columns, indices)
    roots = len(forest.order.roots)
    tree_used, tree_capacity = (
        np.bincount(trees, amounts, minlength=roots).astype(np.float64)
        for amounts in (used_units, capacity)
    )
    return ClassTotals(rows, used_units, capacity, tree_used, tree_capacity, forest.row_count)


def _read_amounts(columns: ClassInventories, indices: Rows) -> tuple[Floats, Floats]:
    used_units: Floats = columns.used.values[indices].astype(np.float64)
    capacity: Floats = np.maximum(columns.capacity(indices).astype(np.float64), 0)
    return used_units, capacity
