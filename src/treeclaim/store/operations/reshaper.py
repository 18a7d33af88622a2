# SPDX-License-Identifier: Apache-2.0
"""Replaces inventories of several providers and claims of several consumers at once (contract page 75)."""

from collections.abc import Collection, Iterable, Sequence

from treeclaim.model.claim import ConsumerClaim, ReshapedInventory
from treeclaim.model.errors import ProviderNotFoundError
from treeclaim.model.extension.batch import BatchEntry, EntryFault
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
from treeclaim.store.operations.providers.part_writer import (
    Target,
    WriteRules,
    list_inventories,
    raise_first,
)

_RULES = WriteRules(least_capacity=None, rewrites_equal=True)


def reshape(
    transaction: WriteTransaction,
    reshaped_inventories: Sequence[ReshapedInventory],
    claims: Sequence[ConsumerClaim],
) -> None:
    """Replace inventories and claims, all or nothing.

    The order lets claims move to new inventories: inserts and updates of inventories, then claims, then
    deletions of inventories.

    Raises:
        ProviderNotFoundError: if a provider of `reshaped_inventories` does not exist.
        ProviderGenerationConflictError, ConsumerGenerationConflictError,
        AllocationProviderNotFoundError, ResourceClassNotFoundError, InventoryMissingError,
        UnitConstraintError, CapacityExceededError, InventoryInUseError, ConsumptionError.
    """
    locked_claims, targets = _lock(
        transaction, reshaped_inventories, ClaimRequest(claims, is_reshape=True)
    )
    providers = [target.row for target in targets]
    writer = InventoryWriter(transaction, targets, _RULES)
    problems: list[EntryFault] = []
    writer.look_up(problems)
    raise_first(problems)
    writer.plan()
    writer.judge_consumption(problems)
    raise_first(problems)
    writer.insert_and_update()
    nonempty_providers = [
        target.row for target in targets if target.entry.values[INVENTORIES.name]
    ]
    raise_generations(
        transaction, nonempty_providers, {provider.id: 1 for provider in nonempty_providers}
    )
    locked_claims.is_consuming |= writer.has_consumption
    claim_writes.write(transaction, locked_claims)
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
    transaction: WriteTransaction,
    reshaped_inventories: Sequence[ReshapedInventory],
    request: ClaimRequest,
) -> tuple[LockedClaims, list[Target]]:
    locked_claims: list[LockedClaims] = []

    def lock_providers_and_claims(
        transaction: WriteTransaction, provider_uuids: Collection[str], ids: Collection[int]
    ) -> Iterable[LockedProvider]:
        locked_claims.append(
            lock_claims(transaction, [request], provider_uuids=provider_uuids, provider_ids=ids)
        )
        return locked_claims[0].providers.values()

    entries = [
        BatchEntry(
            reshaped_inventory.provider_uuid,
            None,
            values={INVENTORIES.name: reshaped_inventory.inventories},
        )
        for reshaped_inventory in reshaped_inventories
    ]
    uuids = [reshaped_inventory.provider_uuid for reshaped_inventory in reshaped_inventories]
    new_inventories = list_inventories(entries)
    providers = consumption.lock_with_consumed(
        transaction, uuids, new_inventories, lock_providers_and_claims
    )
    for reshaped_inventory in reshaped_inventories:
        if reshaped_inventory.provider_uuid not in providers:
            raise ProviderNotFoundError(reshaped_inventory.provider_uuid)
        require_generation(
            providers[reshaped_inventory.provider_uuid], reshaped_inventory.generation
        )
    locked_claims[0].raise_refusal()
    claim_writes.require_providers(locked_claims[0], request)
    return locked_claims[0], [
        Target(index, entry, uuid, providers[uuid], is_new=False)
        for index, (uuid, entry) in enumerate(zip(uuids, entries, strict=True))
    ]
