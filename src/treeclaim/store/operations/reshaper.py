# SPDX-License-Identifier: Apache-2.0
"""Inventories of several providers and claims of several consumers at once (contract page 75)."""

from collections.abc import Mapping, Sequence

from treeclaim.model.claim import ConsumerClaim, ReshapedInventory
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.inventory import Inventory
from treeclaim.model.parts import Part
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations.locking import lock
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.locks.class_ids import locked_ids_of
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    raise_generation,
    require_generation,
)
from treeclaim.store.operations.providers import consumption, inventories


def reshape(
    transaction: WriteTransaction,
    reshaped: Sequence[ReshapedInventory],
    claims: Sequence[ConsumerClaim],
) -> None:
    """Replace inventories and claims in one step; all or nothing.

    First the inventories become the union of the present and the final ones, so that claims can
    move; then the claims are replaced; then the inventories become final.

    Raises:
        ProviderNotFoundError: if a provider of `reshaped` does not exist.
        ProviderGenerationConflictError, ConsumerGenerationConflictError,
        AllocationProviderNotFoundError, ResourceClassNotFoundError, InventoryMissingError,
        UnitConstraintError, CapacityExceededError, InventoryInUseError, ConsumptionError.
    """
    uuids = [inventory.provider_uuid for inventory in reshaped]
    request = ClaimRequest(claims, is_reshape=True)
    stock = [new for given in reshaped for new in given.inventories.values()]
    before = consumption.consumed_before(transaction, uuids, stock)
    named = {*uuids, *consumption.named_by(stock)}
    locked = lock(transaction, [request], named, also_ids=before)
    _require_current(reshaped, locked.providers)
    consumption.require_locked(
        transaction, [locked.providers[uuid].id for uuid in uuids], before, stock
    )
    locked.raise_refusal()
    claim_writes.require_providers(locked, request)
    final: list[tuple[LockedProvider, dict[int, Inventory]]] = []
    for given in reshaped:
        provider = locked.providers[given.provider_uuid]
        ids = locked_ids_of(transaction, given.inventories)
        final.append((provider, {ids[name]: new for name, new in given.inventories.items()}))
    for provider, new in final:
        if new:
            present = inventories.present_of(transaction, provider)
            inventories.add_or_update(transaction, provider, new, present)
            raise_generation(transaction, provider, Part.INVENTORIES | Part.ALLOCATIONS)
    written = {
        key
        for provider, new in final
        for key in inventories.write_consumption(transaction, provider, new)
    }
    locked.is_consuming |= bool(written)
    claim_writes.write(transaction, locked)
    gone = [inventories.set_all(transaction, provider, new) for provider, new in final]
    if written or any(gone):
        consumption.require_sound(transaction, {provider.id for provider, _ in final}, written)
    for provider, _ in final:
        raise_generation(transaction, provider, Part.INVENTORIES | Part.ALLOCATIONS)


def _require_current(
    reshaped: Sequence[ReshapedInventory], providers: Mapping[str, LockedProvider]
) -> None:
    for given in reshaped:
        if given.provider_uuid not in providers:
            raise ProviderNotFoundError(given.provider_uuid)
        require_generation(providers[given.provider_uuid], given.generation)
