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
from treeclaim.store.operations.providers import inventories


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
        UnitConstraintError, CapacityExceededError, InventoryInUseError.
    """
    uuids = [inventory.provider_uuid for inventory in reshaped]
    request = ClaimRequest(claims, is_reshape=True)
    locked = lock(transaction, [request], uuids)
    _require_current(reshaped, locked.providers)
    locked.raise_refusal()
    claim_writes.require_providers(locked, request)
    final: list[tuple[LockedProvider, dict[int, Inventory]]] = []
    for given in reshaped:
        provider = locked.providers[given.provider_uuid]
        ids = locked_ids_of(transaction, given.inventories)
        final.append((provider, {ids[name]: new for name, new in given.inventories.items()}))
    for provider, new in final:
        if new:
            present = inventories.class_ids_of(transaction, provider)
            inventories.add_or_update(transaction, provider, new, present)
            raise_generation(transaction, provider, Part.INVENTORIES | Part.ALLOCATIONS)
    claim_writes.write(transaction, locked)
    for provider, new in final:
        inventories.set_all(transaction, provider, new)
        raise_generation(transaction, provider, Part.INVENTORIES | Part.ALLOCATIONS)


def _require_current(
    reshaped: Sequence[ReshapedInventory], providers: Mapping[str, LockedProvider]
) -> None:
    for given in reshaped:
        if given.provider_uuid not in providers:
            raise ProviderNotFoundError(given.provider_uuid)
        require_generation(providers[given.provider_uuid], given.generation)
