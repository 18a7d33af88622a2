# SPDX-License-Identifier: Apache-2.0
"""Traits of providers: replace and clear (contract page 50, sections 7 and 8)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import sqlalchemy as sa

from treeclaim.model.errors import TraitsNotFoundError
from treeclaim.model.parts import Part
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.catalogue.traits import traits_named
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    lock_provider,
    raise_generation,
    require_generation,
)
from treeclaim.store.schema.tables import resource_provider_traits

_PRESENT = CompiledStatement(
    sa.select(resource_provider_traits.c.trait_id).where(
        resource_provider_traits.c.resource_provider_id == sa.bindparam("provider_id")
    )
)
_INSERT = sa.insert(resource_provider_traits)
_DELETE = sa.delete(resource_provider_traits).where(
    resource_provider_traits.c.resource_provider_id == sa.bindparam("provider_id"),
    resource_provider_traits.c.trait_id.in_(sa.bindparam("ids", expanding=True)),
)


@dataclass(frozen=True, slots=True)
class ReplacedTraits:
    """The traits of a provider after a write.

    Attributes:
        generation: The generation of the provider.
        modified_at: Newest change of one of its traits, in seconds since the epoch; 0 if it has
            none, or none with a known time.
    """

    generation: int
    modified_at: float = field(compare=False, repr=False)


def replace(
    transaction: WriteTransaction, provider_uuid: str, generation: int, names: Iterable[str]
) -> ReplacedTraits:
    """Replace the traits of a provider (section 7).

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError, TraitsNotFoundError.
    """
    provider = lock_provider(transaction, provider_uuid)
    require_generation(provider, generation)
    wanted = set(names)
    found = traits_named(transaction, wanted)
    if missing := sorted(wanted - found.keys()):
        raise TraitsNotFoundError(missing)
    return ReplacedTraits(
        generation=_set(transaction, provider, {trait.id for trait in found.values()}),
        modified_at=max((trait.modified_at for trait in found.values()), default=0.0),
    )


def clear(transaction: WriteTransaction, provider_uuid: str) -> None:
    """Remove all traits of a provider (section 8).

    Raises:
        ProviderNotFoundError.
    """
    _set(transaction, lock_provider(transaction, provider_uuid), set())


def _set(transaction: WriteTransaction, provider: LockedProvider, wanted: set[int]) -> int:
    """Replace a provider's traits; return its generation, which stays if the traits are equal."""
    present = {row[0] for row in transaction.rows(_PRESENT, provider_id=provider.id)}
    if wanted == present:
        return provider.generation
    if present - wanted:
        transaction.execute(_DELETE, provider_id=provider.id, ids=sorted(present - wanted))
    transaction.execute_each(
        _INSERT,
        (
            {
                "trait_id": trait_id,
                "resource_provider_id": provider.id,
                "created_at": transaction.now,
            }
            for trait_id in sorted(wanted - present)
        ),
    )
    return raise_generation(transaction, provider, Part.TRAITS)
