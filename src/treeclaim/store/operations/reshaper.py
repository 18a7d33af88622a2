# SPDX-License-Identifier: Apache-2.0
"""Replaces inventories of several providers and claims of several consumers at once (contract page 75)."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from treeclaim.model.claim import ConsumerClaim, ReshapedInventory
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.extension.batches.batch import BatchEntry, EntryFault
from treeclaim.model.parts import INVENTORIES, Part
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations.locking import LockedClaims, lock_claims
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    raise_generations,
    require_generation,
)
from treeclaim.store.operations.providers import consumption
from treeclaim.store.operations.providers.inventories import InventoryWriter
from treeclaim.store.operations.providers.part_writer import Target, WriteRules, raise_first

_RULES = WriteRules(least_capacity=None, rewrites_equal=True)


def reshape(
    transaction: WriteTransaction,
    reshaped: Sequence[ReshapedInventory],
    claims: Sequence[ConsumerClaim],
) -> None:
    """Replace inventories and claims in one step; all or nothing.

    It inserts and updates inventories, so that claims can move; then it replaces the claims; then it
    deletes the other inventories.

    Raises:
        ProviderNotFoundError: if a provider of `reshaped` does not exist.
        ProviderGenerationConflictError, ConsumerGenerationConflictError,
        AllocationProviderNotFoundError, ResourceClassNotFoundError, InventoryMissingError,
        UnitConstraintError, CapacityExceededError, InventoryInUseError, ConsumptionError.
    """
    request = ClaimRequest(claims, is_reshape=True)
    locked, providers = _lock(transaction, reshaped, request)
    writer = InventoryWriter(transaction, _targets(reshaped, providers), _RULES)
    problems: list[EntryFault] = []
    writer.look_up(problems)
    raise_first(problems)
    writer.plan()
    writer.judge_consumption(problems)
    raise_first(problems)
    writer.insert_and_update()
    nonempty = [
        provider
        for provider, reshaped_inventory in zip(providers, reshaped, strict=True)
        if reshaped_inventory.inventories
    ]
    raise_generations(transaction, nonempty, {provider.id: 1 for provider in nonempty})
    locked.is_consuming |= writer.states_consumption
    claim_writes.write(transaction, locked)
    writer.judge_deletions(problems)
    raise_first(problems)
    writer.delete()
    writer.check(problems, ())
    raise_first(problems)
    raise_generations(transaction, providers, {provider.id: 1 for provider in providers})
    transaction.touch_providers(
        [provider.id for provider in providers], Part.INVENTORIES | Part.ALLOCATIONS
    )


def _lock(
    transaction: WriteTransaction, reshaped: Sequence[ReshapedInventory], request: ClaimRequest
) -> tuple[LockedClaims, list[LockedProvider]]:
    """Lock the consumers and providers of a reshape; return the claims, and the reshaped providers."""
    locked: list[LockedClaims] = []

    def lock_providers_and_claims(
        transaction: WriteTransaction, named: Collection[str], ids: Collection[int]
    ) -> Iterable[LockedProvider]:
        locked.append(lock_claims(transaction, [request], provider_uuids=named, provider_ids=ids))
        return locked[0].providers.values()

    stock = [
        new for reshaped_inventory in reshaped for new in reshaped_inventory.inventories.values()
    ]
    uuids = [reshaped_inventory.provider_uuid for reshaped_inventory in reshaped]
    providers = consumption.lock_all(transaction, uuids, stock, lock_providers_and_claims)
    _require_current(reshaped, providers)
    locked[0].raise_refusal()
    claim_writes.require_providers(locked[0], request)
    return locked[0], [providers[uuid] for uuid in uuids]


def _targets(
    reshaped: Sequence[ReshapedInventory], providers: Sequence[LockedProvider]
) -> list[Target]:
    return [
        Target(
            index,
            BatchEntry(
                provider.uuid, None, values={INVENTORIES.name: reshaped_inventory.inventories}
            ),
            provider.uuid,
            provider,
            is_new=False,
        )
        for index, (reshaped_inventory, provider) in enumerate(
            zip(reshaped, providers, strict=True)
        )
    ]


def _require_current(
    reshaped: Sequence[ReshapedInventory], providers: Mapping[str, LockedProvider]
) -> None:
    for reshaped_inventory in reshaped:
        if reshaped_inventory.provider_uuid not in providers:
            raise ProviderNotFoundError(reshaped_inventory.provider_uuid)
        require_generation(
            providers[reshaped_inventory.provider_uuid], reshaped_inventory.generation
        )
