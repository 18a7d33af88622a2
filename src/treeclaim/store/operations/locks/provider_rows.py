# SPDX-License-Identifier: Apache-2.0
"""Locked rows of providers, and their generations."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.model.errors import ProviderGenerationConflictError, ProviderNotFoundError
from treeclaim.store.database.transactions import NAMES_PER_STATEMENT, WriteTransaction, chunks

_COLUMNS = """
SELECT id, uuid, name, generation, parent_provider_id, root_provider_id FROM resource_providers
"""
_LOCK_IN_ORDER = f"{_COLUMNS} WHERE uuid IN :uuids OR id IN :ids ORDER BY id FOR UPDATE"
_IDS = "SELECT id FROM resource_providers WHERE uuid IN :uuids"
_LOCK_ROOTS = "SELECT id FROM resource_providers WHERE id IN :ids ORDER BY id FOR UPDATE"
_RAISE = """
UPDATE resource_providers SET generation = COALESCE(generation, 0) + :step, updated_at = :at
WHERE id IN :ids
"""


@dataclass(slots=True)
class LockedProvider:
    """A provider with a locked row; `generation` includes the increments of this transaction."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int


def lock_provider(transaction: WriteTransaction, uuid: str) -> LockedProvider:
    """Lock the provider with exactly this UUID; raise `ProviderNotFoundError` if none exists."""
    for provider in lock_providers(transaction, [uuid]):
        # Some collations also match other spellings.
        if provider.uuid == uuid:
            return provider
    raise ProviderNotFoundError(uuid)


def lock_providers(
    transaction: WriteTransaction, uuids: Collection[str], ids: Collection[int] = ()
) -> list[LockedProvider]:
    """Lock the existing ones of these providers, in ascending order of ids, as all writes do."""
    if len(uuids) + len(ids) <= NAMES_PER_STATEMENT:
        rows = transaction.rows(_LOCK_IN_ORDER, uuids=sorted(uuids), ids=sorted(ids))
        return [_provider(row) for row in rows]
    id_rows = transaction.rows_in_chunks(_IDS, uuids=sorted(uuids))
    sorted_ids = sorted({*ids, *(row.id for row in id_rows)})
    return [
        _provider(row)
        for batch in chunks(sorted_ids, NAMES_PER_STATEMENT)
        for row in transaction.rows(_LOCK_IN_ORDER, uuids=[], ids=batch)
    ]


def lock_shapes(transaction: WriteTransaction, roots: Collection[int]) -> None:
    """Lock the shape of trees, given the ids of their roots.

    Without the lock, two concurrent moves could create a cycle that neither of them sees.
    """
    transaction.rows(_LOCK_ROOTS, ids=sorted(roots))


def require_generation(provider: LockedProvider, expected_generation: int) -> None:
    """Raise `ProviderGenerationConflictError` unless a provider has the expected generation."""
    if provider.generation != expected_generation:
        raise ProviderGenerationConflictError(
            provider.uuid, actual=provider.generation, given=expected_generation
        )


def raise_generations(
    transaction: WriteTransaction,
    providers: Iterable[LockedProvider],
    steps: Mapping[int, int],
) -> None:
    """Raise the generations of locked providers by `steps`, by provider id; the caller records them for the feed."""
    ids_by_step: dict[int, list[int]] = defaultdict(list)
    for provider in providers:
        if provider.id in steps:
            ids_by_step[steps[provider.id]].append(provider.id)
            provider.generation += steps[provider.id]
    for step, ids in sorted(ids_by_step.items()):
        transaction.change(_RAISE, rows=len(ids), ids=sorted(ids), step=step, at=transaction.now)


def _provider(row: Any) -> LockedProvider:
    return LockedProvider(
        id=row.id,
        uuid=row.uuid,
        name=row.name or "",
        generation=row.generation or 0,
        parent_id=row.parent_provider_id,
        root_id=row.id if row.root_provider_id is None else row.root_provider_id,
    )
