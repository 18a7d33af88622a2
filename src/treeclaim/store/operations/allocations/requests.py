# SPDX-License-Identifier: Apache-2.0
"""Requests of clients for allocations, each written as a whole or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    AllocationProviderNotFoundError,
    CapacityExceededError,
    InventoryMissingError,
    ResourceClassNotFoundError,
    TreeclaimError,
    UnitConstraintError,
)
from treeclaim.model.extension.errors import ConditionedError
from treeclaim.model.timing import WAIT, Stages


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """The claims of one client.

    Attributes:
        claims: Claims of different consumers.
        is_release: Whether the consumer must have allocations, and no generation of a provider rises (DELETE).
        is_placement: Whether the consumers must not have allocations yet (contract page 98, section 4).
        is_reshape: Whether draws move with a consumer to another provider (contract page 100, section 2).
        stages: Measures the stages of the write.
    """

    claims: Sequence[ConsumerClaim]
    is_release: bool = False
    is_placement: bool = False
    is_reshape: bool = False
    stages: Stages = field(default_factory=partial(Stages, WAIT), compare=False)

    @classmethod
    def release(cls, consumer_uuid: str) -> "ClaimRequest":
        """Return the request to remove all allocations of a consumer."""
        return cls([ConsumerClaim(consumer_uuid, {}, "", "")], is_release=True)

    @property
    def consumer_uuids(self) -> list[str]:
        """Return the UUIDs of the consumers."""
        return [claim.consumer_uuid for claim in self.claims]

    @property
    def names(self) -> set[str]:
        """Return the UUIDs of the consumers, providers and holds."""
        return {
            uuid
            for claim in self.claims
            for uuid in (claim.consumer_uuid, *claim.allocations, *claim.from_holds)
        }


class PlacedMeanwhileError(TreeclaimError):
    """A consumer of a placement has allocations already."""


STALE_PLACE_ERRORS = (
    AllocationProviderNotFoundError,
    ResourceClassNotFoundError,
    InventoryMissingError,
    UnitConstraintError,
    CapacityExceededError,
    ConditionedError,
)
"""Refusals of a placement because a provider has changed since the search; a new search may succeed."""
