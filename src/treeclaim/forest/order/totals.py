# SPDX-License-Identifier: Apache-2.0
"""Used amounts and capacities, by provider and by tree, as scores want them: whole, at least 0."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest

Floats = npt.NDArray[np.float64]
"""Scores, parts of them, or amounts that are divided by others."""


@dataclass(frozen=True, slots=True)
class _ClassPlaces:
    """Where the inventories of a class are: this depends on the shape of the Forest alone.

    Attributes:
        slots: Inventories of living providers, int64, ascending.
        places: Place of the provider of each.
        trees: Number of the tree of each.
    """

    slots: Rows
    places: Rows
    trees: Rows

    @property
    def nbytes(self) -> int:
        return self.slots.nbytes + self.places.nbytes + self.trees.nbytes


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """What is used of a class and what there is, in units, as float64.

    Attributes:
        places: Positions of the providers that have an inventory of it.
        some_used, some_capacity: Of each of them.
        tree_used, tree_capacity: Sums by number of the tree, shape (roots,).
        count: Number of all providers.
    """

    places: Rows
    some_used: Floats
    some_capacity: Floats
    tree_used: Floats
    tree_capacity: Floats
    count: int

    @cached_property
    def used(self) -> Floats:
        """Return what is used by position; 0 where a provider has no such inventory."""
        return self._by_position(self.some_used)

    @cached_property
    def capacity(self) -> Floats:
        """Return what there is by position; 0 where a provider has no such inventory."""
        return self._by_position(self.some_capacity)

    def _by_position(self, values: Floats) -> Floats:
        found = np.zeros(self.count)
        found[self.places] = values
        return found

    def take(self, place: int, tree: int, amount: int) -> None:
        """Note that more is used of a provider."""
        self.used[place] += amount
        self.tree_used[tree] += amount


def class_places(forest: Forest, name: str) -> tuple[Rows, Rows, Rows]:
    """Return slots of living providers in the columns of a class, their places and their trees."""

    def made() -> _ClassPlaces:
        columns = forest.class_inventories(name)
        slots = columns.living()
        places = forest.order.position[columns.row.values[slots]]
        return _ClassPlaces(slots, places, forest.order.tree[places])

    found = forest.cache.get(("places of class", name), made)
    return found.slots, found.places, found.trees


def totals_of(forest: Forest, name: str) -> ClassTotals:
    """Return the totals of an existing class as they are now."""
    slots, places, trees = class_places(forest, name)
    columns = forest.class_inventories(name)
    some_used = columns.used.values[slots].astype(np.float64)
    some_capacity = np.maximum(columns.free.values[slots].astype(np.float64) + some_used, 0)
    roots = len(forest.order.roots)
    tree_used: Floats = np.zeros(roots)
    tree_capacity: Floats = np.zeros(roots)
    tree_used += np.bincount(trees, some_used, minlength=roots)
    tree_capacity += np.bincount(trees, some_capacity, minlength=roots)
    return ClassTotals(
        places, some_used, some_capacity, tree_used, tree_capacity, len(forest.order.row)
    )
