# SPDX-License-Identifier: Apache-2.0
"""Consumption of inventories by others of their tree (contract page 102, section 2), by rows.

The rows of a tree are contiguous, and a copy of a tree keeps their distances. Consumption is stored
relative to the row of the consuming inventory. Equal hardware therefore has equal **patterns** in
every tree, and a million consuming inventories store one pattern number each.

The usage of an inventory is the sum of its allocations and of its consumption by others. The store
provides the allocations. The column `consumed` holds the consumption, which `used` includes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import NO_ROW, Integers, Mask, Rows, search_ascending
from treeclaim.forest.table.layout import Layout, group_values
from treeclaim.model.whole import ConsumptionColumns, Numbers

InventoriesByClass = Mapping[int, ClassInventories]
"""Inventories by class id."""


class Use(NamedTuple):
    """The consumption of another inventory by one unit, which takes `amount` units of it.

    `offset` is the row of the consumed provider minus the row of the consuming one.
    """

    offset: int
    class_id: int
    amount: int


Uses = tuple[Use, ...]


class Patterns:
    """Distinct patterns of consumption; number 0 is the pattern that consumes nothing.

    Attributes:
        are_any: Whether any inventory has ever consumed another one.
        consumed: Ids of the classes that have ever been consumed.
    """

    def __init__(self) -> None:
        self._uses: list[Uses] = [()]
        self._numbers: dict[Uses, int] = {(): 0}
        self.are_any = False
        self.consumed: set[int] = set()

    def number_of(self, uses: Iterable[Use]) -> int:
        """Return the number of a pattern, which is added if it is new."""
        pattern = tuple(sorted(uses))
        number = self._numbers.setdefault(pattern, len(self._uses))
        if number == len(self._uses):
            self._uses.append(pattern)
            self.are_any = True
            self.consumed.update(use.class_id for use in pattern)
        return number

    def __getitem__(self, number: int) -> Uses:
        """Return a pattern by its number."""
        return self._uses[number]

    def group_by_pattern(self, numbers: Integers) -> Iterator[tuple[Uses, Integers]]:
        """Yield each consuming pattern that occurs in some numbers, and its positions there."""
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            if number:
                yield self._uses[number], np.flatnonzero(numbers == number)


class ConsumptionLinks(NamedTuple):
    """Consumption as columns, with an item for each pair of consuming and consumed inventory.

    Attributes:
        row, class_id: Row and class of the consuming inventory; the row may be `NO_ROW`.
        consumed_row, consumed_class_id: Row and class of the consumed inventory.
        amount: Units consumed by each unit.
    """

    row: Rows
    class_id: Integers
    consumed_row: Rows
    consumed_class_id: Integers
    amount: Integers


def link_all(
    classes: InventoriesByClass,
    patterns: Patterns,
    layout: Layout,
    consumption: ConsumptionColumns,
) -> None:
    """Store the consumption of all inventories of a layout, and add the units that they consume."""
    links = ConsumptionLinks(
        layout.rows_of(consumption.provider_id),
        consumption.class_id,
        layout.rows_of(consumption.consumed_provider_id),
        consumption.consumed_class_id,
        consumption.amount,
    )
    link(classes, patterns, layout.root, links)
    add_consumed(classes, patterns)


def link(
    classes: InventoriesByClass, patterns: Patterns, root: Rows, links: ConsumptionLinks
) -> None:
    """Store the consumption of inventories that consumed nothing before.

    Links to missing inventories, or to other trees, are skipped. `root` holds root rows by row.
    """
    is_known = (links.row != NO_ROW) & (links.consumed_row != NO_ROW)
    is_known[is_known] = root[links.row[is_known]] == root[links.consumed_row[is_known]]
    is_known &= _find_existing(classes, links.consumed_row, links.consumed_class_id)
    order = np.lexsort((links.row, links.class_id))
    order = order[is_known[order]]
    if not len(order):
        return
    row, class_id, consumed_row, *use = (column[order] for column in links)
    uses, codes = _find_distinct_uses(consumed_row - row, *use)
    is_new = (np.diff(row, prepend=-1) != 0) | (np.diff(class_id, prepend=-1) != 0)
    starts = np.flatnonzero(is_new)
    alike = group_values(is_new.cumsum() - 1, codes, len(starts))
    number_by_pattern = {
        use_numbers: patterns.number_of(map(uses.__getitem__, use_numbers))
        for use_numbers in set(alike)
    }
    numbers = np.fromiter(
        map(number_by_pattern.__getitem__, alike), dtype=np.int32, count=len(alike)
    )
    for number in np.unique(class_id).tolist():
        of_class = class_id[starts] == number
        columns = classes.get(number)
        if columns is not None:
            has, indices = columns.indices_of(row[starts[of_class]])
            columns.pattern.values[indices] = numbers[of_class][has]


def _find_existing(classes: InventoriesByClass, rows: Rows, class_ids: Integers) -> Mask:
    exist = np.zeros(len(rows), dtype=np.bool_)
    for class_id in np.unique(class_ids).tolist():
        of_class = np.flatnonzero(class_ids == class_id)
        if class_id in classes:
            exist[of_class] = classes[class_id].indices_of(rows[of_class])[0]
    return exist


def _find_distinct_uses(*members: Numbers) -> tuple[Sequence[Use], Numbers]:
    number = np.zeros_like(members[0])
    for column in members:
        values, which = np.unique(column, return_inverse=True)
        number = number * len(values) + which
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return [Use(*(int(column[at]) for column in members)) for at in first.tolist()], which


def add_consumed(classes: InventoriesByClass, patterns: Patterns, first: int = 0) -> None:
    """Add the consumption by the inventories of all rows from `first` on, of which nothing is counted yet."""
    for columns in list(classes.values()):
        start = int(search_ascending(columns.row.values, first))
        indices = np.arange(start, len(columns))
        for uses, places in patterns.group_by_pattern(columns.pattern.values[indices]):
            which = indices[places]
            which = which[columns.used.values[which] != 0]
            for use in uses:
                consume(
                    classes,
                    use,
                    columns.row.values[which] + use.offset,
                    columns.used.values[which] * use.amount,
                )


def consume(
    classes: InventoriesByClass, use: Use, rows: Rows, amounts: npt.NDArray[np.int64]
) -> None:
    """Add units to the consumption of one class; rows without an inventory of it are skipped."""
    columns = classes.get(use.class_id)
    if columns is None or not len(rows):
        return
    has, indices = columns.indices_of(rows)
    once, at = np.unique(indices, return_inverse=True)
    sums: Integers = np.zeros(len(once), dtype=np.int64)
    np.add.at(sums, at, amounts[has])
    columns.consumed.values[once] += sums
    columns.add_usage(once, sums)


def forget_consumed(classes: InventoriesByClass, first: int) -> None:
    """Remove all consumption of and by the inventories of all rows from `first` on."""
    for columns in classes.values():
        start = int(search_ascending(columns.row.values, first))
        columns.pattern.values[start:] = 0
        indices = start + np.flatnonzero(columns.consumed.values[start:])
        if len(indices):
            columns.add_usage(indices, -columns.consumed.values[indices])
            columns.consumed.values[indices] = 0
