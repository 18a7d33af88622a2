# SPDX-License-Identifier: Apache-2.0
"""A Forest in which amounts are taken for consumers that are not written yet."""

from collections.abc import Iterable, Sequence

import numpy as np

from treeclaim.forest.domains.consumed import (
    Allocation,
    include_consumed,
    include_consumed_classes,
)
from treeclaim.forest.domains.filters import armed_heads
from treeclaim.forest.domains.followed import FEW_TREES_WRITTEN
from treeclaim.forest.order.totals import ClassTotals, get_totals
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import NO_ROW, Integers, Rows
from treeclaim.forest.table.forest import Forest


class ScratchForest:
    """A view of a Forest with its own used amounts; the original Forest is not changed.

    Each change has a number, its moment. A query caches results by tree, and compares the moments of the trees with
    the moment of its results. A change therefore invalidates only the trees that it touches.

    Attributes:
        forest: The Forest to search; only this class changes it.
        moment: The moment of the last change.
        taken_at: The moment of the last increase of a used amount in each tree, int64, shape (roots,).
        followed_at: The moment of the last other change of a used amount, see `follow` and `give_back`.
    """

    def __init__(self, forest: Forest) -> None:
        self.forest = forest.make_view(classes=dict(forest.classes))
        self.moment = 0
        self.taken_at: Integers = np.zeros(len(forest.order.roots), dtype=np.int64)
        self.followed_at: Integers = np.zeros_like(self.taken_at)
        self._copied_columns: dict[int, ClassInventories] = {}
        """The copied columns, by class."""
        self._totals: dict[str, ClassTotals] = {}
        self._barred: dict[int, list[tuple[int, int]]] = {}
        """By head of a barred subtree: class and index of its inventories, whose free amounts are set to 0."""
        self._placed: list[Allocation] = []

    # -- consumers -------------------------------------------------------------------------------

    def place(self, allocations: Sequence[Allocation]) -> None:
        """Take the amounts of a consumer until `remove_placed`."""
        self._placed += allocations
        self.take(allocations)
        self.begin_conditions(allocations)

    def remove_placed(self) -> None:
        """Remove all placed consumers."""
        self.give_back(self._placed)
        self._placed.clear()
        self._end_conditions()

    def take(self, allocations: Iterable[Allocation]) -> None:
        """Take amounts; negative amounts are released."""
        self.moment += 1
        order, classes = self.forest.order, self.forest.catalogue.resource_classes
        for row, name, amount in include_consumed(self.forest, allocations):
            class_id = classes[name].id
            columns = self._get_writable(class_id)
            index = columns.index_of(row)
            tree = int(order.tree[row])
            changed_at = self.taken_at if amount > 0 else self.followed_at
            changed_at[tree] = self.moment
            columns.used.values[index] += amount
            columns.free.values[index] -= amount
            self._update_total(name, row, tree, amount)
        for head in self._barred:
            self._hide_free_units(head)

    def give_back(self, allocations: Iterable[Allocation]) -> None:
        """Release taken amounts."""
        self.take((row, name, -amount) for row, name, amount in allocations)

    def take_of_class(self, class_id: int, indices: Rows, amounts: Integers) -> None:
        """Take amounts of many inventories of a class at once, without consumption; no subtree may be barred.

        The indices of inventories are distinct, and the amounts positive.
        """
        self.moment += 1
        columns = self._get_writable(class_id)
        columns.used.values[indices] += amounts
        columns.free.values[indices] -= amounts
        rows = columns.row.values[indices]
        trees = self.forest.order.tree[rows]
        self.taken_at[trees] = self.moment
        totals = self._totals.get(self.forest.catalogue.class_by_id[class_id].name)
        if totals is not None:
            totals.used[rows] += amounts
            np.add.at(totals.tree_used, trees, amounts)

    # -- conditions that begin with the first use ------------------------------------------------

    def find_begun_heads(self, allocations: Iterable[Allocation]) -> set[int]:
        """Return the heads of the subtrees whose `on_use` conditions begin with these allocations."""
        heads = armed_heads(self.forest)
        if heads is None:
            return set()
        begun_heads = {int(heads[row]) for row, _, _ in allocations}
        return begun_heads - self._barred.keys() - {NO_ROW}

    def begin_conditions(self, allocations: Iterable[Allocation]) -> None:
        """Bar the subtrees whose `on_use` conditions begin with taken allocations.

        The other consumers of the call cannot use a barred subtree (contract page 102, section 3.2).
        """
        for head in self.find_begun_heads(allocations):
            rows = range(head, int(self.forest.end.values[head]))
            self._barred[head] = [
                inventory for row in rows for inventory in self.forest.inventory_indices(row)
            ]
            self._hide_free_units(head)
            self._mark(self.taken_at, head)

    def _hide_free_units(self, head: int) -> None:
        for class_id, index in self._barred[head]:
            free_units = self._get_writable(class_id).free.values
            free_units[index] = min(free_units[index], 0)

    def _end_conditions(self) -> None:
        for head, inventories in self._barred.items():
            self._mark(self.followed_at, head)
            for class_id, index in inventories:
                self._get_writable(class_id).add_usage(np.array([index]), np.array([0]))
        self._barred.clear()

    def _mark(self, changed_at: Integers, row: int) -> None:
        self.moment += 1
        changed_at[self.forest.order.tree[row]] = self.moment

    # -- following the Forest --------------------------------------------------------------------

    def follow(self, forest: Forest) -> bool:
        """Set the used amounts to those of the original Forest; all taken amounts are released.

        In the Forest, only used amounts of classes copied by `copy_used` may have changed since.

        Returns:
            False if many used amounts differ; this object must then be replaced.
        """
        self.moment += 1
        names = forest.catalogue.class_by_id
        for class_id, columns in self._copied_columns.items():
            current = forest.classes[class_id]
            indices = np.flatnonzero(columns.used.values != current.used.values)
            if len(indices) > FEW_TREES_WRITTEN:
                return False
            for index in indices.tolist():
                row = int(current.row.values[index])
                tree = int(self.forest.order.tree[row])
                self.followed_at[tree] = self.moment
                added_units = int(current.used.values[index] - columns.used.values[index])
                columns.used.values[index] = current.used.values[index]
                columns.free.values[index] = current.free.values[index]
                self._update_total(names[class_id].name, row, tree, added_units)
        self._placed.clear()
        return True

    def _update_total(self, name: str, row: int, tree: int, added_units: int) -> None:
        totals = self._totals.get(name)
        if totals is not None:
            totals.add_used(row, tree, added_units)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the copied arrays."""
        copied = sum(
            columns.used.values.nbytes + columns.free.values.nbytes
            for columns in self._copied_columns.values()
        )
        moments = self.taken_at.nbytes + self.followed_at.nbytes
        return copied + moments + 3 * sum(totals.nbytes for totals in self._totals.values())

    def copy_used(self, names: Iterable[str]) -> None:
        """Copy the used amounts of some classes, and of all consumed classes."""
        for name in include_consumed_classes(self.forest, names):
            class_id = self.forest.catalogue.resource_classes[name].id
            if class_id in self.forest.classes:
                self._get_writable(class_id)

    def get_totals(self, name: str) -> ClassTotals:
        """Return the totals of a class; later changes update them."""
        if name not in self._totals:
            self._totals[name] = get_totals(self.forest, name).copy()
        return self._totals[name]

    def _get_writable(self, class_id: int) -> ClassInventories:
        """Return the writable columns of a class, copied at the first call."""
        columns = self._copied_columns.get(class_id)
        if columns is None:
            columns = self.forest.classes[class_id].copy_usage()
            self._copied_columns[class_id] = self.forest.classes[class_id] = columns
        return columns
