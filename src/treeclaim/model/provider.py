# SPDX-License-Identifier: Apache-2.0
"""Resource providers as values: as clients see them, and as the store loads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from treeclaim.model.attributes import NO_ATTRIBUTES, Attributes
from treeclaim.model.inventory import Inventory
from treeclaim.model.parts import AGGREGATES, TRAITS


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider as clients see it (contract page 20, section 1).

    Attributes:
        uuid: Lower-case, dashed.
        name: Unique over all providers.
        generation: Counter for optimistic concurrency, 0 when created.
        parent_uuid: The direct parent, None for a root.
        root_uuid: The top of the tree; its own uuid for a root.
        modified_at: Last update (or creation), in seconds since the epoch.
    """

    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str
    modified_at: float


class Consumed(NamedTuple):
    """The consumption of each allocated unit of an inventory (contract page 102, section 2), by ids.

    Attributes:
        provider_id, class_id: Identify the inventory consumed.
        amount: Units.
    """

    provider_id: int
    class_id: int
    amount: int


@dataclass(frozen=True, slots=True)
class InventoryRecord:
    """An inventory with its usage, as the store loads it.

    Attributes:
        class_id: Id of the resource class.
        inventory: The amounts.
        used: Sum of all allocations of this class on this provider.
        modified_at: Last update (or creation) of the inventory, in seconds since the epoch.
        consumes: Consumption of a unit elsewhere in the tree, ascending.
    """

    class_id: int
    inventory: Inventory
    used: int
    modified_at: float
    consumes: tuple[Consumed, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderRecord:
    """A resource provider with all that a search needs, as the store loads it.

    Attributes:
        id: The row's id in the database; order of ids is the canonical order of providers.
        uuid: Lower-case, dashed.
        name: Unique over all providers.
        generation: Counter for optimistic concurrency.
        parent_id: Id of the direct parent, None for a root.
        root_id: Id of the tree's root; its own id for a root.
        modified_at: Last update (or creation), in seconds since the epoch.
        inventories: In order of class id.
        links: Entries of every other part, ascending, by the part's name: ids of traits, uuids
            of aggregates as they were given, conditions.
        attributes: Values by name.
    """

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int
    modified_at: float
    inventories: tuple[InventoryRecord, ...]
    links: Mapping[str, tuple[Any, ...]]
    attributes: Attributes = field(default_factory=lambda: NO_ATTRIBUTES)

    @property
    def trait_ids(self) -> tuple[int, ...]:
        """Return the ids of its traits, ascending."""
        return self.links[TRAITS.name]

    @property
    def aggregates(self) -> tuple[str, ...]:
        """Return the uuids of its aggregates, sorted."""
        return self.links[AGGREGATES.name]
