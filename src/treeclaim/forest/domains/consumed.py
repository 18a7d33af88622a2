# SPDX-License-Identifier: Apache-2.0
"""What the options of a slot consume of other inventories (contract page 102, section 2).

Which inventories an option's provider consumes of depends on the shape of the Forest alone, so it is
looked up once for all pairs of a relation; a question compares amounts with what is free there. Where
several slots of a candidate use one inventory, its own or as what they consume, the search adds up what
each of them uses (`solve/partial/consumed.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.pairs import Pairs
from treeclaim.forest.domains.windows import Window
from treeclaim.forest.table.columns import Integers, Mask, search_ascending
from treeclaim.forest.table.forest import Forest

NO_CODE = -1
"""Stands for no inventory."""

Matrix = npt.NDArray[np.int64]

Taken = tuple[int, str, int]
"""Position of a provider, name of a resource class, and units."""


@dataclass(frozen=True, slots=True, eq=False)
class Consumed:
    """What the inventories of one class consume that the pairs of a relation have.

    An inventory is named by its code: `class id * number of positions + position`.

    Attributes:
        pair: Numbers of pairs, ascending, int64, shape (entries,).
        code: The inventory consumed, int64.
        amount: Units of it for each own one, int64.
        places: By class id: which entries are of the class, and the index of the inventory of each.
    """

    pair: Integers
    code: Integers
    amount: Integers
    places: Mapping[int, tuple[Integers, Integers]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Return the bytes that this takes; see `ByteCache`."""
        return 5 * self.pair.nbytes

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.pair)

    def of_pairs(self, numbers: Integers) -> tuple[Integers, Integers]:
        """Return the entries of some pairs, ascending: positions in `numbers`, and of the entries."""
        first = search_ascending(self.pair, numbers)
        end = search_ascending(self.pair, numbers, side="right")
        return Window(first, end - first).pairs()

    def free(self, forest: Forest) -> Integers:
        """Return what is free of each inventory consumed, int64, shape (entries,)."""
        free = np.empty(len(self.pair), dtype=np.int64)
        for class_id, (at, indices) in self.places.items():
            free[at] = forest.classes[class_id].free.values[indices]
        return free


@dataclass(frozen=True, slots=True, eq=False)
class Uses:
    """What each option of a slot uses of inventories that others may use too.

    Attributes:
        codes: Of inventories, int64, shape (options, most of any); `NO_CODE` where there are fewer.
        amounts: Units that the slot uses, int64, of the same shape.
        free: What is free of each.
    """

    codes: Matrix
    amounts: Matrix
    free: Matrix

    def of_options(self, options: Mask) -> "Uses":
        """Return the same of some of the options."""
        return Uses(self.codes[options], self.amounts[options], self.free[options])


def are_any(forest: Forest) -> bool:
    """Tell whether any inventory consumes another one."""
    return forest.holdings.patterns.are_any


def consumed_of(forest: Forest, pairs: Pairs, name: str) -> Consumed:
    """Return what the inventories of a class consume that some pairs have."""

    def made() -> Consumed:
        return _consumed(forest, pairs, name)

    if not are_any(forest):
        return _NOTHING
    return forest.cache.get(("consumed", pairs.serial, name), made)


_NONE: Integers = np.empty(0, dtype=np.int64)
_NOTHING = Consumed(_NONE, _NONE, _NONE)


def _consumed(forest: Forest, pairs: Pairs, name: str) -> Consumed:
    columns = forest.class_inventories(name)
    indices = pairs.indices[name]
    if isinstance(indices, slice):
        indices = np.arange(indices.start, indices.stop)
    order, parts = forest.order, []
    for uses, some in forest.holdings.patterns.among(columns.pattern.values[indices]):
        rows = columns.row.values[indices[some]]
        for use in uses:
            there = rows + use.offset
            index = search_ascending(forest.classes[use.class_id].row.values, there)
            code = use.class_id * len(order.row) + order.position[there]
            numbers = np.full_like(some, use.class_id)
            parts.append(np.stack([some, code, np.full_like(some, use.amount), numbers, index]))
    if not parts:
        return _NOTHING
    table = np.concatenate(parts, axis=1)
    table = table[:, np.argsort(table[0], kind="stable")]
    places = {
        int(class_id): (at, table[4, at])
        for class_id in np.unique(table[3])
        for at in (np.flatnonzero(table[3] == class_id),)
    }
    pair, code, amount = (np.ascontiguousarray(column) for column in table[:3])
    return Consumed(pair, code, amount, places)


def with_room(forest: Forest, pairs: Pairs, amounts: Mapping[str, int]) -> Mask | None:
    """Tell which pairs have room for what some amounts of theirs consume.

    Args:
        forest: Where to look.
        pairs: Pairs of a slot.
        amounts: What one provider is to give, by class name.

    Returns:
        One truth for each pair; None if no inventory consumes anything.
    """
    found = {name: consumed_of(forest, pairs, name) for name in amounts}
    if not any(map(len, found.values())):
        return None
    fits: Mask = np.ones(len(pairs.provider), dtype=np.bool_)
    if len(amounts) == 1:
        ((name, consumed),) = found.items()
        fits[consumed.pair[consumed.free(forest) < consumed.amount * amounts[name]]] = False
        return fits
    every = np.arange(len(pairs.provider))
    pair, code, amount, free = _entries(forest, pairs, amounts, every)
    key = np.stack([pair, code])
    _, first, which = np.unique(key, axis=1, return_index=True, return_inverse=True)
    sums = np.zeros(len(first), dtype=np.int64)
    np.add.at(sums, which.reshape(-1), amount)
    fits[pair[first[sums > free[first]]]] = False
    return fits


def most_by_consumed(forest: Forest, pairs: Pairs, name: str) -> Integers | None:
    """Return how many units of a class what they consume leaves room for, for each pair.

    Returns:
        int64, shape (pairs,); None where no inventory consumes anything.
    """
    consumed = consumed_of(forest, pairs, name)
    if not len(consumed):
        return None
    most = np.full(len(pairs.provider), np.iinfo(np.int64).max)
    np.minimum.at(most, consumed.pair, consumed.free(forest) // consumed.amount)
    return most


def uses_any(forest: Forest, pairs: Pairs, names: Iterable[str]) -> bool:
    """Tell whether what some classes give may meet at one inventory with what others consume."""
    patterns, classes = forest.holdings.patterns, forest.catalogue.resource_classes
    return any(
        classes[name].id in patterns.consumed or len(consumed_of(forest, pairs, name))
        for name in names
    )


def uses_of_options(
    forest: Forest, pairs: Pairs, amounts: Mapping[str, int], numbers: Integers
) -> Uses:
    """Return what options of a slot use.

    Args:
        forest: Where to look.
        pairs: The pairs of the slot.
        amounts: What the slot takes, by class name.
        numbers: Of the pairs that are options, ascending, int64.
    """
    option, code, amount, free = _entries(forest, pairs, amounts, numbers)
    order = np.lexsort((code, option))
    option, code, amount, free = option[order], code[order], amount[order], free[order]
    is_new = np.ones(len(option), dtype=np.bool_)
    is_new[1:] = (option[1:] != option[:-1]) | (code[1:] != code[:-1])
    first = np.flatnonzero(is_new)
    sums = np.add.reduceat(amount, first) if len(first) else amount
    option = option[first]
    counts = np.bincount(option, minlength=len(numbers))
    place = np.arange(len(option)) - (counts.cumsum() - counts).repeat(counts)
    shape = (len(numbers), int(counts.max(initial=0)))
    found = Uses(np.full(shape, NO_CODE), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    found.codes[option, place] = code[first]
    found.amounts[option, place] = sums
    found.free[option, place] = free[first]
    return found


def _entries(
    forest: Forest, pairs: Pairs, amounts: Mapping[str, int], numbers: Integers
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return what some pairs use: which of them, code of the inventory, units, and what is free."""
    patterns, count = forest.holdings.patterns, len(forest.order.row)
    parts = []
    for name, amount in amounts.items():
        consumed = consumed_of(forest, pairs, name)
        which, entry = consumed.of_pairs(numbers)
        free = consumed.free(forest)[entry]
        parts.append((which, consumed.code[entry], consumed.amount[entry] * amount, free))
        class_id = forest.catalogue.resource_classes[name].id
        if class_id in patterns.consumed:
            which = np.arange(len(numbers))
            free = forest.class_inventories(name).free.values[pairs.indices[name]][numbers]
            code = class_id * count + pairs.provider[numbers]
            parts.append((which, code, np.full_like(which, amount), free))
    pair, code, units, free = (np.concatenate(column) for column in zip(*parts, strict=True))
    return pair, code, units, free


def with_consumed(forest: Forest, taken: Iterable[Taken]) -> Iterable[Taken]:
    """Return some amounts, and what they consume; one inventory may be named more than once."""
    if not are_any(forest):
        return taken
    every = list(taken)
    class_by_id = forest.catalogue.class_by_id
    for position, name, amount in tuple(every):
        class_id = forest.catalogue.resource_classes[name].id
        index = forest.classes[class_id].index_of(int(forest.order.row[position]))
        every += [
            (position + use.offset, class_by_id[use.class_id].name, amount * use.amount)
            for use in forest.uses_of(class_id, index)
        ]
    return every


def taken_with_consumed(forest: Forest, taken: Iterable[Taken]) -> dict[tuple[int, int], int]:
    """Return what some amounts use in all, themselves and what they consume.

    Returns:
        Units by class id and index of the inventory.
    """
    used: dict[tuple[int, int], int] = {}
    for position, name, amount in with_consumed(forest, taken):
        class_id = forest.catalogue.resource_classes[name].id
        key = class_id, forest.classes[class_id].index_of(int(forest.order.row[position]))
        used[key] = used.get(key, 0) + amount
    return used


def times_together(forest: Forest, taken: Iterable[Taken]) -> int:
    """Return how often some amounts fit, with all that they consume."""
    return min(
        int(forest.classes[class_id].free.values[index]) // amount
        for (class_id, index), amount in taken_with_consumed(forest, taken).items()
    )


def classes_with_consumed(forest: Forest, names: Iterable[str]) -> set[str]:
    """Return some names of classes, and those of classes of which anything is consumed."""
    found = {name for name in names if name in forest.catalogue.resource_classes}
    if are_any(forest):
        class_by_id = forest.catalogue.class_by_id
        found |= {class_by_id[number].name for number in forest.holdings.patterns.consumed}
    return found


def have_room_together(forest: Forest, taken: Iterable[Taken]) -> bool:
    """Tell whether all that some amounts use is free."""
    return all(
        forest.classes[class_id].free.values[index] >= amount
        for (class_id, index), amount in taken_with_consumed(forest, taken).items()
    )
