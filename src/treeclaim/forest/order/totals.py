# SPDX-License-Identifier: Apache-2.0
"""Used amounts and capacities, by provider and by tree, as scores want them: whole, at least 0."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Rows, read_only, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.recent_changes import ChangeLog

_EXACT = 2.0**52
"""Below it, sums of whole numbers are whole: what is added and taken away leaves no trace."""

Floats = npt.NDArray[np.float64]
"""Scores, parts of them, or amounts that are divided by others."""


@dataclass(frozen=True, slots=True)
class _ClassRows:
    """The places of the inventories of a class, which depend only on the shape of the Forest.

    Attributes:
        slots: Inventories of living providers, int64, ascending.
        positions: The row of each one's provider.
        trees: Number of the tree of each.
    """

    slots: Rows
    positions: Rows
    trees: Rows

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return self.slots.nbytes + self.positions.nbytes + self.trees.nbytes


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

    def are_exact(self, trees: Rows | slice) -> bool:
        """Tell whether the sums of some trees are whole, so that they may be added to."""
        greatest = max(
            self.tree_used[trees].max(initial=0), self.tree_capacity[trees].max(initial=0)
        )
        return bool(greatest < _EXACT)

    def change(self, some: Rows, trees: Rows, used: Floats, capacity: Floats) -> None:
        """Put other amounts in the place of some, each of another inventory."""
        np.add.at(self.tree_used, trees, used - self.some_used[some])
        np.add.at(self.tree_capacity, trees, capacity - self.some_capacity[some])
        self.some_used[some] = used
        self.some_capacity[some] = capacity

    def copied(self) -> "ClassTotals":
        """Return the same, to be changed."""
        return replace(
            self,
            some_used=self.some_used.copy(),
            some_capacity=self.some_capacity.copy(),
            tree_used=self.tree_used.copy(),
            tree_capacity=self.tree_capacity.copy(),
        )

    def read_only(self) -> "ClassTotals":
        """Return the same as it is seen by others: nothing can be written into it."""
        return replace(
            self,
            some_used=read_only(self.some_used),
            some_capacity=read_only(self.some_capacity),
            tree_used=read_only(self.tree_used),
            tree_capacity=read_only(self.tree_capacity),
        )

    def take(self, position: int, tree: int, amount: int) -> None:
        """Note that more is used of a provider."""
        self.used[position] += amount
        self.tree_used[tree] += amount


def class_rows(forest: Forest, name: str) -> tuple[Rows, Rows, Rows]:
    """Return slots of living providers in the columns of a class, their rows and trees."""

    def made() -> _ClassRows:
        columns = forest.class_inventories(name)
        slots = columns.living()
        positions = columns.row.values[slots]
        return _ClassRows(slots, positions, forest.order.tree[positions])

    cached = forest.cache.get(("positions of class", name), made)
    return cached.slots, cached.positions, cached.trees


@dataclass(eq=False)
class _CachedTotals:
    """Totals of a class, kept true while single inventories are written.

    Attributes:
        columns: Whose they are: a scratch Forest may have others under the same name.
        mark: What was written before is in them.
        totals: The totals.
    """

    columns: ClassInventories
    log: ChangeLog
    mark: int
    totals: ClassTotals

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return self.totals.nbytes

    def bring_up_to_date(self, forest: Forest, name: str) -> None:
        """Take in what was written since."""
        changed = self.log.since(self.mark)
        if changed is None or not self._took_in(changed, forest, name):
            self.totals = _read(forest, name, self.columns)
        self.mark = self.log.mark

    def _took_in(self, changed: Sequence[int], forest: Forest, name: str) -> bool:
        """Apply single inventories; return False if the totals have to be read again."""
        if not changed:
            return True
        slots, _, trees = class_rows(forest, name)
        indices = search_ascending(slots, changed)
        were_exact = self.totals.are_exact(trees[indices])
        self.totals.change(indices, trees[indices], *_amounts(self.columns, slots[indices]))
        return were_exact and self.totals.are_exact(trees[indices])


def totals_of(forest: Forest, name: str) -> ClassTotals:
    """Return the totals of an existing class as they are now, not to be changed."""
    columns = forest.class_inventories(name)
    if columns.written is None:
        return _read(forest, name, columns)
    key = ("totals of class", name)
    kept = forest.cache.find(key)
    if isinstance(kept, _CachedTotals) and kept.columns is columns:
        kept.bring_up_to_date(forest, name)
    else:
        log = columns.written
        kept = _CachedTotals(columns, log, log.mark, _read(forest, name, columns))
        forest.cache.keep(key, kept)
    return kept.totals.read_only()


def _read(forest: Forest, name: str, columns: ClassInventories) -> ClassTotals:
    slots, positions, trees = class_rows(forest, name)
    some_used, some_capacity = _amounts(columns, slots)
    roots = len(forest.order.roots)
    tree_used: Floats = np.zeros(roots)
    tree_capacity: Floats = np.zeros(roots)
    tree_used += np.bincount(trees, some_used, minlength=roots)
    tree_capacity += np.bincount(trees, some_capacity, minlength=roots)
    return ClassTotals(
        positions, some_used, some_capacity, tree_used, tree_capacity, forest.row_count
    )


def _amounts(columns: ClassInventories, slots: Rows) -> tuple[Floats, Floats]:
    """Return what is used of some inventories, and what there is."""
    used: Floats = columns.used.values[slots].astype(np.float64)
    capacity: Floats = np.maximum(columns.free.values[slots].astype(np.float64) + used, 0)
    return used, capacity
