# SPDX-License-Identifier: Apache-2.0
"""An inventory: how much of one resource class a provider has, and which amounts fit.

Rules: contract page 30, section 1 and page 70, sections 1 and 1.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAXIMUM_INTEGER = 2_147_483_647
"""Greatest value of every integer field of an inventory (signed 32 bits)."""

MAXIMUM_ALLOCATION_RATIO = 3.40282e38
"""Greatest allocation ratio: what a single-precision column can hold."""


AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""The attributes of an inventory besides what it consumes."""

MOST_CONSUMED = 16
"""Inventories that an inventory consumes (contract page 102, section 2)."""

MOST_CONSUMED_UNITS = 1_000_000
"""Units of another inventory that a unit may consume."""


@dataclass(frozen=True, slots=True)
class Consumes:
    """The consumption of another inventory by each allocated unit (page 102, section 2).

    Attributes:
        provider: Uuid of the provider whose inventory is consumed.
        resource_class: Its class.
        amount: Units of it, at least 1.
    """

    provider: str
    resource_class: str
    amount: int

    @property
    def document(self) -> dict[str, Any]:
        """Return it as clients see it."""
        return {
            "provider": self.provider,
            "resource_class": self.resource_class,
            "amount": self.amount,
        }


@dataclass(frozen=True, slots=True)
class Inventory:
    """The amount of one resource class that one provider offers.

    Attributes:
        total: Units that exist, at least 1.
        reserved: Units kept back from claims.
        min_unit: Least amount of one claim.
        max_unit: Greatest amount of one claim.
        step_size: A claim's amount is a multiple of this.
        allocation_ratio: Overcommitment; capacity is `(total - reserved) * allocation_ratio`.
        consumes: The consumption of a unit elsewhere, as a write states it; None to leave it unchanged.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAXIMUM_INTEGER
    step_size: int = 1
    allocation_ratio: float = 1.0
    consumes: Sequence[Consumes] | None = None

    @property
    def amounts(self) -> dict[str, Any]:
        """Return the amounts alone, by the names of their attributes."""
        return {name: getattr(self, name) for name in AMOUNTS}

    @property
    def capacity(self) -> float:
        """Return the total that can be claimed, unrounded; claims are compared with it."""
        return (self.total - self.reserved) * self.allocation_ratio

    @property
    def whole_capacity(self) -> int:
        """Return the capacity truncated toward zero, as it is shown to clients."""
        return int(self.capacity)

    def admits(self, amount: int) -> bool:
        """Return whether one claim may have this amount, by units and step, not by free capacity."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0
