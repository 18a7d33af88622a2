# SPDX-License-Identifier: Apache-2.0
"""All inventories of one resource class as columns: what is there, what fits, and how that is written."""

import copy
from collections.abc import Sequence
from math import lcm

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import (
    Column,
    Integers,
    Mask,
    RecentEntries,
    Rows,
    ascending,
    search_ascending,
)
from treeclaim.model.provider import AMOUNTS, MAXIMUM_INTEGER, Inventory, InventoryRecord
from treeclaim.model.request import STRICT, Leniency
from treeclaim.model.whole import InventoryColumns, Numbers

MOST_WRITES_KNOWN = 4096
"""Inventories of a class that were written, which are remembered by their numbers; a follower
that is further behind reads all."""

_COPIED = (*AMOUNTS, "used", "free", "modified_at", "consumed", "pattern")
"""All columns but that of rows."""

_GREATEST_FREE = 2**62
NEVER_FREE = -(2**62)
"""The free amount of an inventory of a dead row: nothing ever fits there again."""

_LEAST_UNSURE = 2**61
"""From here on `free` may have been cut off; only an allocation ratio beyond all reason gets here.
"""

Indices = Rows | slice
"""A choice of inventories of a class."""


class UnitLimits:
    """The strictest min_unit, max_unit and step_size that a column ever held.

    Most classes have the same limits everywhere; a search then skips the comparison.
    """

    __slots__ = ("_greatest_min", "_least_max", "_step")

    def __init__(self) -> None:
        self._greatest_min = 1
        self._least_max = MAXIMUM_INTEGER
        self._step = 1

    def note(self, least: Numbers, most: Numbers, steps: Numbers) -> None:
        """Take the limits of some inventories into account, of one at least."""
        self._greatest_min = max(self._greatest_min, int(least.max()))
        self._least_max = min(self._least_max, int(most.min()))
        distinct_steps = steps[:1] if (steps == steps[0]).all() else np.unique(steps)
        # No amount is a multiple of a greater number.
        self._step = min(lcm(self._step, *distinct_steps.tolist()), MAXIMUM_INTEGER + 1)

    def admit_everywhere(self, amount: int) -> bool:
        """Return whether no inventory refuses an amount but for its free room."""
        return self._greatest_min <= amount <= self._least_max and amount % self._step == 0


class ClassInventories:
    """The inventories of one resource class as columns, in order of provider row.

    Inventories are added at the end, and written over where they are.

    The column `free` (int64 units: truncated capacity minus used) is maintained because every
    search compares with it. For whole amounts that comparison equals the one with the unrounded
    capacity (contract page 70, section 1). Inventories of dead rows remain, with nothing free.

    The column `used` includes the units that other inventories consume, which are also in `consumed`. The
    number in `pattern` identifies the consumption of the inventory itself (`consumption.py`).
    """

    __slots__ = (
        "_limits",
        "allocation_ratio",
        "consumed",
        "free",
        "max_unit",
        "min_unit",
        "modified_at",
        "pattern",
        "refreshed",
        "reserved",
        "row",
        "step_size",
        "total",
        "used",
        "written",
    )

    def __init__(self) -> None:
        self.row = Column(np.int64)
        self.total = Column(np.int32)
        self.reserved = Column(np.int32)
        self.min_unit = Column(np.int32)
        self.max_unit = Column(np.int32)
        self.step_size = Column(np.int32)
        self.allocation_ratio = Column(np.float64)
        self.used = Column(np.int64)
        self.free = Column(np.int64)
        self.modified_at = Column(np.float64)
        self.consumed = Column(np.int64)
        self.pattern = Column(np.int32)
        self.written: RecentEntries[int] | None = RecentEntries(MOST_WRITES_KNOWN)
        """The indices that were written lately; None for a copy, which has no followers."""
        self.refreshed = 0
        """Return how many of these writes may have changed more than the used amount."""
        self._limits = UnitLimits()

    def __len__(self) -> int:
        """Return the number of inventories, those of dead rows included."""
        return len(self.row)

    def index_of(self, row: int) -> int:
        """Return the index of the inventory of a row that has one; rows ascend with the indices."""
        return int(search_ascending(self.row.values, row))

    def allocated(self, index: int) -> int:
        """Return what is used of an inventory, less what others consume."""
        return int(self.used.values[index] - self.consumed.values[index])

    def inventory(self, index: int) -> Inventory:
        """Return the amounts of an inventory."""
        return Inventory(
            total=int(self.total.values[index]),
            reserved=int(self.reserved.values[index]),
            min_unit=int(self.min_unit.values[index]),
            max_unit=int(self.max_unit.values[index]),
            step_size=int(self.step_size.values[index]),
            allocation_ratio=float(self.allocation_ratio.values[index]),
        )

    def whole_capacity(self, index: int) -> int:
        """Return the capacity of an inventory truncated toward zero, as it is shown to clients."""
        units = self.total.values.item(index) - self.reserved.values.item(index)
        return int(units * self.allocation_ratio.values.item(index))

    def fits(self, indices: Indices, amount: int, leniency: Leniency = STRICT) -> Mask:
        """Return for some inventories whether this amount fits (contract page 90, section 3.1).

        An amount above the storage range fits nowhere, as no max_unit can admit it.
        """
        least = NEVER_FREE + 1 if leniency.ignore_capacity else min(amount, _LEAST_UNSURE)
        fits: Mask = self.free.values[indices] >= least
        if leniency.ignore_units:
            if least == _LEAST_UNSURE:
                self._compare_exactly(indices, amount, fits)
        elif not self._limits.admit_everywhere(amount):
            fits &= self.admits(indices, amount)
        return fits

    def _compare_exactly(self, indices: Indices, amount: int, fits: Mask) -> None:
        """Compare an amount with what is free where that is more than the column can hold."""
        numbers = np.arange(len(self))[indices]
        for at in np.flatnonzero(fits).tolist():
            index = int(numbers[at])
            free = self.whole_capacity(index) - int(self.used.values[index])
            fits[at] = free >= amount

    def admits(self, indices: Indices, amount: int) -> Mask:
        """Return for some inventories whether this amount fits as soon as so much is free."""
        admits: Mask = self.min_unit.values[indices] <= amount
        if not self._limits.admit_everywhere(amount):
            admits &= self.max_unit.values[indices] >= amount
            # An amount may have more digits than an integer of numpy.
            admits &= min(amount, MAXIMUM_INTEGER) % self.step_size.values[indices] == 0
        return admits

    def gives(self, indices: Indices, amount: int) -> Mask:
        """Return for some inventories whether any part of an amount fits, from 1 to all of it."""
        step = self.step_size.values[indices].astype(np.int64)
        least = -(-np.maximum(self.min_unit.values[indices], 1) // step) * step
        most = np.minimum(self.free.values[indices], self.max_unit.values[indices])
        # An amount may have more digits than an inventory can hold.
        gives: Mask = np.minimum(most, min(amount, MAXIMUM_INTEGER)) // step * step >= least
        return gives

    def living(self) -> Rows:
        """Return the indices of the inventories of living rows, ascending, int64."""
        indices: Rows = np.flatnonzero(self.free.values != NEVER_FREE)
        return indices

    def indices_of(self, rows: Rows) -> tuple[Mask, Rows]:
        """Return which of some rows have an inventory here, and the indices of these.

        Returns:
            One truth value for each row, and the indices of the inventories of those that have one, int64.
        """
        if len(rows) == len(self) and (self.row.values == rows).all():
            return np.ones(len(rows), dtype=np.bool_), np.arange(len(rows))
        indices = search_ascending(self.row.values, rows)
        has = indices < len(self)
        has[has] = self.row.values[indices[has]] == rows[has]
        return has, indices[has]

    def among(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the positions, in ascending rows, of those with an inventory, and the indices of these inventories.

        The time is that of the shorter of the two lists.
        """
        if len(rows) <= len(self):
            has, indices = self.indices_of(rows)
            return np.flatnonzero(has), indices
        at = search_ascending(rows, self.row.values)
        is_there = at < len(rows)
        is_there[is_there] = rows[at[is_there]] == self.row.values[is_there]
        return at[is_there], np.flatnonzero(is_there)

    def room(self, indices: Rows) -> npt.NDArray[np.int64]:
        """Return how much one candidate may take at most: min(free, max_unit), int64 units."""
        room: npt.NDArray[np.int64] = np.minimum(
            self.free.values[indices], self.max_unit.values[indices]
        )
        return room

    # -- what is written ---------------------------------------------------------------------

    def extend(self, rows: Sequence[int], records: Sequence[InventoryRecord]) -> None:
        """Append the inventories of ascending rows, all beyond the rows there are."""
        inventories = [record.inventory for record in records]
        self.row.extend(rows)
        ascending(self.row.values)
        for name in AMOUNTS:
            getattr(self, name).extend([getattr(inventory, name) for inventory in inventories])
        self.used.extend([record.used for record in records])
        self.free.extend(self._free(slice(len(self.free), None)))
        self.modified_at.extend([record.modified_at for record in records])
        self._consume_nothing(len(records))
        self._note_limits(slice(len(self) - len(rows), None))

    def begin_with(self, rows: Rows, columns: InventoryColumns, which: Indices) -> None:
        """Take the first inventories, of ascending rows, out of columns."""
        self.row.extend(ascending(rows))
        for name in (*AMOUNTS, "used", "modified_at"):
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
        for name in AMOUNTS:
            getattr(self, name).values[index] = getattr(inventory, name)
        self.used.values[index] = record.used + self.consumed.values[index]
        self.free.values[index] = self._free(slice(index, index + 1))[0]
        self.modified_at.values[index] = record.modified_at
        self._note_limits(slice(index, index + 1))
        self.refreshed += 1
        if self.written is not None:
            self.written.note([index])

    def use_each(self, indices: Rows, amounts: Integers) -> None:
        """Add units to the usage of some inventories; negative units subtract.

        Args:
            indices: Indices of inventories, unique, int64.
            amounts: Units, int64, of the same shape.
        """
        self.used.values[indices] += amounts
        self.free.values[indices] = self._free(indices)
        if self.written is not None:
            self.written.note(indices.tolist())

    def capacity(self, indices: Indices) -> Integers:
        """Return the truncated capacities of some inventories, in which none of dead rows has a meaning."""
        units = self.total.values[indices] - self.reserved.values[indices]
        capacity: Integers = np.clip(
            units * self.allocation_ratio.values[indices], -_GREATEST_FREE, _GREATEST_FREE
        ).astype(np.int64)
        return capacity

    def _free(self, indices: Indices) -> Integers:
        """Compute the free amounts of some inventories."""
        used = self.used.values[indices]
        free: Integers = np.maximum(self.capacity(indices) - used, NEVER_FREE + 1)
        return free

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
        columns.free = Column.of(np.where(is_dead, NEVER_FREE, self.capacity(slice(None))))
        columns.used = Column.of(np.zeros(len(self), dtype=np.int64))
        return columns
