# SPDX-License-Identifier: Apache-2.0
"""Writes claims within capacity (contract page 70).

One transaction writes the requests of several clients as if they were sequential, each request as a whole or
not at all. It locks all consumers, then all providers in order of their ids. Under these locks it judges every
request, and writes the accepted ones. Concurrent claims on a provider therefore wait for each other, and do not
fail because of each other. If another transaction or program has changed a row despite the locks, the transaction
is retried.

The insertion of a row locks a consumer without one. Each consumer is locked before the transaction deletes or
counts its allocations.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from treeclaim.model.changes import UsageChange
from treeclaim.model.claim import ConsumerClaim, Omission
from treeclaim.model.errors import (
    AllocationProviderNotFoundError,
    ResourceClassNotFoundError,
    TreeclaimError,
)
from treeclaim.store.database.transactions import (
    Key,
    RetryTransactionError,
    WriteTransaction,
    to_timestamp,
)
from treeclaim.store.operations.allocations import consumers, kept_requests
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.allocations.hold_book import ConsumerChange
from treeclaim.store.operations.allocations.ledger import (
    Ledger,
    NewAllocation,
    insert_allocations,
)
from treeclaim.store.operations.allocations.locking import LockedClaims, LockedRequest, lock_claims
from treeclaim.store.operations.allocations.lookup import CurrentAllocations
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.catalogue.resource_classes import require_unchanged_ids
from treeclaim.store.operations.locks.consumed import (
    ConsumedAmounts,
    list_consumed_providers,
    load_consumption,
    record_consumed,
)
from treeclaim.store.operations.locks.provider_rows import raise_generations

_DELETE = "DELETE FROM allocations WHERE consumer_id IN :uuids"


class AllRefusedError(Exception):
    """Every request of a group is refused; the transaction is rolled back."""

    def __init__(self, refusals: Sequence[TreeclaimError | None]) -> None:
        super().__init__("all requests are refused")
        self.refusals = refusals


def write_request(transaction: WriteTransaction, request: ClaimRequest) -> None:
    """Write the request of one client, all or nothing.

    Raises:
        ConsumerGenerationConflictError, AllocationProviderNotFoundError,
        ResourceClassNotFoundError, InventoryMissingError, UnitConstraintError,
        CapacityExceededError: in this order (sections 1.3 and 3.3).
        TreeclaimError: by the rules of releases, placements and holds.
    """
    locked_claims = lock_claims(transaction, [request])
    locked_claims.raise_refusal()
    write(transaction, locked_claims)


def write_group(
    transaction: WriteTransaction, requests: Sequence[ClaimRequest]
) -> list[TreeclaimError | None]:
    """Write the requests of several clients, which have no common consumer, as if they were sequential.

    Returns:
        The refusal of each request; None for a written request.

    Raises:
        AllRefusedError: if no request was written.
    """
    locked_claims = lock_claims(transaction, requests)
    judge(transaction, locked_claims)
    if not locked_claims.accepted_requests:
        raise AllRefusedError(locked_claims.refusals)
    write_accepted(transaction, locked_claims)
    return locked_claims.refusals


def write(transaction: WriteTransaction, locked_claims: LockedClaims) -> None:
    """Judge and write the request of one client, or raise its refusal."""
    judge(transaction, locked_claims)
    locked_claims.raise_refusal()
    write_accepted(transaction, locked_claims)


def judge(transaction: WriteTransaction, locked_claims: LockedClaims) -> None:
    """Judge requests in order, each as if the earlier accepted ones were written."""
    for locked_request in locked_claims.accepted_requests:
        try:
            locked_request.new_allocations = _make_new_allocations(
                transaction, locked_request.request, locked_claims
            )
        except TreeclaimError as error:
            locked_request.refuse(error)
    new_allocations = locked_claims.new_allocations
    if locked_claims.is_consuming:
        locked_claims.consumption = _load_consumption(transaction, locked_claims, new_allocations)
    consumption = locked_claims.consumption if locked_claims.is_consuming else None
    ledger = Ledger(transaction, new_allocations, locked_claims.providers.values(), consumption)
    if ledger.has_conditions:
        providers_before = locked_claims.current_allocations.list_providers(
            uuid
            for locked_request in locked_claims.accepted_requests
            for uuid in locked_request.request.consumer_uuids
        )
        provider_ids = providers_before | {
            allocation.provider.id for allocation in new_allocations
        }
        consumed_provider_ids = list_consumed_providers(
            locked_claims.consumption, locked_claims.consumption
        )
        locked_claims.conditions.read(provider_ids | consumed_provider_ids)
    for locked_request in locked_claims.accepted_requests:
        try:
            _accept(ledger, locked_claims, locked_request)
        except TreeclaimError as error:
            locked_request.refuse(error)


def _load_consumption(
    transaction: WriteTransaction,
    locked_claims: LockedClaims,
    new_allocations: Sequence[NewAllocation],
) -> ConsumedAmounts:
    """Return the consumption by the inventories of new and replaced allocations."""
    keys = {allocation.key for allocation in new_allocations}
    ids = {provider_id for provider_id, _ in keys}
    for current_allocations in (
        locked_claims.current_allocations,
        locked_claims.holds.current_allocations,
    ):
        ids |= current_allocations.list_providers(current_allocations.by_consumer)
    consumption = load_consumption(transaction, ids)
    locked_ids = {
        provider.id for provider in locked_claims.providers.values()
    } | locked_claims.consumed_ids
    if not list_consumed_providers(consumption, keys) <= locked_ids:
        # Another transaction has added consumption since the locking.
        raise RetryTransactionError
    return consumption


def _accept(ledger: Ledger, locked_claims: LockedClaims, locked_request: LockedRequest) -> None:
    """Judge a request, and count it as written; raise its refusal."""
    request, book = locked_request.request, locked_claims.holds.book
    new_allocations = locked_request.new_allocations
    begun_conditions = locked_claims.conditions.judge(
        request, new_allocations, locked_claims.current_allocations, locked_claims.consumption
    )
    usage_before = locked_claims.current_allocations.sum_usage(request.consumer_uuids)
    if book.holds or any(claim.hold or claim.from_holds for claim in request.claims):
        book_after = book.apply(
            _make_changes(locked_claims, locked_request), is_reshape=request.is_reshape
        )
        held_units_before, held_units = book.compare(book_after, request.consumer_uuids)
        ledger.accept(
            new_allocations, usage_before + held_units_before, locked_claims.class_ids, held_units
        )
        locked_claims.holds.book = book_after
    else:
        ledger.accept(new_allocations, usage_before, locked_claims.class_ids)
    locked_claims.conditions.accept(begun_conditions)


def _make_changes(
    locked_claims: LockedClaims, locked_request: LockedRequest
) -> list[ConsumerChange]:
    amounts_after: defaultdict[str, dict[Key, int]] = defaultdict(dict)
    for allocation in locked_request.new_allocations:
        amounts_after[allocation.consumer_uuid][allocation.key] = allocation.used
    request, holds = locked_request.request, locked_claims.holds.book.holds
    return [
        ConsumerChange(
            consumer=claim.consumer_uuid,
            project_id=claim.project_id,
            amounts_before=locked_claims.current_allocations.sum_usage([claim.consumer_uuid]),
            amounts_after=amounts_after[claim.consumer_uuid],
            is_hold=claim.hold is not None or claim.consumer_uuid in holds,
            terms=claim.hold,
            sources=claim.from_holds,
            is_end=request.is_release and claim.consumer_uuid in holds,
        )
        for claim in request.claims
    ]


def require_providers(locked_claims: LockedClaims, request: ClaimRequest) -> None:
    """Raise `AllocationProviderNotFoundError` for the first unknown provider of a request."""
    for claim in request.claims:
        for uuid in claim.allocations:
            if uuid not in locked_claims.providers:
                raise AllocationProviderNotFoundError(uuid)


def _make_new_allocations(
    transaction: WriteTransaction, request: ClaimRequest, locked_claims: LockedClaims
) -> list[NewAllocation]:
    """Return the allocations of a request.

    Raises:
        AllocationProviderNotFoundError, ResourceClassNotFoundError: in this order.
    """
    claimed_amounts = [
        (claim.consumer_uuid, uuid, name, amount)
        for claim in request.claims
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    ]
    require_providers(locked_claims, request)
    for _, _, name, _ in claimed_amounts:
        if name not in locked_claims.class_ids:
            require_unchanged_ids(transaction, locked_claims.class_ids, [name])
            raise ResourceClassNotFoundError(name)
    holds = {claim.consumer_uuid for claim in request.claims if claim.hold is not None}
    holds.update(locked_claims.holds.book.original_holds)
    return [
        NewAllocation(
            consumer,
            locked_claims.providers[uuid],
            locked_claims.class_ids[name],
            name,
            amount,
            consumer in holds,
        )
        for consumer, uuid, name, amount in claimed_amounts
    ]


def write_accepted(transaction: WriteTransaction, locked_claims: LockedClaims) -> None:
    """Write the accepted requests, and delete the inserted rows of refused requests."""
    claims = [
        claim
        for locked_request in locked_claims.accepted_requests
        for claim in locked_request.request.claims
    ]
    uuids = [claim.consumer_uuid for claim in claims]
    _write_consumers(transaction, locked_claims, claims)
    _delete_allocations(transaction, locked_claims.current_allocations, uuids)
    insert_allocations(
        transaction,
        (
            (allocation.consumer_uuid, allocation.key, allocation.used)
            for allocation in locked_claims.new_allocations
        ),
    )
    new_terms = {claim.consumer_uuid: claim.hold for claim in claims if claim.hold is not None}
    if locked_claims.holds.book.original_holds or locked_claims.holds.stored_draws or new_terms:
        hold_writes.write(transaction, locked_claims.holds, uuids, new_terms)
    if locked_claims.kept_requests or any(
        claim.request is not Omission.OMITTED for claim in claims
    ):
        recorded_uuids = [
            claim.consumer_uuid for claim in claims if has_record(locked_claims, claim)
        ]
        kept_requests.write(transaction, claims, recorded_uuids, locked_claims.kept_requests)
    locked_claims.conditions.write()
    steps = _raise_generations(transaction, locked_claims)
    _record_usage(transaction, locked_claims, uuids, steps)


def has_record(locked_claims: LockedClaims, claim: ConsumerClaim) -> bool:
    """Return whether a consumer has a record after its claim; a hold may be empty."""
    return bool(claim.allocations) or claim.consumer_uuid in locked_claims.holds.book.holds


def _write_consumers(
    transaction: WriteTransaction, locked_claims: LockedClaims, claims: Sequence[ConsumerClaim]
) -> None:
    existing_claims = [claim for claim in claims if claim.consumer_uuid in locked_claims.consumers]
    kept_claims = [claim for claim in existing_claims if has_record(locked_claims, claim)]
    consumers.update(
        transaction,
        kept_claims,
        locked_claims.consumers,
        locked_claims.current_allocations,
        locked_claims.owner_ids,
        holds=locked_claims.holds.book.original_holds,
    )
    emptied_uuids = {
        claim.consumer_uuid for claim in existing_claims if not has_record(locked_claims, claim)
    }
    refused_uuids = locked_claims.inserted_uuids - {claim.consumer_uuid for claim in claims}
    consumers.delete(transaction, emptied_uuids | refused_uuids)


def _delete_allocations(
    transaction: WriteTransaction, current_allocations: CurrentAllocations, uuids: Sequence[str]
) -> None:
    """Delete exactly the allocations that were read, so that the feed records each provider."""
    if replaced_uuids := sorted(uuid for uuid in uuids if uuid in current_allocations.by_consumer):
        count = len(current_allocations.list_allocations(replaced_uuids))
        transaction.change(_DELETE, rows=count, uuids=replaced_uuids)


def _raise_generations(
    transaction: WriteTransaction, locked_claims: LockedClaims
) -> Mapping[int, int]:
    """Raise generations (section 1.2) by one for each request; return the increments by provider id."""
    ids = {provider.id for provider in locked_claims.providers.values()}
    steps: Counter[int] = Counter()
    for locked_request in locked_claims.accepted_requests:
        if locked_request.request.is_release:
            continue
        emptied_uuids = [
            claim.consumer_uuid for claim in locked_request.request.claims if not claim.allocations
        ]
        touched_ids = {allocation.provider.id for allocation in locked_request.new_allocations}
        touched_ids |= locked_claims.current_allocations.list_providers(emptied_uuids)
        steps.update(touched_ids & ids)
    raise_generations(transaction, locked_claims.providers.values(), steps)
    return steps


def _record_usage(
    transaction: WriteTransaction,
    locked_claims: LockedClaims,
    uuids: Sequence[str],
    steps: Mapping[int, int],
) -> None:
    usage_changes: defaultdict[int, Counter[int]] = defaultdict(
        Counter, {provider_id: Counter() for provider_id in steps}
    )
    for allocation in locked_claims.new_allocations:
        usage_changes[allocation.provider.id][allocation.class_id] += allocation.used
    for old_allocation in locked_claims.current_allocations.list_allocations(uuids):
        usage_changes[old_allocation.provider_id][old_allocation.class_id] -= old_allocation.used
    if locked_claims.consumption:
        changed_keys = set(locked_claims.current_allocations.sum_usage(uuids))
        changed_keys |= {allocation.key for allocation in locked_claims.new_allocations}
        consumed_provider_ids = list_consumed_providers(locked_claims.consumption, changed_keys)
        record_consumed(transaction, consumed_provider_ids - usage_changes.keys())
    generations = {
        provider.id: provider.generation for provider in locked_claims.providers.values()
    }
    for provider_id, amounts in usage_changes.items():
        step = steps.get(provider_id, 0)
        transaction.touch_usage(
            provider_id,
            UsageChange(
                amounts,
                step,
                generations[provider_id] if step else 0,
                to_timestamp(transaction.now),
            ),
        )
