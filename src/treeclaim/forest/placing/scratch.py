# SPDX-License-Identifier: Apache-2.0
"""A Forest in which room is taken for consumers that are not written yet."""

import copy
from collections.abc import Iterable

import numpy as np

from treeclaim.forest.order.totals import ClassTotals, totals_of
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Column
from treeclaim.forest.table.forest import Forest

Gift = tuple[int, str, int]
"""Position of a provider, name of a resource class, and units."""


class Scratch:
    """A copy of what is used, to be changed; the rest is the Forest's own.

    Attributes:
        forest: To be searched as any other, but not to be changed.
        version: Rises with each change.
    """

    def __init__(self, forest: Forest) -> None:
        """Begin with what is used now."""
        self.forest = copy.copy(forest)
        self.forest.classes = dict(forest.classes)
        self.version = 0
        self._own: set[int] = set()
        self._by_name: dict[str, ClassInventories] = {}
        """The columns that are written already, which are the scratch's own."""
        self._totals: dict[str, ClassTotals] = {}

    @classmethod
    def emptied(cls, forest: Forest) -> "Scratch":
        """Begin as if nothing were allocated."""
        made = cls(forest)
        for class_id in forest.classes:
            columns = made._columns(class_id)
            living = columns.living()
            columns.free.values[living] += columns.used.values[living]
            columns.used.values[:] = 0
        return made

    def copied(self) -> "Scratch":
        """Return a copy of what is used now; either may be changed without the other."""
        self._own.clear()
        self._by_name.clear()
        return Scratch(self.forest)

    def take(self, gifts: Iterable[Gift]) -> None:
        """Take what a candidate gives."""
        self.version += 1
        order = self.forest.order
        for position, name, amount in gifts:
            columns = self._by_name.get(name)
            if columns is None:
                class_id = self.forest.catalogue.resource_classes[name].id
                columns = self._by_name[name] = self._columns(class_id)
            index = columns.index_of(int(order.row[position]))
            columns.used.values[index] += amount
            columns.free.values[index] -= amount
            totals = self._totals.get(name)
            if totals is not None:
                totals.take(position, int(order.tree[position]), amount)

    def totals(self, name: str) -> ClassTotals:
        """Return the totals of a class, which are kept true."""
        if name not in self._totals:
            self._totals[name] = totals_of(self.forest, name).copied()
        return self._totals[name]

    def _columns(self, class_id: int) -> ClassInventories:
        """Return the columns of a class, copied before they are written for the first time."""
        columns = self.forest.classes[class_id]
        if class_id not in self._own:
            self._own.add(class_id)
            columns = self.forest.classes[class_id] = columns.copied()
            columns.used = _copied(columns.used)
            columns.free = _copied(columns.free)
        return columns


def _copied(column: Column) -> Column:
    other = Column(np.int64)
    other.extend(column.values)
    return other
