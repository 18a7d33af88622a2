# SPDX-License-Identifier: Apache-2.0
"""Traits as names: create and delete (contract page 50, sections 4 and 5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from treeclaim.model.errors import ConflictError, InvalidValueError, TraitsNotFoundError
from treeclaim.model.names import CUSTOM_PREFIX
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    to_timestamp,
)
from treeclaim.store.schema.tables import traits

_SELECT_NAMED = "SELECT id, name, updated_at, created_at FROM traits WHERE name IN :names"
_INSERT = compile_insert(traits)
_SELECT_USE = """
SELECT resource_provider_id FROM resource_provider_traits WHERE trait_id = :trait_id LIMIT 1
"""
_DELETE = "DELETE FROM traits WHERE id = :trait_id"


@dataclass(frozen=True, slots=True)
class TraitRow:
    """A trait; `modified_at` is its last change in seconds since the epoch, 0 if unknown."""

    id: int = field(compare=False, repr=False)
    modified_at: float = field(compare=False, repr=False)


def ensure(transaction: WriteTransaction, name: str) -> TraitRow | None:
    """Create a trait (section 4); return the existing one if it exists, else None."""
    existing_trait = find_traits(transaction, [name]).get(name)
    if existing_trait is None:
        transaction.execute(_INSERT, name=name, created_at=transaction.now)
        transaction.touch_catalogue()
    return existing_trait


def delete(transaction: WriteTransaction, name: str) -> None:
    """Delete a custom trait (section 5).

    Raises:
        TraitsNotFoundError: for an unknown trait.
        InvalidValueError: for a standard trait.
        ConflictError: if a provider has the trait.
    """
    trait = find_traits(transaction, [name]).get(name)
    if trait is None:
        raise TraitsNotFoundError([name])
    if not name.startswith(CUSTOM_PREFIX):
        raise InvalidValueError(f"Cannot delete standard trait {name}.")
    if transaction.row(_SELECT_USE, trait_id=trait.id) is not None:
        raise ConflictError(f"The trait {name} is in use by a resource provider.")
    if transaction.execute(_DELETE, trait_id=trait.id).rowcount != 1:
        # A concurrent transaction has deleted it.
        raise RetryTransactionError
    transaction.touch_catalogue()


def find_traits(transaction: ReadTransaction, names: Iterable[str]) -> Mapping[str, TraitRow]:
    """Return the traits that exist, by name."""
    return {
        row.name: TraitRow(row.id, to_timestamp(row.updated_at, row.created_at))
        for row in transaction.rows_in_chunks(_SELECT_NAMED, names=sorted(names))
    }
