# SPDX-License-Identifier: Apache-2.0
"""Held amounts, and a Forest in which they are free (contract page 100, section 2).

Every stage of a search reads the columns of used and free units. Held amounts that count as free
are subtracted in a copy of these columns. Summaries keep the texts of the Forest itself, which
show the amounts as used.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.columns import NO_ROW, Rows
from treeclaim.model.claim import Amounts
from treeclaim.model.request import CandidateRequest

if TYPE_CHECKING:
    from treeclaim.forest.table.forest import Forest

InventoryIds = tuple[int, int]
"""Ids of a provider and of a resource class."""

HeldUnits = Mapping[InventoryIds, int]
"""Held units of inventories, all above zero."""


def add_held(
    held_units: HeldUnits, amounts: Iterable[tuple[InventoryIds, int]], sign: int = 1
) -> HeldUnits:
    """Return held amounts plus `sign` times some amounts; an inventory may occur repeatedly."""
    sums = Counter(held_units)
    for inventory, units in amounts:
        sums[inventory] += sign * units
    return +sums


def held_by_class(forest: "Forest", held_units: HeldUnits) -> dict[int, tuple[Rows, Rows]]:
    """Return the rows of existing providers with held amounts, and the units, by class id."""
    amounts_by_class: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for (provider_id, class_id), units in held_units.items():
        amounts_by_class[class_id][provider_id] = units
    by_class = {}
    for class_id in amounts_by_class.keys() & forest.classes.keys():
        rows = forest.rows_of_ids(list(amounts_by_class[class_id]))
        amounts = np.array(list(amounts_by_class[class_id].values()), dtype=np.int64)
        by_class[class_id] = rows[rows != NO_ROW], amounts[rows != NO_ROW]
    return by_class


@dataclass(frozen=True, slots=True)
class HeldAmounts:
    """The held amounts at the Forest's moment, as far as a request needs them.

    Attributes:
        by_hold: Amounts of each named hold that is not empty.
        everywhere: Amounts of all holds together; None where they are not needed.
    """

    by_hold: Mapping[str, Amounts] = field(default_factory=dict)
    everywhere: HeldUnits | None = None

    def of_holds(
        self, forest: "Forest", names: Iterable[str]
    ) -> Iterator[tuple[InventoryIds, int]]:
        """Yield the amounts of named holds at existing inventories."""
        for name in names:
            yield from amounts_by_id(forest, self.by_hold.get(name, {}))


def amounts_by_id(forest: "Forest", amounts: Amounts) -> Iterator[tuple[InventoryIds, int]]:
    """Yield amounts by provider id and class id; missing providers and classes are skipped."""
    for uuid, units_by_class in amounts.items():
        row = forest.row_of(uuid)
        for resource_class, amount in units_by_class.items():
            entry = forest.catalogue.resource_classes.get(resource_class)
            if row is not None and entry is not None:
                yield (int(forest.id.values[row]), entry.id), amount


NOTHING_HELD = HeldAmounts()
"""The value for clouds without holds, and for requests that ignore holds."""


def free_holds(
    forest: "Forest", request: CandidateRequest, budget: Budget
) -> tuple["Forest", CandidateRequest]:
    """Return a view in which the amounts of a request's holds are free, and the request without holds."""
    if not request.from_holds:
        return forest, request
    parts = [forest.held_amounts.by_hold.get(name, {}) for name in request.from_holds]
    return free_amounts(forest, parts, budget), replace(request, from_holds=())


def free_amounts(forest: "Forest", parts: Iterable[Amounts], budget: Budget) -> "Forest":
    """Return a view in which held amounts, and the units that they consume, are free.

    Amounts at missing inventories are ignored.
    """
    held_units: HeldUnits = {}
    for part in parts:
        budget.check()
        held_units = add_held(held_units, amounts_by_id(forest, part))
    return subtract_held(forest, include_consumption(forest, held_units))


def include_consumption(forest: "Forest", held_units: HeldUnits) -> HeldUnits:
    """Return held amounts together with the units that they consume (contract page 102, section 2)."""
    if not forest.holdings.patterns.are_any:
        return held_units
    consumed_units: list[tuple[InventoryIds, int]] = []
    for class_id, (rows, amounts) in held_by_class(forest, held_units).items():
        for use, users in forest.uses_at(forest.catalogue.class_by_id[class_id].name, rows):
            consumed = forest.id.values[rows[users] + use.offset].tolist()
            units = (amounts[users] * use.amount).tolist()
            inventories = zip(consumed, repeat(use.class_id), strict=False)
            consumed_units += zip(inventories, units, strict=True)
    return add_held(held_units, consumed_units)


def subtract_held(forest: "Forest", held_units: HeldUnits) -> "Forest":
    """Return a view in which held amounts are free; they must include the units that they consume."""
    classes = dict(forest.classes)
    for class_id, (rows, amounts) in held_by_class(forest, held_units).items():
        columns = classes[class_id] = forest.classes[class_id].copy_usage()
        has, indices = columns.indices_of(rows)
        columns.add_usage(indices, -amounts[has])
    return forest.make_view(classes=classes)
