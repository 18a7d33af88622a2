# SPDX-License-Identifier: Apache-2.0
"""Placements: claims of new consumers, found by a search (contract page 98, section 4).

They are claims like others, judged one after the other under the same locks. But those of one call
are written as one request, and a refusal names the consumer with which the search has to begin
again. A call that places a single consumer is a request like those of claims, and shares their groups.
"""

from collections.abc import Sequence

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    AllocationProviderNotFoundError,
    CapacityExceededError,
    InventoryMissingError,
    ResourceClassNotFoundError,
    TreeclaimError,
    UnitConstraintError,
)
from treeclaim.model.extension.errors import ConditionedError, HoldRefusedError
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.allocations.claims import judge, write_accepted
from treeclaim.store.operations.allocations.locking import LockedRequest, lock
from treeclaim.store.operations.allocations.requests import ClaimRequest, PlacedMeanwhileError

REFUSALS = (
    AllocationProviderNotFoundError,
    ResourceClassNotFoundError,
    InventoryMissingError,
    UnitConstraintError,
    CapacityExceededError,
    ConditionedError,
)
"""Why a provider that a search has found does not take a claim any more."""


class PlacementRefusedError(TreeclaimError):
    """A provider is gone, or no longer has room, for a consumer of a call: the first that is refused."""

    message = "There is no room any more for consumer {consumer}."
    consumer: str


def place(transaction: WriteTransaction, claims: Sequence[ConsumerClaim]) -> None:
    """Write the claims of new consumers, all or nothing.

    Raises:
        PlacedMeanwhileError: if a consumer has allocations by now.
        HoldRefusedError: for the first hold that a consumer must not draw from.
        PlacementRefusedError: for the first consumer whose provider is gone, or refuses.
    """
    requests = [ClaimRequest([claim], is_placement=True) for claim in claims]
    locked = lock(transaction, requests, (), is_one_write=True)
    for refusal in locked.refusals:
        if isinstance(refusal, PlacedMeanwhileError):
            raise refusal
    judge(transaction, locked)
    for refusal in locked.refusals:
        if isinstance(refusal, HoldRefusedError):
            raise refusal
    for claim, refusal in zip(claims, locked.refusals, strict=True):
        if refusal is not None:
            raise PlacementRefusedError(claim.consumer_uuid) from refusal
    # Each provider's generation moves by one a call.
    new = [allocation for locked_request in locked.requests for allocation in locked_request.new]
    locked.requests = [LockedRequest(ClaimRequest(claims), None, new)]
    write_accepted(transaction, locked)
