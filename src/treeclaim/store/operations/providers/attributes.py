# SPDX-License-Identifier: Apache-2.0
"""Attributes of providers (contract page 102, section 1)."""

import json
from collections.abc import Mapping

import sqlalchemy as sa

from treeclaim.model.attributes import Attributes
from treeclaim.model.parts import ATTRIBUTES
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import WriteTransaction, chunks
from treeclaim.store.operations.providers.part_writer import (
    AT_ONCE,
    PartWriter,
    WriteRules,
    write_part,
)
from treeclaim.store.schema.tables import attributes

_PRESENT = CompiledStatement(
    sa.select(attributes).where(
        attributes.c.resource_provider_id.in_(sa.bindparam("ids", expanding=True))
    )
)
_DELETE = sa.delete(attributes).where(
    attributes.c.resource_provider_id == sa.bindparam("of"),
    attributes.c.name == sa.bindparam("called"),
)
_INSERT = sa.insert(attributes)


class AttributeWriter(PartWriter):
    """Writes attributes as JSON of ASCII characters, which every database stores as text."""

    part = ATTRIBUTES

    def write(self) -> None:
        """Write the attributes that differ."""
        for some_targets in chunks(self._targets, AT_ONCE):
            stored = self._load([target.row.id for target in some_targets])
            deleted, inserted = [], []
            for target in some_targets:
                self._transaction.look()
                before, provider_id = stored[target.row.id], target.row.id
                value: Attributes = self._value(target)
                after = {name: json.dumps(value[name]) for name in sorted(value)}
                if before == after:
                    continue
                target.changed.append(self.part.name)
                deleted += [
                    {"of": provider_id, "called": name}
                    for name in sorted(before)
                    if after.get(name) != before[name]
                ]
                inserted += [
                    {"resource_provider_id": provider_id, "name": name, "value": text}
                    for name, text in after.items()
                    if text != before.get(name)
                ]
            self._transaction.execute_each(_DELETE, deleted)
            self._transaction.execute_each(_INSERT, inserted)

    def _load(self, provider_ids: list[int]) -> Mapping[int, Mapping[str, str]]:
        stored: dict[int, dict[str, str]] = {provider_id: {} for provider_id in provider_ids}
        for provider_id, name, text in self._transaction.rows(_PRESENT, ids=provider_ids):
            stored[provider_id][name] = text
        return dict(stored)


def replace(
    transaction: WriteTransaction, provider_uuid: str, generation: int, values: Attributes
) -> int:
    """Replace the attributes of a provider; return its generation, which stays if they are equal.

    Raises:
        ProviderNotFoundError, ProviderGenerationConflictError.
    """
    return write_part(
        transaction,
        AttributeWriter,
        provider_uuid,
        values,
        generation=generation,
        rules=WriteRules(),
    ).generation
