# SPDX-License-Identifier: Apache-2.0
"""Placements: claims of new consumers, placed by a search (contract page 98, section 4).

They are judged in order, under the locks of claims. The placements of one call are written as one
request, and a refusal names the consumer for which the search must be repeated. A call with a single
consumer joins the groups of claims.
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
from treeclaim.store.operations.allocations.locking import LockedRequest, lock_claims
from treeclaim.store.operations.allocations.requests import ClaimRequest, PlacedMeanwhileError

REFUSALS = (
    AllocationProviderNotFoundError,
    ResourceClassNotFoundError,
    InventoryMissingError,
    UnitConstraintError,
    CapacityExceededError,
    ConditionedError,
)
"""Refusals after which a search finds another provider: the former one was changed meanwhile."""


class PlacementRefusedError(TreeclaimError):
    """The first refusal of a call: the provider of a consumer was deleted, or has no room any more."""

    message = "There is no room any more for consumer {consumer}."
    consumer: str


def place(transaction: WriteTransaction, claims: Sequence[ConsumerClaim]) -> None:
    """Write the claims of new consumers, all or nothing.

    Raises:
        PlacedMeanwhileError: if a consumer has allocations already.
        HoldRefusedError: for the first hold from which a consumer must not draw.
        PlacementRefusedError: for the first consumer with a deleted or full provider.
    """
    requests = [ClaimRequest([claim], is_placement=True) for claim in claims]
    locked = lock_claims(transaction, requests, is_one_write=True)
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
    # As one request, so that the generation of each provider rises by one.
    locked.requests = [LockedRequest(ClaimRequest(claims), None, locked.new_allocations)]
    write_accepted(transaction, locked)
