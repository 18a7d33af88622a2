# SPDX-License-Identifier: Apache-2.0
"""An inventory with its usage, as clients see it."""

from dataclasses import dataclass

from treeclaim.model.inventory import Consumes, Inventory


@dataclass(frozen=True, slots=True)
class InventoryView:
    """One inventory of a provider as clients see it.

    Attributes:
        resource_class: Name of the class.
        inventory: The amounts.
        used: Units allocated, and those consumed.
        modified_at: Last update (or creation), in seconds since the epoch.
        consumes: What a unit consumes elsewhere, in the order of clients.
    """

    resource_class: str
    inventory: Inventory
    used: int
    modified_at: float
    consumes: tuple[Consumes, ...] = ()
