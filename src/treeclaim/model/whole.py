# SPDX-License-Identifier: Apache-2.0
"""The whole inventory as arrays, which the store loads without an object for each row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.model.provider import AttributeValue

Numbers = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]
"""Times in seconds since the epoch."""

NO_PARENT = -1
"""Parent id of a root; ids are positive."""


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of a provider and an entry of one of its parts.

    Attributes:
        entry: The entry of each pair, as a number.
        names: The entries by number; None if the numbers are the entries.
    """

    provider_id: Numbers
    entry: Numbers
    names: Mapping[int, Any] | None = None


@dataclass(frozen=True, slots=True)
class AttributeRows:
    """Attributes of providers; `name` and `value` are indices in `names` and `values`.

    Each pair of a provider and a name occurs once.
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
    """Inventories with their usage, as columns of `InventoryRecord`; each pair of provider and class occurs once."""

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
    """The consumption of other inventories by each unit of an inventory (contract page 102, section 2), in no order."""

    provider_id: Numbers
    class_id: Numbers
    consumed_provider_id: Numbers
    consumed_class_id: Numbers
    amount: Numbers

    @classmethod
    def none(cls) -> "ConsumptionColumns":
        """Return empty columns."""
        return cls(*(np.empty(0, dtype=np.int64) for _ in range(5)))


@dataclass(frozen=True, slots=True)
class WholeInventory:
    """All providers with their parts.

    Attributes:
        id: Ids, ascending; the columns to `modified_at` are in the same order.
        uuid: `S36` byte strings.
        parent_id: Ids of the parents, or `NO_PARENT`.
        modified_at: Last update, or creation.
        inventories: In no order.
        links: Entries of each part in `SHOWN_LINKS`, by the part's name.
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
