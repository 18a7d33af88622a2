# SPDX-License-Identifier: Apache-2.0
"""The whole inventory as arrays: what the store loads at once, without an object for each row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.model.provider import AttributeValue

Numbers = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]
"""Since the epoch."""

NO_PARENT = -1
"""Stands for "no parent" among the ids of parents; ids are positive."""


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of a provider and an entry of one of its parts.

    Attributes:
        provider_id: The provider's id in each pair.
        other: The entry, as a number.
        names: The entries by these numbers; None if the numbers are the entries.
    """

    provider_id: Numbers
    other: Numbers
    names: Mapping[int, Any] | None = None


@dataclass(frozen=True, slots=True)
class AttributeRows:
    """Attributes of providers; each pair of a provider and a name occurs once.

    Attributes:
        provider_id: The provider's id for each attribute.
        name: Where its name is in `names`.
        value: Where its value is in `values`.
        names, values: Each at least once that is meant.
    """

    provider_id: Numbers
    name: Numbers
    value: Numbers
    names: Sequence[str]
    values: Sequence[AttributeValue]


_NONE = np.zeros(0, dtype=np.int64)

NO_ATTRIBUTE_ROWS = AttributeRows(_NONE, _NONE, _NONE, (), ())


@dataclass(frozen=True, slots=True)
class InventoryColumns:
    """Inventories with their usage; the members are those of an `InventoryRecord`.

    Attributes:
        provider_id, class_id: Identity of the inventory; each pair occurs once.
        total, reserved, min_unit, max_unit, step_size, allocation_ratio: The amounts.
        used: Sum of all allocations.
        modified_at: Last update, or creation.
    """

    provider_id: Numbers
    class_id: Numbers
    total: Numbers
    reserved: Numbers
    min_unit: Numbers
    max_unit: Numbers
    step_size: Numbers
    allocation_ratio: npt.NDArray[np.float64]
    used: Numbers
    modified_at: Seconds


@dataclass(frozen=True, slots=True)
class ConsumptionColumns:
    """The consumption of inventories (contract page 102, section 2), in no order.

    Attributes:
        provider_id, class_id: The inventory that consumes.
        consumed_provider_id, consumed_class_id: The inventory consumed.
        amount: Units for each of its own.
    """

    provider_id: Numbers
    class_id: Numbers
    consumed_provider_id: Numbers
    consumed_class_id: Numbers
    amount: Numbers

    @classmethod
    def none(cls) -> "ConsumptionColumns":
        """Return columns in which nothing consumes anything."""
        return cls(*(np.empty(0, dtype=np.int64) for _ in range(5)))


@dataclass(frozen=True, slots=True)
class WholeInventory:
    """All providers with what belongs to them.

    Attributes:
        id: Ids of providers, ascending; the next ones are about the same providers.
        uuid: As `S36` byte strings.
        name: Names.
        generation: Generations.
        parent_id: Ids of the direct parents, or NO_PARENT.
        modified_at: Last update, or creation.
        inventories: The inventories of all providers, in no order.
        links: Entries of every other part, by its name.
        attributes: The attributes of all providers.
        consumption: Consumption of all inventories.
    """

    id: Numbers
    uuid: npt.NDArray[np.bytes_]
    name: Sequence[str]
    generation: Numbers
    parent_id: Numbers
    modified_at: Seconds
    inventories: InventoryColumns
    links: Mapping[str, Links]
    attributes: AttributeRows = field(default_factory=lambda: NO_ATTRIBUTE_ROWS)
    consumption: ConsumptionColumns = field(default_factory=ConsumptionColumns.none)
