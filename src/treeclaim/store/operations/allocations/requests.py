# SPDX-License-Identifier: Apache-2.0
"""A client's request for allocations: all of its claims are written, or none."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.timing import WAIT, Stages


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """The claims of one client.

    Attributes:
        claims: Claims of different consumers.
        is_release: Whether it is a DELETE: its consumer must have allocations, and the
            generations of its providers are not raised.
        is_placement: Whether its consumers must hold nothing yet, records from before consumers had
            rows included (contract page 98, section 4).
        is_reshape: Whether what a consumer gives up of a hold's room at one provider passes to where
            it grows (contract page 100, section 2).
        stages: Counts how long each part of writing them takes.
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
        """Return the consumers of its claims."""
        return [claim.consumer_uuid for claim in self.claims]

    @property
    def names(self) -> set[str]:
        """Return the uuids of its consumers, and of the providers and holds that it names."""
        return {
            uuid
            for claim in self.claims
            for uuid in (claim.consumer_uuid, *claim.allocations, *claim.from_holds)
        }


class PlacedMeanwhileError(TreeclaimError):
    """A consumer of a placement that held nothing now does."""
