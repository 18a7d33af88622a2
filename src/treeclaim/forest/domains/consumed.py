# SPDX-License-Identifier: Apache-2.0
"""Consumption of other inventories by the options of a slot (contract page 102, section 2).

For each inventory of a class, this module caches the number of units for which its consumed
inventories have room. A claim recomputes that number in the trees that it changes, and a search
compares one number, as with free units. Where several slots of a candidate use one inventory,
directly or by consumption, the search sums their uses (`solve/partial/rules.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.followed import follow
from treeclaim.forest.domains.pairs import Pairs, Window
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import GREATEST, Integers, Mask, Rows, Trees, search_ascending
from treeclaim.forest.table.consumption import Use
from treeclaim.forest.table.forest import Forest

NO_CODE = -1
"""Code of a missing inventory."""

_GREATEST = 2**40
"""More than the free units of any inventory; its products with consumption fit into int64."""

Allocation = tuple[int, str, int]
"""Row of a provider, name of a resource class, and units."""


@dataclass(frozen=True, slots=True, eq=False)
class OptionUses:
    """The use of shared inventories by each option of a slot.

    Attributes:
        codes: Codes of inventories, int64, shape (options, most of any option); `NO_CODE` as padding.
        amounts: Units that the slot uses, int64, of the same shape.
        free_units: Free units, int64, of the same shape.
    """

    codes: Integers
    amounts: Integers
    free_units: Integers

    def of_options(self, options: Mask) -> "OptionUses":
        """Return the uses of some options."""
        return OptionUses(self.codes[options], self.amounts[options], self.free_units[options])


def has_consumption(forest: Forest) -> bool:
    """Return whether any inventory consumes another one."""
    return forest.holdings.patterns.are_any


def is_any_consuming(forest: Forest, pairs: Pairs, names: Iterable[str]) -> bool:
    """Return whether any inventory of these classes in the pairs consumes others."""
    return has_consumption(forest) and any(
        forest.class_inventories(name).pattern.values[pairs.indices[name]].any() for name in names
    )


def may_use_twice(forest: Forest, pairs: Pairs, names: Sequence[str]) -> bool:
    """Return whether one inventory may serve these classes both directly and by consumption."""
    classes, consumed = forest.catalogue.resource_classes, forest.holdings.patterns.consumed
    return any(classes[name].id in consumed for name in names) or is_any_consuming(
        forest, pairs, names
    )


def _units_with_room(forest: Forest, name: str) -> Integers | None:
    """Return the units of each inventory of a class that its consumed inventories have room for.

    Read-only int64, shape (inventories,), with the greatest int64 for an inventory that consumes
    nothing; None if none consumes.
    """
    columns = forest.class_inventories(name)
    if not columns.pattern.values.any():
        return None

    def reread(units: Integers, trees: Trees) -> Integers:
        rows = forest.order.roots[trees]
        first, end = search_ascending(columns.row.values, [rows, forest.end.values[rows]])
        indices = Window(first, end - first).pairs()[1]
        units = units.copy()
        units[indices] = _compute_units_with_room(forest, columns, indices)
        return units

    consumed = forest.holdings.patterns.consumed & set(forest.classes)
    return follow(
        forest,
        ("most by what is consumed", name),
        map(forest.classes.__getitem__, sorted(consumed)),
        lambda: _compute_units_with_room(forest, columns, np.arange(len(columns))),
        reread,
    )


def _compute_units_with_room(
    forest: Forest, columns: ClassInventories, indices: Integers
) -> Integers:
    units = np.full(len(indices), np.iinfo(np.int64).max)
    for consuming_indices, _, use, _, free_units in _iterate_uses(forest, columns, indices):
        units[consuming_indices] = np.minimum(units[consuming_indices], free_units // use.amount)
    return units


def _iterate_uses(
    forest: Forest, columns: ClassInventories, indices: Integers
) -> Iterator[tuple[Integers, int, Use, Rows, Integers]]:
    """Yield the consumption of inventories, for all inventories with the same use together.

    Yields:
        The positions of these inventories, the index of the use in their pattern, the use, the rows of
        the consumed inventories, and the free units of the consumed inventories.
    """
    for uses, which in forest.holdings.patterns.group_by_pattern(columns.pattern.values[indices]):
        rows = columns.row.values[indices[which]]
        for number, use in enumerate(uses):
            consumed_rows = rows + use.offset
            free_units = forest.classes[use.class_id].free.values
            yield (
                which,
                number,
                use,
                consumed_rows,
                free_units[_indices_by_row(forest, use.class_id)[consumed_rows]],
            )


def _indices_by_row(forest: Forest, class_id: int) -> npt.NDArray[np.int32]:
    """Return the index of each row's inventory of a class; arbitrary for rows without one."""

    def make() -> npt.NDArray[np.int32]:
        rows = forest.classes[class_id].row.values
        indices = np.zeros(forest.row_count, dtype=np.int32)
        indices[rows] = np.arange(len(rows))
        return indices

    return forest.cache.get(("indices by row", class_id), make)


def have_room_for_consumed(
    forest: Forest, pairs: Pairs, amounts: Mapping[str, int]
) -> Mask | None:
    """Return which pairs have room for the consumption of amounts; None if nothing is consumed."""
    fits: Mask | None = None
    for name, amount in amounts.items():
        units = _units_with_room(forest, name)
        if units is not None:
            has_room = units[pairs.indices[name]] >= amount
            fits = has_room if fits is None else fits & has_room
    if fits is not None and len(amounts) > 1:
        # Several classes may use the same inventory.
        numbers = np.flatnonzero(fits)
        uses = find_uses(forest, pairs, amounts, numbers)
        fits[numbers] = (uses.amounts <= uses.free_units).all(axis=1)
    return fits


def find_uses(
    forest: Forest, pairs: Pairs, amounts: Mapping[str, int], numbers: Integers
) -> OptionUses:
    """Return the uses of shared inventories by the options of a slot.

    `numbers` are those of the pairs that are options, ascending, int64.
    """
    parts = [
        part
        for name, amount in amounts.items()
        for part in _find_uses_of_class(forest, pairs, name, min(amount, _GREATEST), numbers)
    ]
    uses = OptionUses(
        *(
            np.concatenate([getattr(part, name) for part in parts], axis=1)
            for name in ("codes", "amounts", "free_units")
        )
    )
    if len(amounts) > 1:
        _merge_uses(uses)
    return uses


def _find_uses_of_class(
    forest: Forest, pairs: Pairs, name: str, amount: int, numbers: Integers
) -> Iterator[OptionUses]:
    """Yield the uses of the options' inventories of a consumed class, and of the inventories these consume."""
    columns, count = forest.class_inventories(name), forest.row_count
    indices = pairs.indices[name]
    indices = numbers + indices.start if isinstance(indices, slice) else indices[numbers]
    class_id = forest.catalogue.resource_classes[name].id
    if class_id in forest.holdings.patterns.consumed:
        codes = class_id * count + pairs.provider[numbers]
        free_units = columns.free.values[indices]
        yield OptionUses(codes[:, None], np.full_like(codes, amount)[:, None], free_units[:, None])
    consumption = list(_iterate_uses(forest, columns, indices))
    shape = len(numbers), 1 + max((place for _, place, _, _, _ in consumption), default=-1)
    uses = OptionUses(
        np.full(shape, NO_CODE), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    )
    for which, place, use, consumed_rows, free_units in consumption:
        uses.codes[which, place] = use.class_id * count + consumed_rows
        uses.amounts[which, place] = amount * use.amount
        uses.free_units[which, place] = free_units
    yield uses


def _merge_uses(uses: OptionUses) -> None:
    for later in range(1, uses.codes.shape[1]):
        for place in range(later):
            is_same = uses.codes[:, later] == uses.codes[:, place]
            is_same &= uses.codes[:, later] != NO_CODE
            uses.amounts[is_same, place] += uses.amounts[is_same, later]
            uses.codes[is_same, later] = NO_CODE
            uses.amounts[is_same, later] = 0


def include_consumed(forest: Forest, allocations: Iterable[Allocation]) -> Iterable[Allocation]:
    """Return allocations with the units that they consume; an inventory may occur repeatedly."""
    if not has_consumption(forest):
        return allocations
    expanded = list(allocations)
    class_by_id = forest.catalogue.class_by_id
    for row, name, amount in tuple(expanded):
        class_id = forest.catalogue.resource_classes[name].id
        index = forest.classes[class_id].index_of(row)
        expanded += [
            (row + use.offset, class_by_id[use.class_id].name, amount * use.amount)
            for use in forest.uses_of(class_id, index)
        ]
    return expanded


def count_joint_fits(forest: Forest, allocations: Iterable[Allocation]) -> int:
    """Return how often allocations fit with all that they consume; 0 where an inventory is over-committed."""
    units: dict[tuple[int, int], int] = {}
    for row, name, amount in include_consumed(forest, allocations):
        class_id = forest.catalogue.resource_classes[name].id
        inventory = class_id, forest.classes[class_id].index_of(row)
        units[inventory] = units.get(inventory, 0) + amount
    times = [
        int(forest.classes[class_id].free.values[index]) // amount
        for (class_id, index), amount in units.items()
    ]
    return max(min(times, default=GREATEST), 0)


def include_consumed_classes(forest: Forest, names: Iterable[str]) -> set[str]:
    """Return the existing classes among some names, and all classes that are consumed."""
    classes = {name for name in names if name in forest.catalogue.resource_classes}
    if has_consumption(forest):
        class_by_id = forest.catalogue.class_by_id
        classes |= {class_by_id[number].name for number in forest.holdings.patterns.consumed}
    return classes
