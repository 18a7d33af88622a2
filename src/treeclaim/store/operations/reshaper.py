# SPDX-License-Identifier: Apache-2.0
"""Inventories of several providers and claims of several consumers at once (contract page 75)."""

from collections.abc import Mapping, Sequence

from treeclaim.model.claim import ConsumerClaim, ReshapedInventory
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.inventory import Inventory
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations import allocations, inventories
from treeclaim.store.operations.class_ids import held_ids_of
from treeclaim.store.operations.provider_rows import ProviderRow, bump, require_generation


def reshape(
    transaction: WriteTransaction,
    reshaped: Sequence[ReshapedInventory],
    claims: Sequence[ConsumerClaim],
) -> None:
    """Replace inventories and claims in one step; all or nothing.

    First every inventory is what was there overlaid with what will be, so that claims can move;
    then the claims are replaced; then the inventories become final.

    Raises:
        ProviderNotFoundError: if a provider of `reshaped` does not exist.
        ProviderGenerationConflictError, ConsumerGenerationConflictError,
        AllocationProviderNotFoundError, ResourceClassNotFoundError, InventoryMissingError,
        UnitConstraintError, CapacityExceededError, InventoryInUseError.
    """
    prepared = allocations.prepare(transaction, claims, [one.provider_uuid for one in reshaped])
    _require_current(reshaped, prepared.providers)
    allocations.require_known(prepared)
    final: list[tuple[ProviderRow, dict[int, Inventory]]] = []
    for one in reshaped:
        provider = prepared.providers[one.provider_uuid]
        ids = held_ids_of(transaction, one.inventories)
        final.append((provider, {ids[name]: new for name, new in one.inventories.items()}))
    for provider, new in final:
        if new:
            present = inventories.class_ids_of(transaction, provider)
            inventories.add_or_update(transaction, provider, new, present)
            bump(transaction, provider)
    allocations.carry_out(transaction, prepared)
    for provider, new in final:
        inventories.set_all(transaction, provider, new)
        bump(transaction, provider)


def _require_current(
    reshaped: Sequence[ReshapedInventory], providers: Mapping[str, ProviderRow]
) -> None:
    for one in reshaped:
        if one.provider_uuid not in providers:
            raise ProviderNotFoundError(one.provider_uuid)
        require_generation(providers[one.provider_uuid], one.generation)
