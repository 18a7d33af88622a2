# SPDX-License-Identifier: Apache-2.0
"""Attributes of providers: replace (contract page 102, section 1)."""

import json
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from treeclaim.model.attributes import Attributes
from treeclaim.model.parts import Part
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.operations.locks.provider_rows import (
    lock_provider,
    raise_generation,
    require_generation,
)
from treeclaim.store.schema.tables import attributes

Texts = Mapping[str, str]
"""What is stored of a provider, by name."""

_PRESENT = sa.select(attributes).where(
    attributes.c.resource_provider_id.in_(sa.bindparam("ids", expanding=True))
)
_DELETE = sa.delete(attributes).where(
    attributes.c.resource_provider_id == sa.bindparam("of"),
    attributes.c.name == sa.bindparam("called"),
)
_INSERT = sa.insert(attributes)


def replace(
    transaction: WriteTransaction, provider_uuid: str, generation: int, values: Attributes
) -> int:
    """Replace the attributes of a provider; return its generation, which stays if they are equal.

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError.
    """
    provider = lock_provider(transaction, provider_uuid)
    require_generation(provider, generation)
    wanted = {provider.id: texts_of(values)}
    before = present(transaction, [provider.id])
    if wanted == before:
        return provider.generation
    change(transaction, before, wanted)
    return raise_generation(transaction, provider, Part.ATTRIBUTES)


def texts_of(values: Attributes) -> Texts:
    """Return what is to be stored: JSON of ASCII characters, which every database takes as text."""
    return {name: json.dumps(value) for name, value in values.items()}


def present(transaction: WriteTransaction, provider_ids: Sequence[int]) -> dict[int, Texts]:
    """Return what is stored of each of some providers."""
    found: dict[int, dict[str, str]] = {provider_id: {} for provider_id in provider_ids}
    for provider_id, name, text in transaction.rows(_PRESENT, ids=provider_ids):
        found[provider_id][name] = text
    return dict(found)


def change(
    transaction: WriteTransaction, before: Mapping[int, Texts], wanted: Mapping[int, Texts]
) -> None:
    """Write what differs, of locked providers, given what is stored and what is to be."""
    gone, new = [], []
    for provider_id, texts in sorted(wanted.items()):
        transaction.look()
        known = before[provider_id]
        gone += [
            {"of": provider_id, "called": name}
            for name in sorted(known)
            if texts.get(name) != known[name]
        ]
        new += [
            {"resource_provider_id": provider_id, "name": name, "value": texts[name]}
            for name in sorted(texts)
            if texts[name] != known.get(name)
        ]
    transaction.execute_each(_DELETE, gone)
    transaction.execute_each(_INSERT, new)
