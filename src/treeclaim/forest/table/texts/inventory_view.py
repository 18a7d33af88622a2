# SPDX-License-Identifier: Apache-2.0
"""An inventory with its usage, as clients see it."""

from dataclasses import dataclass

from treeclaim.model.inventory import Inventory


@dataclass(frozen=True, slots=True)
class InventoryView:
    """One inventory of a provider as clients see it.

    Attributes:
        resource_class: Name of the class.
        inventory: The amounts.
        used: Units allocated.
        modified_at: Last update (or creation), in seconds since the epoch.
    """

    resource_class: str
    inventory: Inventory
    used: int
    modified_at: float
