# SPDX-License-Identifier: Apache-2.0
"""Held amounts, and a Forest in which they are free (contract page 100, section 2).

Every stage of a search reads the columns for used and free units. Held amounts that count as
free are subtracted there, in a copy of the columns concerned; the texts of summaries stay
those of the Forest itself, and show the amounts as used.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Self

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.columns import NO_ROW, Rows, search_ascending
from treeclaim.model.claim import Amounts
from treeclaim.model.request import CandidateRequest

if TYPE_CHECKING:
    from treeclaim.forest.table.forest import Forest

HeldOf = tuple[int, int, int]
"""Id of a provider, id of a resource class, and what holds have of that."""

_PROVIDER_BITS = 31
"""Bits of a key: the databases' ids are 32-bit numbers above zero."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldColumns:
    """The held amounts of many inventories.

    Attributes:
        keys: Keys of inventories, ascending: the class id, then the provider id.
        amounts: Held units of each, above zero.
    """

    keys: Rows
    amounts: Rows

    @classmethod
    def of(cls, held: Iterable[HeldOf]) -> Self:
        """Return what is held of inventories."""
        nothing: Rows = np.empty(0, dtype=np.int64)
        return cls(nothing, nothing).plus(held)

    def __len__(self) -> int:
        """Return of how many inventories something is held."""
        return len(self.keys)

    def at(self, provider_id: int, class_id: int) -> int:
        """Return the held amount of one inventory."""
        return int(self.of_each(np.array([provider_id]), np.array([class_id]))[0])

    def plus(self, amounts: Iterable[HeldOf], sign: int = 1) -> Self:
        """Return the held amounts with more of them, or less with the sign -1; an inventory may occur repeatedly."""
        table = np.array(list(amounts), dtype=np.int64).reshape(-1, 3)
        added_keys = table[:, 1] << _PROVIDER_BITS | table[:, 0]
        keys, places = np.unique(np.concatenate([self.keys, added_keys]), return_inverse=True)
        sums = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums, places, np.concatenate([self.amounts, sign * table[:, 2]]))
        is_positive = sums > 0
        return type(self)(keys[is_positive], sums[is_positive])

    def of_class(self, class_id: int) -> tuple[Rows, Rows]:
        """Return the ids of providers, ascending, of whose inventory something is held, and how much."""
        ends = [class_id << _PROVIDER_BITS, class_id + 1 << _PROVIDER_BITS]
        begin, end = search_ascending(self.keys, ends).tolist()
        return self.keys[begin:end] - ends[0], self.amounts[begin:end]

    def of_each(self, provider_ids: Rows, class_ids: Rows) -> Rows:
        """Return what is held of each of some inventories, given the ids of provider and class."""
        sought_keys = class_ids << _PROVIDER_BITS | provider_ids
        at = search_ascending(self.keys, sought_keys)
        is_held = at < len(self)
        is_held[is_held] = self.keys[at[is_held]] == sought_keys[is_held]
        held = np.zeros(len(sought_keys), dtype=np.int64)
        held[is_held] = self.amounts[at[is_held]]
        return held

    def classes(self) -> set[int]:
        """Return the ids of the classes of which something is held."""
        return set(np.unique(self.keys >> _PROVIDER_BITS).tolist())


@dataclass(frozen=True, slots=True)
class HeldAmounts:
    """The held amounts at the Forest's moment, as far as a question needs them.

    Attributes:
        by_hold: Amounts of each named hold that is not empty.
        everywhere: Amounts of all holds together; None where they are not needed.
    """

    by_hold: Mapping[str, Amounts] = field(default_factory=dict)
    everywhere: HeldColumns | None = None

    def of_holds(self, forest: "Forest", names: Iterable[str]) -> Iterator[HeldOf]:
        """Yield what some of the named holds have, where there are such inventories."""
        for name in names:
            yield from amounts_by_id(forest, self.by_hold.get(name, {}))


def amounts_by_id(forest: "Forest", amounts: Amounts) -> Iterator[HeldOf]:
    """Yield amounts by the ids of providers and classes that there are."""
    for uuid, units_by_class in amounts.items():
        row = forest.row_of(uuid)
        for resource_class, amount in units_by_class.items():
            entry = forest.catalogue.resource_classes.get(resource_class)
            if row is not None and entry is not None:
                yield int(forest.id.values[row]), entry.id, amount


NOTHING_HELD = HeldAmounts()
"""The value for clouds without holds, and for questions that ignore holds."""


def free_holds(
    forest: "Forest", request: CandidateRequest, budget: Budget
) -> tuple["Forest", CandidateRequest]:
    """Return a Forest in which what the holds of a request have is free, and the request without them."""
    if not request.from_holds:
        return forest, request
    parts = [forest.held.by_hold.get(name, {}) for name in request.from_holds]
    return with_free(forest, parts, budget), replace(request, from_holds=())


def with_free(forest: "Forest", parts: Iterable[Amounts], budget: Budget) -> "Forest":
    """Return a Forest in which some held amounts are free, with what they consume, to be searched at once.

    Amounts of inventories that do not exist are ignored.
    """
    held = HeldColumns.of(())
    for part in parts:
        budget.check()
        held = held.plus(amounts_by_id(forest, part))
    return without(forest, held_with_consumed(forest, held))


def held_with_consumed(forest: "Forest", held: HeldColumns) -> HeldColumns:
    """Return what is held, with what it consumes (contract page 102, section 2)."""
    consumed_units: list[HeldOf] = []
    for class_id in held.classes() & forest.classes.keys():
        provider_ids, amounts = held.of_class(class_id)
        rows = forest.rows_of_ids(provider_ids.tolist())
        rows, amounts = rows[rows != NO_ROW], amounts[rows != NO_ROW]
        for use, users in forest.uses_at(forest.catalogue.class_by_id[class_id].name, rows):
            consumed = forest.id.values[rows[users] + use.offset].tolist()
            units = (amounts[users] * use.amount).tolist()
            consumed_units += zip(consumed, repeat(use.class_id), units, strict=False)
    return held.plus(consumed_units)


def without(forest: "Forest", held: HeldColumns) -> "Forest":
    """Return a Forest in which held amounts, which include what they consume, are free, to be searched at once."""
    forest.prepare()
    forest_copy = copy.copy(forest)
    forest_copy.classes = dict(forest.classes)
    for class_id in held.classes() & forest.classes.keys():
        provider_ids, amounts = held.of_class(class_id)
        rows = forest.rows_of_ids(provider_ids.tolist())
        is_known = rows != NO_ROW
        columns = forest_copy.classes[class_id] = forest.classes[class_id].changeable()
        has, indices = columns.indices_of(rows[is_known])
        columns.use_each(indices, -amounts[is_known][has])
    return forest_copy
