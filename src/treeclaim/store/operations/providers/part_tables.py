# SPDX-License-Identifier: Apache-2.0
"""Traits, aggregates and attributes of providers.

Contract page 50, sections 7 and 8; page 40; page 102, section 1.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa

from treeclaim.model.errors import TraitsNotFoundError
from treeclaim.model.extension.batches.batch import EntryFault
from treeclaim.model.names import is_custom_name
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, TRAITS
from treeclaim.store.database.compiled import CompiledStatement, bind_list, compile_insert
from treeclaim.store.database.transactions import RetryTransactionError, WriteTransaction, chunks
from treeclaim.store.operations.catalogue import traits
from treeclaim.store.operations.locks.lock_rows import (
    AGGREGATE,
    PARTS,
    share_row_locks,
    take_lock_rows,
)
from treeclaim.store.operations.providers.part_writer import (
    AT_ONCE,
    PartWriter,
    Target,
)
from treeclaim.store.schema.tables import (
    attributes,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
)

# Locked, because a repair of an audit may delete an aggregate without providers.
_AGGREGATES = share_row_locks(
    sa.select(placement_aggregates.c.id, placement_aggregates.c.uuid)
    .where(placement_aggregates.c.uuid.in_(bind_list("uuids")))
    .order_by(placement_aggregates.c.id)
)
_INSERT_AGGREGATE = sa.insert(placement_aggregates)


class TableStatements:
    """Statements for rows of providers, which have a key, and perhaps a value."""

    def __init__(self, key: sa.Column[Any], value: sa.Column[Any] | None = None) -> None:
        table = key.table
        columns = [key] if value is None else [key, value]
        self.column_names = [column.name for column in columns]
        self.has_time = "created_at" in table.c
        self.present = CompiledStatement(
            sa.select(table.c.resource_provider_id, *columns).where(
                table.c.resource_provider_id.in_(bind_list("ids"))
            )
        )
        self.insert = compile_insert(table)
        self.delete = CompiledStatement(
            sa.delete(table).where(
                table.c.resource_provider_id == sa.bindparam("provider_id"),
                key.in_(bind_list("keys")),
            )
        )


class _RowWriter(PartWriter):
    """Writes a part that is a table with rows of providers: a key, and perhaps a value."""

    statements: ClassVar[TableStatements]

    def rows_of(self, target: Target) -> set[tuple[Any, ...]]:
        """Return the rows that a provider is to have."""
        raise NotImplementedError

    def write(self) -> None:
        inserted: list[dict[str, Any]] = []
        time = {"created_at": self._transaction.now} if self.statements.has_time else {}
        for targets in chunks(self._targets, AT_ONCE):
            stored = self._load(targets)
            for target in targets:
                self._transaction.check_deadline()
                provider_id = target.row.id
                before, after = stored[provider_id], self.rows_of(target)
                if before == after:
                    continue
                target.changed.append(self.part.name)
                if deleted := sorted({key for key, *_ in before - after}):
                    self._transaction.change(
                        self.statements.delete, provider_id=provider_id, keys=deleted
                    )
                inserted += [
                    {
                        "resource_provider_id": provider_id,
                        **dict(zip(self.statements.column_names, row, strict=True)),
                        **time,
                    }
                    for row in sorted(after - before)
                ]
        self._transaction.change_each(self.statements.insert, inserted)

    def _load(self, targets: Sequence[Target]) -> Mapping[int, set[tuple[Any, ...]]]:
        stored: defaultdict[int, set[tuple[Any, ...]]] = defaultdict(set)
        if existing := [target.row.id for target in targets if not target.is_new]:
            for provider_id, *row in self._transaction.rows(self.statements.present, ids=existing):
                stored[provider_id].add(tuple(row))
        return stored


class AttributeWriter(_RowWriter):
    """Writes attributes as JSON of ASCII characters, which every database stores as text."""

    part = ATTRIBUTES
    statements = TableStatements(attributes.c.name, attributes.c.value)

    def rows_of(self, target: Target) -> set[tuple[Any, ...]]:
        """Return names and JSON of the attributes."""
        return {(name, json.dumps(value)) for name, value in self._value(target).items()}


class TraitWriter(_RowWriter):
    """Writes traits of providers."""

    part = TRAITS
    statements = TableStatements(resource_provider_traits.c.trait_id)

    def create_names(self) -> None:
        """Create missing custom traits."""
        existing_traits = traits.traits_named(self._transaction, self._names)
        for name in sorted(filter(is_custom_name, self._names - existing_traits.keys())):
            traits.ensure(self._transaction, name)

    def look_up(self, problems: list[EntryFault]) -> None:
        """Look up the traits; add a problem for each target with missing traits."""
        self.traits = traits.traits_named(self._transaction, self._names)
        self.modified_at = max((row.modified_at for row in self.traits.values()), default=0.0)
        for target in self._targets:
            self._transaction.check_deadline()
            missing = sorted(set(self._value(target)) - self.traits.keys())
            if missing:
                problems.append(EntryFault(target.index, TraitsNotFoundError(missing)))

    def rows_of(self, target: Target) -> set[tuple[Any, ...]]:
        """Return the ids of the traits."""
        return {(self.traits[name].id,) for name in self._value(target)}


class AggregateWriter(_RowWriter):
    """Writes aggregates of providers, and creates those that do not exist."""

    part = AGGREGATES
    statements = TableStatements(resource_provider_aggregates.c.aggregate_id)

    def write(self) -> None:
        """Create missing aggregates, then write the links."""
        self._ids = _ensure_aggregates(self._transaction, sorted(self._names))
        take_lock_rows(self._transaction, PARTS, [target.row.id for target in self._targets])
        super().write()

    def rows_of(self, target: Target) -> set[tuple[Any, ...]]:
        """Return the ids of the aggregates."""
        return {(self._ids[uuid],) for uuid in self._value(target)}


def _ensure_aggregates(transaction: WriteTransaction, uuids: Sequence[str]) -> Mapping[str, int]:
    """Return the ids of aggregates, locked; create those that do not exist."""
    if not uuids:
        return {}
    id_by_uuid = {row.uuid: row.id for row in transaction.rows_in_chunks(_AGGREGATES, uuids=uuids)}
    take_lock_rows(transaction, AGGREGATE, id_by_uuid.values())
    return {
        uuid: id_by_uuid[uuid] if uuid in id_by_uuid else _ensure_aggregate(transaction, uuid)
        for uuid in uuids
    }


def _ensure_aggregate(transaction: WriteTransaction, uuid: str) -> int:
    """Return the id of an aggregate that does not exist in exactly this spelling.

    Where the collation of the database equates two spellings, they name the same aggregate.

    Raises:
        RetryTransactionError: if the database returned no id.
    """
    for row in transaction.rows(_AGGREGATES, uuids=[uuid]):
        return int(row.id)
    result = transaction.execute(_INSERT_AGGREGATE, uuid=uuid, created_at=transaction.now)
    if not result.inserted_primary_key:
        raise RetryTransactionError
    return int(result.inserted_primary_key[0])
