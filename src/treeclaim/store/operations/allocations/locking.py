# SPDX-License-Identifier: Apache-2.0
"""Locks the consumers and providers of claims, and looks up the named objects.

Providers come last, so that other transactions wait for them as briefly as possible.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from treeclaim.model.claim import HOLD_TYPE, ConsumerClaim, Omission
from treeclaim.model.errors import InvalidValueError, NotFoundError, TreeclaimError
from treeclaim.model.extension.errors import ConsumerExistsError
from treeclaim.store.database.transactions import RetryTransactionError, WriteTransaction
from treeclaim.store.operations.allocations import consumers
from treeclaim.store.operations.allocations.conditions import ConditionBook
from treeclaim.store.operations.allocations.consumers import Consumer, OwnerIds
from treeclaim.store.operations.allocations.holds import LockedHolds, lock_holds
from treeclaim.store.operations.allocations.ledger import NewAllocation
from treeclaim.store.operations.allocations.lookup import (
    CurrentAllocations,
    Lookup,
    list_owner_names,
    load_current_allocations,
    look_up_names,
)
from treeclaim.store.operations.allocations.requests import ClaimRequest, PlacedMeanwhileError
from treeclaim.store.operations.locks.consumed import (
    ConsumedAmounts,
    list_consumed_providers,
    load_consumption_by_uuid,
)
from treeclaim.store.operations.locks.provider_rows import LockedProvider, lock_providers


class SeparateTransactionsError(TreeclaimError):
    """Requests that cannot share a transaction."""


@dataclass(slots=True)
class LockedRequest:
    """A request with locked consumers."""

    request: ClaimRequest
    refusal: TreeclaimError | None = None
    new_allocations: Sequence[NewAllocation] = ()

    def refuse(self, error: TreeclaimError) -> None:
        """Set the refusal without its traceback, which would keep frames alive."""
        self.refusal = error.with_traceback(None)


@dataclass(slots=True)
class LockedClaims:
    """Requests with locked consumers and providers.

    Attributes:
        consumers: The consumers with a row before the write.
        inserted_uuids: UUIDs of the consumers with a row that was inserted to lock them.
        current_allocations: The current allocations of all consumers, read under their locks.
        class_ids, kept_requests, is_consuming: As in `Lookup`.
        providers: All locked providers by UUID.
        conditions: The conditions of the claimed providers; `judge` reads them.
        consumed_ids: Ids of the providers that the claimed inventories consume.
        consumption: Consumption by the inventories of new and replaced allocations, read under the locks.
    """

    requests: Sequence[LockedRequest]
    consumers: Mapping[str, Consumer]
    inserted_uuids: set[str]
    current_allocations: CurrentAllocations
    class_ids: Mapping[str, int]
    owner_ids: OwnerIds
    providers: Mapping[str, LockedProvider]
    holds: LockedHolds
    kept_requests: Mapping[str, bool]
    conditions: ConditionBook
    is_consuming: bool = False
    consumed_ids: AbstractSet[int] = frozenset()
    consumption: ConsumedAmounts = field(default_factory=dict)

    @property
    def accepted_requests(self) -> list[LockedRequest]:
        """Return the requests without a refusal."""
        return [
            locked_request for locked_request in self.requests if locked_request.refusal is None
        ]

    @property
    def new_allocations(self) -> list[NewAllocation]:
        """Return the new allocations of the accepted requests."""
        return [
            allocation
            for locked_request in self.accepted_requests
            for allocation in locked_request.new_allocations
        ]

    @property
    def refusals(self) -> list[TreeclaimError | None]:
        """Return the refusal of each request; None for an accepted request."""
        return [locked_request.refusal for locked_request in self.requests]

    def raise_refusal(self) -> None:
        """Raise the first refusal, if any request is refused."""
        refusal = next((refusal for refusal in self.refusals if refusal is not None), None)
        if refusal is None:
            return
        # The traceback of an error refers to frames. If the frames refer to the error, their objects live until
        # the garbage collector finds the cycle.
        for locked_request in self.requests:
            locked_request.refusal = None
        try:
            raise refusal
        finally:
            del refusal


def lock_claims(
    transaction: WriteTransaction,
    requests: Sequence[ClaimRequest],
    *,
    provider_uuids: Iterable[str] = (),
    provider_ids: Iterable[int] = (),
) -> LockedClaims:
    """Lock the consumers of requests, then their providers and the given ones.

    It refuses requests with a wrong consumer generation, or a wrong assumption about the allocations of a consumer.

    Raises:
        PrerequisiteError: if a project, user or consumer type must be created first, or an expired hold removed.
        SeparateTransactionsError: if one request writes a hold that another one draws from.
    """
    claims = [claim for request in requests for claim in request.claims]
    locked_consumers, lookup = _lock_known_consumers(transaction, claims)
    owner_ids = OwnerIds(transaction, lookup.owners)
    owner_ids.require(list_owner_names(claims))
    holds = lock_holds(
        transaction,
        lookup.terms | lookup.drawn_hold_uuids,
        [claim.consumer_uuid for claim in claims],
        locked_consumers,
        lookup.current_allocations,
    )
    _require_separable(requests, holds)
    locked_claims = LockedClaims(
        requests=[LockedRequest(request) for request in requests],
        consumers=locked_consumers,
        inserted_uuids=set(),
        current_allocations=lookup.current_allocations,
        class_ids=lookup.class_ids,
        owner_ids=owner_ids,
        providers={},
        holds=holds,
        kept_requests=lookup.kept_requests,
        conditions=ConditionBook(transaction),
        is_consuming=lookup.is_consuming,
    )
    _compare_generations(locked_claims)
    _refuse_by_holdings(locked_claims)
    _lock_new_consumers(transaction, locked_claims)
    _lock_providers(transaction, locked_claims, provider_uuids, provider_ids)
    return locked_claims


def _lock_known_consumers(
    transaction: WriteTransaction, claims: Sequence[ConsumerClaim]
) -> tuple[Mapping[str, Consumer], Lookup]:
    if all(claim.generation is None for claim in claims):
        # New consumers usually have no row, and need no lock.
        lookup = look_up_names(transaction, claims)
        if not lookup.consumers:
            return {}, lookup
    locked_consumers = consumers.lock(transaction, [claim.consumer_uuid for claim in claims])
    lookup = look_up_names(transaction, claims)
    if lookup.consumers - locked_consumers.keys():
        # Another transaction has created a consumer since the locking.
        raise RetryTransactionError
    return locked_consumers, lookup


def _require_separable(requests: Sequence[ClaimRequest], holds: LockedHolds) -> None:
    """Check that no request writes a hold that another request draws from, or has drawn from."""
    if len(requests) == 1 or not holds.book.holds:
        return
    drawn_holds = [
        {source for claim in request.claims for source in claim.from_holds}.union(
            *(
                units_by_hold
                for uuid in request.consumer_uuids
                for units_by_hold in holds.book.draws.get(uuid, {}).values()
            )
        )
        for request in requests
    ]
    for position, request in enumerate(requests):
        written_holds = holds.book.holds.keys() & set(request.consumer_uuids)
        if any(
            written_holds & uuids for index, uuids in enumerate(drawn_holds) if index != position
        ):
            raise SeparateTransactionsError("A hold is written and drawn from.")


def _compare_generations(locked_claims: LockedClaims) -> None:
    for locked_request in locked_claims.requests:
        claims = locked_request.request.claims
        try:
            consumers.require_generations(
                claims,
                locked_claims.consumers,
                locked_claims.current_allocations,
                locked_claims.holds.book.original_holds,
            )
        except TreeclaimError as error:
            locked_request.refuse(
                PlacedMeanwhileError() if locked_request.request.is_placement else error
            )


def _refuse_by_holdings(locked_claims: LockedClaims) -> None:
    for locked_request in locked_claims.accepted_requests:
        request = locked_request.request
        for claim in request.claims:
            has_allocations = claim.consumer_uuid in locked_claims.current_allocations.by_consumer
            is_hold = claim.consumer_uuid in locked_claims.holds.book.original_holds
            if request.is_release and not (has_allocations or is_hold):
                text = f"No allocations for consumer '{claim.consumer_uuid}'"
                locked_request.refusal = NotFoundError(text)
            elif request.is_placement and (has_allocations or is_hold):
                locked_request.refusal = PlacedMeanwhileError()
            elif locked_request.refusal is None:
                refusal = _find_misuse(claim, is_hold=is_hold, has_allocations=has_allocations)
                locked_request.refusal = refusal


def _find_misuse(
    claim: ConsumerClaim, *, is_hold: bool, has_allocations: bool
) -> TreeclaimError | None:
    """Return the refusal of a claim that misuses a hold (contract page 100, section 1); None for a valid claim."""
    uuid = claim.consumer_uuid
    if claim.hold is not None:
        return ConsumerExistsError([uuid]) if has_allocations and not is_hold else None
    if is_hold and claim.from_holds:
        return InvalidValueError(f"Consumer {uuid} is a hold, which draws from nothing.")
    if not claim.knows_holds:
        return None
    if is_hold:
        keeps_type = claim.consumer_type in {HOLD_TYPE, Omission.OMITTED}
        return None if keeps_type else ConsumerExistsError([uuid])
    if claim.consumer_type == HOLD_TYPE and claim.allocations:
        return InvalidValueError(
            f"Consumer {uuid} is no hold and cannot have the type {HOLD_TYPE}: 'hold' makes one."
        )
    return None


def _lock_new_consumers(transaction: WriteTransaction, locked_claims: LockedClaims) -> None:
    # If another transaction has inserted a row, this one violates the unique constraint and is retried.
    unlocked_claims = [
        claim
        for locked_request in locked_claims.accepted_requests
        for claim in locked_request.request.claims
        if claim.consumer_uuid not in locked_claims.consumers
    ]
    allocating_claims = [claim for claim in unlocked_claims if claim.allocations]
    consumers.insert(transaction, allocating_claims, locked_claims.owner_ids)
    locked_claims.inserted_uuids = {claim.consumer_uuid for claim in allocating_claims}
    consumers.lock_missing(
        transaction, [claim.consumer_uuid for claim in unlocked_claims if not claim.allocations]
    )
    if any(
        claim.consumer_uuid in locked_claims.current_allocations.by_consumer
        for claim in unlocked_claims
    ):
        # Consumers with allocations but without a row (old data) have no lock before the insertion.
        uuids = [
            uuid
            for locked_request in locked_claims.requests
            for uuid in locked_request.request.consumer_uuids
        ]
        locked_claims.current_allocations = load_current_allocations(transaction, uuids)
        _refuse_by_holdings(locked_claims)


def _lock_providers(
    transaction: WriteTransaction,
    locked_claims: LockedClaims,
    provider_uuids: Iterable[str],
    provider_ids: Iterable[int],
) -> None:
    claims = [
        claim
        for locked_request in locked_claims.accepted_requests
        if not locked_request.request.is_release
        for claim in locked_request.request.claims
    ]
    uuids = {uuid for claim in claims for uuid in claim.allocations} | set(provider_uuids)
    emptied_uuids = [claim.consumer_uuid for claim in claims if not claim.allocations]
    further_ids = locked_claims.current_allocations.list_providers(emptied_uuids).union(
        provider_ids
    )
    consumed_ids: set[int] = set()
    if locked_claims.is_consuming:
        consumption = load_consumption_by_uuid(transaction, uuids)
        claimed_classes = set(locked_claims.class_ids.values())
        keys = [key for key in consumption if key[1] in claimed_classes]
        locked_claims.consumed_ids = consumed_ids = list_consumed_providers(consumption, keys)
    if uuids or further_ids:
        rows = lock_providers(transaction, uuids, further_ids | consumed_ids)
        locked_claims.providers = {row.uuid: row for row in rows}
