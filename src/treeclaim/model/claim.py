# SPDX-License-Identifier: Apache-2.0
"""Claims and allocations as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from treeclaim.model.extension.holds import HoldTerms
from treeclaim.model.inventory import Inventory


class Omission(Enum):
    """Marks a value that a client omits: it is not compared, or stays as it is."""

    OMITTED = "omitted"


@dataclass(frozen=True, slots=True)
class ConsumerClaim:
    """The allocations that replace those of one consumer (page 70, section 1.3).

    Attributes:
        consumer_uuid: Lower-case dashed uuid.
        allocations: Amounts by provider uuid and resource class name; empty removes all.
        project_id: Owner.
        user_id: Owner.
        generation: The consumer's generation the client knows; None for "it is new".
        consumer_type: Type name; of a hold, that of holds.
        knows_holds: Whether the client knows what a hold is (contract page 100). One that does not
            leaves its type alone.
        hold: Terms of a hold that it makes or changes; None for none, and for those that it has.
        from_holds: Uuids of holds to draw from, in this order.
        request: The queries that it was placed by; None to forget them.
        tolerates: Keys of conditions that do not count for it (contract page 102, section 3).
    """

    consumer_uuid: str
    allocations: Mapping[str, Mapping[str, int]]
    project_id: str
    user_id: str
    generation: int | Omission | None = Omission.OMITTED
    consumer_type: str | Omission = Omission.OMITTED
    knows_holds: bool = False
    hold: HoldTerms | None = None
    from_holds: Sequence[str] = ()
    request: Sequence[str] | Omission | None = Omission.OMITTED
    tolerates: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """Sums over the consumers of one type (contract page 80, section 2).

    Attributes:
        consumer_type: Type name; None for consumers without one.
        consumer_count: Distinct consumers.
        resources: Sum of each resource class, by name.
    """

    consumer_type: str | None
    consumer_count: int
    resources: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReshapedInventory:
    """The complete new inventory of one provider in a reshape (contract page 75).

    Attributes:
        provider_uuid: The provider.
        generation: The provider's generation that the client knows.
        inventories: By resource class name.
    """

    provider_uuid: str
    generation: int
    inventories: Mapping[str, Inventory]
