# SPDX-License-Identifier: Apache-2.0
"""Traits, and the traits of providers (contract page 50)."""

from collections.abc import Iterable

import sqlalchemy as sa

from treeclaim.model.errors import StandardTraitError, TraitInUseError, TraitsNotFoundError
from treeclaim.model.names import CUSTOM_PREFIX
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
)
from treeclaim.store.operations.provider_rows import ProviderRow, bump, locked, require_generation
from treeclaim.store.schema.tables import resource_provider_traits, traits

_NAMED = sa.select(traits.c.id, traits.c.name).where(
    traits.c.name.in_(sa.bindparam("names", expanding=True))
)
_INSERT = sa.insert(traits)
_USED = sa.select(resource_provider_traits.c.resource_provider_id).where(
    resource_provider_traits.c.trait_id == sa.bindparam("trait_id")
)
_DELETE = sa.delete(traits).where(traits.c.id == sa.bindparam("trait_id"))
_OF_PROVIDER = sa.select(resource_provider_traits.c.trait_id).where(
    resource_provider_traits.c.resource_provider_id == sa.bindparam("provider_id")
)
_GIVE = sa.insert(resource_provider_traits)
_TAKE = sa.delete(resource_provider_traits).where(
    resource_provider_traits.c.resource_provider_id == sa.bindparam("provider_id"),
    resource_provider_traits.c.trait_id.in_(sa.bindparam("ids", expanding=True)),
)


def ensure(transaction: WriteTransaction, name: str) -> bool:
    """Create a trait if it does not exist (section 4); tell whether it was created."""
    if _ids(transaction, [name]):
        return False
    transaction.execute(_INSERT, name=name, created_at=transaction.now)
    transaction.touch_catalogue()
    return True


def delete(transaction: WriteTransaction, name: str) -> None:
    """Delete a custom trait (section 5).

    Raises:
        TraitsNotFoundError, StandardTraitError, TraitInUseError.
    """
    trait_id = _ids(transaction, [name]).get(name)
    if trait_id is None:
        raise TraitsNotFoundError([name])
    if not name.startswith(CUSTOM_PREFIX):
        raise StandardTraitError(name)
    if transaction.row(_USED, trait_id=trait_id) is not None:
        raise TraitInUseError(name)
    if transaction.execute(_DELETE, trait_id=trait_id).rowcount != 1:
        # Another one deleted it meanwhile.
        raise RetryTransactionError
    transaction.touch_catalogue()


def replace(
    transaction: WriteTransaction, provider_uuid: str, generation: int, names: Iterable[str]
) -> int:
    """Replace the traits of a provider (section 7); return its generation afterwards.

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError, TraitsNotFoundError.
    """
    provider = locked(transaction, provider_uuid)
    require_generation(provider, generation)
    wanted = set(names)
    ids = _ids(transaction, wanted)
    if missing := sorted(wanted - ids.keys()):
        raise TraitsNotFoundError(missing)
    return _set(transaction, provider, set(ids.values()))


def clear(transaction: WriteTransaction, provider_uuid: str) -> None:
    """Remove all traits of a provider (section 8).

    Raises:
        ProviderNotFoundError.
    """
    _set(transaction, locked(transaction, provider_uuid), set())


def _set(transaction: WriteTransaction, provider: ProviderRow, wanted: set[int]) -> int:
    present = {row[0] for row in transaction.rows(_OF_PROVIDER, provider_id=provider.id)}
    if wanted == present:
        return provider.generation
    if present - wanted:
        transaction.execute(_TAKE, provider_id=provider.id, ids=sorted(present - wanted))
    transaction.execute_each(
        _GIVE,
        (
            {
                "trait_id": one,
                "resource_provider_id": provider.id,
                "created_at": transaction.now,
            }
            for one in sorted(wanted - present)
        ),
    )
    return bump(transaction, provider)


def _ids(transaction: ReadTransaction, names: Iterable[str]) -> dict[str, int]:
    wanted = sorted(names)
    if not wanted:
        return {}
    return {row.name: row.id for row in transaction.rows(_NAMED, names=wanted)}
