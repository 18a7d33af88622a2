# SPDX-License-Identifier: Apache-2.0
"""All inventories of one resource class as columns that are written."""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.class_columns import (
    NEVER_FREE,
    ClassColumns,
    Indices,
    UnitLimits,
    free_of,
)
from treeclaim.forest.table.columns import (
    Column,
    Integers,
    Rows,
    Trees,
    ascending,
    search_ascending,
)
from treeclaim.forest.table.order import TreeOrder
from treeclaim.model.inventory import MAXIMUM_INTEGER
from treeclaim.model.provider import InventoryRecord
from treeclaim.model.whole import InventoryColumns

_AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""Columns of what an inventory says, by the names that it has for that."""

_COPIED = (*_AMOUNTS, "used", "free", "modified_at", "consumed", "pattern")
"""All columns but that of rows."""


class ClassInventories(ClassColumns):
    """Inventories that are added at the end, and written over where they are."""

    __slots__ = ()

    def extend(self, rows: Sequence[int], records: Sequence[InventoryRecord]) -> None:
        """Append the inventories of ascending rows, all beyond the rows there are."""
        inventories = [record.inventory for record in records]
        self.row.extend(rows)
        ascending(self.row.values)
        for name in _AMOUNTS:
            getattr(self, name).extend([getattr(inventory, name) for inventory in inventories])
        self.used.extend([record.used for record in records])
        self.free.extend(self._free(slice(len(self.free), None)))
        self.modified_at.extend([record.modified_at for record in records])
        self._consume_nothing(len(records))
        self._note_limits(slice(len(self) - len(rows), None))

    def begin_with(self, rows: Rows, columns: InventoryColumns, which: Indices) -> None:
        """Take the first inventories, of ascending rows, out of columns."""
        self.row.extend(ascending(rows))
        for name in (*_AMOUNTS, "used", "modified_at"):
            getattr(self, name).extend(getattr(columns, name)[which])
        self._consume_nothing(len(rows))
        self.free.extend(self._free(slice(None)))
        self._note_limits(slice(None))

    def _note_limits(self, indices: slice) -> None:
        """Take the limits of some inventories into account, of one at least."""
        self._limits.note(
            self.min_unit.values[indices],
            self.max_unit.values[indices],
            self.step_size.values[indices],
        )

    def _consume_nothing(self, count: int) -> None:
        """Write for this many new inventories that neither they nor others consume anything."""
        self.consumed.extend(np.zeros(count, dtype=np.int64))
        self.pattern.extend(np.zeros(count, dtype=np.int32))

    def gather(self, rows: Rows, source: "ClassInventories", source_rows: Rows) -> None:
        """Append copies of the inventories of a source's rows, which all have one.

        Args:
            rows: The new rows, ascending, beyond all rows there are.
            source: These or other inventories.
            source_rows: The row there of each of the new rows.
        """
        indices = search_ascending(source.row.values, source_rows)
        for name in _COPIED:
            getattr(self, name).extend(getattr(source, name).values[indices])
        self.row.extend(ascending(rows))
        if source is not self:
            self._note_limits(slice(len(self) - len(rows), None))

    def make_room(self, count: int) -> None:
        """Make room for this many inventories in total."""
        for name in ("row", *_COPIED):
            getattr(self, name).make_room(count)

    def refresh(self, index: int, record: InventoryRecord) -> None:
        """Write new amounts over an inventory."""
        inventory = record.inventory
        for name in _AMOUNTS:
            getattr(self, name).values[index] = getattr(inventory, name)
        self.used.values[index] = record.used + self.consumed.values[index]
        self.free.values[index] = self._free(slice(index, index + 1))[0]
        self.modified_at.values[index] = record.modified_at
        self._note_limits(slice(index, index + 1))
        self.refreshed += 1
        if self.written is not None:
            self.written.note([index])

    def consume(self, index: int, amount: int) -> None:
        """Let more of an inventory be consumed by others, or less where the amount is below zero."""
        self.consumed.values[index] += amount
        self.use_each(np.array([index]), np.array([amount]))

    def use_each(self, indices: Rows, amounts: Integers) -> None:
        """Let more of some inventories be used, or less where the amount is below zero.

        Args:
            indices: Each once, int64.
            amounts: Units, int64, of the same shape.
        """
        self.used.values[indices] += amounts
        self.free.values[indices] = self._free(indices)
        if self.written is not None:
            self.written.note(indices.tolist())

    def _free(self, indices: Indices) -> Integers:
        """Compute what is free of some inventories."""
        return free_of(
            self.total.values[indices],
            self.reserved.values[indices],
            self.allocation_ratio.values[indices],
            self.used.values[indices],
        )

    def bury(self, rows: Rows) -> None:
        """Mark the inventories of some rows as those of dead ones: nothing ever fits there again."""
        self.free.values[self.indices_of(rows)[1]] = NEVER_FREE

    def copied(self) -> "ClassInventories":
        """Return the same columns, of which some are to be replaced before they are written."""
        columns = copy.copy(self)
        columns.written = None
        return columns

    def changeable(self) -> "ClassInventories":
        """Return the same columns, with a copy of what is used and free that may be written."""
        columns = self.copied()
        columns.used = Column.of(self.used.values)
        columns.free = Column.of(self.free.values)
        return columns

    def without_units(self) -> "ClassInventories":
        """Return the same columns as if any amount were allowed that is free."""
        columns = self.copied()
        ones = np.ones(len(self), dtype=np.int32)
        columns.min_unit = columns.step_size = Column.of(ones)
        columns.max_unit = Column.of(ones * MAXIMUM_INTEGER)
        columns._limits = UnitLimits()  # noqa: SLF001 - of this class
        return columns

    def emptied(self) -> "ClassInventories":
        """Return the same inventories as if nothing were allocated."""
        columns = self.copied()
        is_dead = self.free.values == NEVER_FREE
        columns.free = Column.of(
            np.where(is_dead, NEVER_FREE, self.free.values + self.used.values)
        )
        columns.used = Column.of(np.zeros(len(self), dtype=np.int64))
        return columns


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in the log of a class.

    Attributes:
        columns: The class's.
        moment: What was written before is counted.
    """

    columns: ClassInventories
    moment: int


def marks_of(classes: Iterable[ClassInventories]) -> Sequence[Mark]:
    """Return the present moment in the log of each of some classes."""
    return [
        Mark(columns, 0 if columns.written is None else columns.written.mark)
        for columns in classes
    ]


def written_since(order: TreeOrder, marks: Sequence[Mark]) -> Trees | None:
    """Return the trees, by number, that were written since some moments; None if they are not known, or many."""
    trees: list[Trees] = [np.empty(0, dtype=np.int64)]
    for mark in marks:
        log = mark.columns.written
        indices = None if log is None else log.since(mark.moment)
        if indices is None:
            return None
        trees.append(order.tree[mark.columns.row.values[indices]])
    written = np.unique(np.concatenate(trees))
    return written if len(written) <= thresholds.FEW_TREES_WRITTEN else None
