# SPDX-License-Identifier: Apache-2.0
"""Inventories of one resource class as columns."""

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
    find_ascending,
    require_ascending,
    search_ascending,
)
from treeclaim.model.provider import AMOUNTS, MAXIMUM_INTEGER, Inventory, InventoryRecord
from treeclaim.model.request import STRICT, Leniency
from treeclaim.model.whole import InventoryColumns, Numbers

MOST_WRITES_KNOWN = 4096
"""Writes to a class that are remembered by index; readers that are further behind read all."""

_COPIED = (*AMOUNTS, "used", "free", "modified_at", "consumed", "pattern")
"""All columns but that of rows."""

_GREATEST_FREE = 2**62
NEVER_FREE = -(2**62)
"""The free amount of an inventory of a dead row, where nothing fits."""

_LEAST_UNSURE = 2**61
"""From here on `free` may be clipped; only absurd allocation ratios get here."""

Indices = Rows | slice
"""Indices of inventories of a class."""


class UnitLimits:
    """The strictest min_unit, max_unit and step_size that a column ever held.

    Most classes have the same limits everywhere, so a search can skip the comparison.
    """

    def __init__(self) -> None:
        self._greatest_min = 1
        self._least_max = MAXIMUM_INTEGER
        self._step = 1

    def tighten(self, least: Numbers, most: Numbers, steps: Numbers) -> None:
        """Tighten the limits by those of at least one inventory."""
        self._greatest_min = max(self._greatest_min, int(least.max()))
        self._least_max = min(self._least_max, int(most.min()))
        distinct_steps = steps[:1] if (steps == steps[0]).all() else np.unique(steps)
        # No amount is a multiple of a greater number.
        self._step = min(lcm(self._step, *distinct_steps.tolist()), MAXIMUM_INTEGER + 1)

    def admit_everywhere(self, amount: int) -> bool:
        """Return whether the units of every inventory admit an amount."""
        return self._greatest_min <= amount <= self._least_max and amount % self._step == 0


class ClassInventories:
    """The inventories of one resource class as columns, in order of provider row.

    Inventories are appended, and overwritten in place.

    The column `free` (int64 units: truncated capacity minus used) is maintained because every search
    compares with it. For whole amounts that comparison equals the one with the unrounded capacity
    (contract page 70, section 1). Inventories of dead rows remain, with `NEVER_FREE` units.

    The column `used` includes the units that other inventories consume, which are also in `consumed`.
    The number in `pattern` identifies the consumption of the inventory itself (`consumption.py`).
    """

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
        self.recent_writes: RecentEntries[int] | None = RecentEntries(MOST_WRITES_KNOWN)
        """Indices of recent writes; None for a copy, which has no followers."""
        self.overwrite_count = 0
        """Number of writes that may have changed more than the used amount."""
        self._limits = UnitLimits()

    def __len__(self) -> int:
        """Return the number of inventories, those of dead rows included."""
        return len(self.row)

    def index_of(self, row: int) -> int:
        """Return the index of a row's inventory, which must exist."""
        return int(search_ascending(self.row.values, row))

    def allocated(self, index: int) -> int:
        """Return the used units of an inventory without the consumption by others."""
        return int(self.used.values[index] - self.consumed.values[index])

    def inventory(self, index: int) -> Inventory:
        """Return the amounts of an inventory."""
        return Inventory(**{name: getattr(self, name).values.item(index) for name in AMOUNTS})

    def whole_capacity(self, index: int) -> int:
        """Return the capacity of an inventory truncated toward zero, as clients see it."""
        units = self.total.values.item(index) - self.reserved.values.item(index)
        return int(units * self.allocation_ratio.values.item(index))

    def fits(self, indices: Indices, amount: int, leniency: Leniency = STRICT) -> Mask:
        """Return which inventories have room for an amount (contract page 90, section 3.1).

        An amount above the storage range fits nowhere, as no max_unit admits it.
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
        """Compare an amount with free units that exceed the range of the column."""
        numbers = np.arange(len(self))[indices]
        for at in np.flatnonzero(fits).tolist():
            index = int(numbers[at])
            free_units = self.whole_capacity(index) - int(self.used.values[index])
            fits[at] = free_units >= amount

    def admits(self, indices: Indices, amount: int) -> Mask:
        """Return which inventories have units that admit an amount, whatever is free."""
        admits: Mask = self.min_unit.values[indices] <= amount
        if not self._limits.admit_everywhere(amount):
            admits &= self.max_unit.values[indices] >= amount
            # An amount may exceed the integers of numpy.
            admits &= min(amount, MAXIMUM_INTEGER) % self.step_size.values[indices] == 0
        return admits

    def fits_part(self, indices: Indices, amount: int) -> Mask:
        """Return which inventories can give a part of an amount, from 1 to all of it."""
        step = self.step_size.values[indices].astype(np.int64)
        least = -(-np.maximum(self.min_unit.values[indices], 1) // step) * step
        most = np.minimum(self.free.values[indices], self.max_unit.values[indices])
        # An amount may exceed the integers of numpy.
        gives: Mask = np.minimum(most, min(amount, MAXIMUM_INTEGER)) // step * step >= least
        return gives

    def living_indices(self) -> Rows:
        """Return the indices of the inventories of living rows, ascending, int64."""
        indices: Rows = np.flatnonzero(self.free.values != NEVER_FREE)
        return indices

    def indices_of(self, rows: Rows) -> tuple[Mask, Rows]:
        """Return which rows have an inventory, and the indices of these inventories.

        Returns:
            A truth value for each row, and one int64 index for each true value.
        """
        if len(rows) == len(self) and (self.row.values == rows).all():
            return np.ones(len(rows), dtype=np.bool_), np.arange(len(rows))
        has, indices = find_ascending(self.row.values, rows)
        return has, indices[has]

    def locate(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the positions of ascending rows that have an inventory, and the inventories' indices.

        The time grows with the shorter of the two lists.
        """
        if len(rows) <= len(self):
            has, indices = self.indices_of(rows)
            return np.flatnonzero(has), indices
        has_row, at = find_ascending(rows, self.row.values)
        return at[has_row], np.flatnonzero(has_row)

    def room(self, indices: Rows) -> npt.NDArray[np.int64]:
        """Return the most that one candidate may take: min(free, max_unit), int64 units."""
        room: npt.NDArray[np.int64] = np.minimum(
            self.free.values[indices], self.max_unit.values[indices]
        )
        return room

    # -- writing ---------------------------------------------------------------------------

    def extend(self, rows: Sequence[int], records: Sequence[InventoryRecord]) -> None:
        """Append the inventories of new ascending rows."""
        inventories = [record.inventory for record in records]
        self.row.extend(rows)
        require_ascending(self.row.values)
        for name in AMOUNTS:
            getattr(self, name).extend([getattr(inventory, name) for inventory in inventories])
        self.used.extend([record.used for record in records])
        self.free.extend(self._compute_free(slice(len(self.free), None)))
        self.modified_at.extend([record.modified_at for record in records])
        self._append_no_consumption(len(records))
        self._tighten_limits(slice(len(self) - len(rows), None))

    def load(self, rows: Rows, columns: InventoryColumns, which: Indices) -> None:
        """Load the first inventories, of ascending rows, from columns."""
        self.row.extend(require_ascending(rows))
        for name in (*AMOUNTS, "used", "modified_at"):
            getattr(self, name).extend(getattr(columns, name)[which])
        self._append_no_consumption(len(rows))
        self.free.extend(self._compute_free(slice(None)))
        self._tighten_limits(slice(None))

    def _tighten_limits(self, indices: slice) -> None:
        self._limits.tighten(
            self.min_unit.values[indices],
            self.max_unit.values[indices],
            self.step_size.values[indices],
        )

    def _append_no_consumption(self, count: int) -> None:
        self.consumed.extend(np.zeros(count, dtype=np.int64))
        self.pattern.extend(np.zeros(count, dtype=np.int32))

    def append_copies(self, rows: Rows, source: "ClassInventories", source_rows: Rows) -> None:
        """Append copies of the inventories that all source rows have, one for each new ascending row."""
        indices = search_ascending(source.row.values, source_rows)
        for name in _COPIED:
            getattr(self, name).extend(getattr(source, name).values[indices])
        self.row.extend(require_ascending(rows))
        if source is not self:
            self._tighten_limits(slice(len(self) - len(rows), None))

    def make_room(self, count: int) -> None:
        """Reserve capacity for this many inventories in total."""
        for name in ("row", *_COPIED):
            getattr(self, name).make_room(count)

    def overwrite(self, index: int, record: InventoryRecord) -> None:
        """Overwrite the amounts of an inventory."""
        inventory = record.inventory
        for name in AMOUNTS:
            getattr(self, name).values[index] = getattr(inventory, name)
        self.used.values[index] = record.used + self.consumed.values[index]
        self.free.values[index] = self._compute_free(slice(index, index + 1))[0]
        self.modified_at.values[index] = record.modified_at
        self._tighten_limits(slice(index, index + 1))
        self.overwrite_count += 1
        if self.recent_writes is not None:
            self.recent_writes.append([index])

    def add_usage(self, indices: Rows, amounts: Integers) -> None:
        """Add units, which may be negative, to the usage of inventories with unique indices."""
        self.used.values[indices] += amounts
        self.free.values[indices] = self._compute_free(indices)
        if self.recent_writes is not None:
            self.recent_writes.append(indices.tolist())

    def capacity(self, indices: Indices) -> Integers:
        """Return truncated capacities, which are meaningless for dead rows."""
        units = self.total.values[indices] - self.reserved.values[indices]
        capacity: Integers = np.clip(
            units * self.allocation_ratio.values[indices], -_GREATEST_FREE, _GREATEST_FREE
        ).astype(np.int64)
        return capacity

    def _compute_free(self, indices: Indices) -> Integers:
        used_units = self.used.values[indices]
        free_units: Integers = np.maximum(self.capacity(indices) - used_units, NEVER_FREE + 1)
        return free_units

    def mark_dead(self, rows: Rows) -> None:
        """Mark the inventories of these rows as dead: nothing fits there any more."""
        self.free.values[self.indices_of(rows)[1]] = NEVER_FREE

    def copy_shallowly(self) -> "ClassInventories":
        """Return a shallow copy, whose columns must be replaced before they are written."""
        columns = copy.copy(self)
        columns.recent_writes = None
        return columns

    def copy_usage(self) -> "ClassInventories":
        """Return a copy in which used and free units may be written."""
        columns = self.copy_shallowly()
        columns.used = Column.of(self.used.values)
        columns.free = Column.of(self.free.values)
        return columns

    def without_unit_limits(self) -> "ClassInventories":
        """Return a copy in which any free amount is admitted."""
        columns = self.copy_shallowly()
        ones = np.ones(len(self), dtype=np.int32)
        columns.min_unit = columns.step_size = Column.of(ones)
        columns.max_unit = Column.of(ones * MAXIMUM_INTEGER)
        columns._limits = UnitLimits()  # noqa: SLF001 - of this class
        return columns

    def without_usage(self) -> "ClassInventories":
        """Return a copy in which nothing is allocated."""
        columns = self.copy_shallowly()
        is_dead = self.free.values == NEVER_FREE
        columns.free = Column.of(np.where(is_dead, NEVER_FREE, self.capacity(slice(None))))
        columns.used = Column.of(np.zeros(len(self), dtype=np.int64))
        return columns
