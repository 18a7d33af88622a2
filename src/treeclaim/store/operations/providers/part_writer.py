# SPDX-License-Identifier: Apache-2.0
"""Writers of the parts of providers, and the rules by which a URL of one provider differs from a batch.

A writer looks up, judges and writes one part for all providers of a call. This module has the writers of traits
(contract page 50, sections 7 and 8), aggregates (page 40) and attributes (page 102, section 1).
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import sqlalchemy as sa

from treeclaim.model import parts
from treeclaim.model.errors import TraitsNotFoundError
from treeclaim.model.extension import batch
from treeclaim.model.extension.batch import (
    MOST_PROBLEMS,
    BatchEntry,
    BatchRefusedError,
    EntryFault,
)
from treeclaim.model.names import is_custom_name
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, INVENTORIES, TRAITS, Part, ProviderPart
from treeclaim.model.provider import Inventory
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.database.transactions import WriteTransaction, chunks
from treeclaim.store.operations.catalogue import traits
from treeclaim.store.operations.locks.provider_rows import (
    LockedProvider,
    raise_generations,
)
from treeclaim.store.schema.tables import (
    attributes,
    placement_aggregates,
    resource_provider_aggregates,
    resource_provider_traits,
)

Target = batch.Target[LockedProvider]
"""An entry and its provider."""

PROVIDERS_PER_STATEMENT = 100
"""Providers in a statement that reads a part. Each may have hundreds of rows, and the deadline is checked between
statements."""

_FEED_PARTS = {part.name: int(part.news_part) for part in parts.PARTS}


class GenerationRule(Enum):
    """When a write raises the generation of a provider."""

    IF_CHANGED = "if changed"
    ALWAYS = "always"
    NEVER = "never"


class InventoryScope(Enum):
    """The inventories of a provider that a write concerns."""

    ALL = "all"
    """All inventories; the write deletes inventories that it does not name."""
    MISSING = "missing"
    """The named inventories, which must not exist."""
    PRESENT = "present"
    """The named inventories, which must exist."""


@dataclass(frozen=True, slots=True)
class WriteRules:
    """Rules by which a URL of one provider differs from a batch (contract page 99, section 8).

    Attributes:
        least_capacity: Minimum capacity of an inventory; None for any.
        rewrites_equal: Whether an equal inventory, name or parent gets a new `updated_at`.
        may_reparent: Whether the parent of a provider with a parent may change.
        is_batch: Whether all problems are reported together, instead of only the first one.
    """

    generation: GenerationRule = GenerationRule.IF_CHANGED
    least_capacity: int | None = 0
    scope: InventoryScope = InventoryScope.ALL
    rewrites_equal: bool = False
    may_reparent: bool = True
    is_batch: bool = False


class PartWriter:
    """Writes one part of the providers of a call.

    `write_targets` calls the methods in the order of their definitions, each for all parts. After a problem it
    writes nothing.

    Attributes:
        modified_at: Last change of a named trait, in seconds since the epoch; 0 if unknown.
    """

    part: ClassVar[ProviderPart[Any]]
    modified_at = 0.0

    def __init__(
        self,
        transaction: WriteTransaction,
        targets: Sequence[Target],
        rules: WriteRules,
    ) -> None:
        self._transaction = transaction
        self._rules = rules
        self._all_targets = targets
        self._targets = [target for target in targets if self.part.name in target.entry.values]
        self._names = {name for target in self._targets for name in self._value(target)}

    def _value(self, target: Target) -> Any:
        return target.entry.values[self.part.name]

    def create_names(self) -> None:
        """Create missing custom names."""

    def look_up(self, problems: list[EntryFault]) -> None:
        """Look up the ids of names; add a problem for each missing name."""

    def judge(self, problems: list[EntryFault]) -> None:
        """Add a problem for each value that violates a rule; the providers have their new parents already."""

    def write(self) -> None:
        """Write the differences, and add the part to `changed` of each differing target."""
        raise NotImplementedError

    def check(self, problems: list[EntryFault], moved_ids: Collection[int]) -> None:
        """Add a problem for each violated rule of the written rows and of the moved providers, given by id."""


# Locked, because an audit's repair may delete an aggregate without providers.
_AGGREGATES = """
SELECT id, uuid FROM placement_aggregates WHERE uuid IN :uuids ORDER BY id FOR KEY SHARE
"""
_INSERT_AGGREGATE = compile_insert(placement_aggregates)


class TableStatements:
    """Statements for a part that is stored as rows with a key and perhaps a value."""

    def __init__(self, key: sa.Column[Any], value: sa.Column[Any] | None = None) -> None:
        table = key.table
        columns = [key] if value is None else [key, value]
        self.column_names = [column.name for column in columns]
        self.has_time = "created_at" in table.c
        names = ", ".join(self.column_names)
        self.select_existing = f"""
            SELECT resource_provider_id, {names} FROM {table.name} WHERE resource_provider_id IN :ids
        """
        self.insert = compile_insert(table)
        self.delete = f"""
            DELETE FROM {table.name}
            WHERE resource_provider_id = :provider_id AND {key.name} IN :keys
        """


class _RowWriter(PartWriter):
    statements: ClassVar[TableStatements]

    def make_rows(self, target: Target) -> set[tuple[Any, ...]]:
        """Return the new rows of a provider."""
        raise NotImplementedError

    def write(self) -> None:
        inserted_rows: list[dict[str, Any]] = []
        time = {"created_at": self._transaction.now} if self.statements.has_time else {}
        for targets in chunks(self._targets, PROVIDERS_PER_STATEMENT):
            stored_rows = self._load(targets)
            for target in targets:
                self._transaction.check_deadline()
                provider_id = target.row.id
                rows_before, rows_after = stored_rows[provider_id], self.make_rows(target)
                if rows_before == rows_after:
                    continue
                target.changed.append(self.part.name)
                if deleted_keys := sorted({key for key, *_ in rows_before - rows_after}):
                    self._transaction.change(
                        self.statements.delete, provider_id=provider_id, keys=deleted_keys
                    )
                inserted_rows += [
                    {
                        "resource_provider_id": provider_id,
                        **dict(zip(self.statements.column_names, row, strict=True)),
                        **time,
                    }
                    for row in sorted(rows_after - rows_before)
                ]
        self._transaction.change_each(self.statements.insert, inserted_rows)

    def _load(self, targets: Sequence[Target]) -> Mapping[int, set[tuple[Any, ...]]]:
        stored_rows: defaultdict[int, set[tuple[Any, ...]]] = defaultdict(set)
        if existing_ids := [target.row.id for target in targets if not target.is_new]:
            for provider_id, *row in self._transaction.rows(
                self.statements.select_existing, ids=existing_ids
            ):
                stored_rows[provider_id].add(tuple(row))
        return stored_rows


class AttributeWriter(_RowWriter):
    """Writes attributes as JSON in ASCII, which each database stores."""

    part = ATTRIBUTES
    statements = TableStatements(attributes.c.name, attributes.c.value)

    def make_rows(self, target: Target) -> set[tuple[Any, ...]]:
        """Return the names and JSON texts of the attributes."""
        return {(name, json.dumps(value)) for name, value in self._value(target).items()}


class TraitWriter(_RowWriter):
    """Writes traits of providers."""

    part = TRAITS
    statements = TableStatements(resource_provider_traits.c.trait_id)

    def create_names(self) -> None:
        """Create missing custom traits."""
        existing_traits = traits.find_traits(self._transaction, self._names)
        for name in sorted(filter(is_custom_name, self._names - existing_traits.keys())):
            traits.ensure(self._transaction, name)

    def look_up(self, problems: list[EntryFault]) -> None:
        """Look up the traits; add a problem for each target with missing traits."""
        self.traits = traits.find_traits(self._transaction, self._names)
        self.modified_at = max((row.modified_at for row in self.traits.values()), default=0.0)
        for target in self._targets:
            self._transaction.check_deadline()
            missing_names = sorted(set(self._value(target)) - self.traits.keys())
            if missing_names:
                problems.append(EntryFault(target.index, TraitsNotFoundError(missing_names)))

    def make_rows(self, target: Target) -> set[tuple[Any, ...]]:
        """Return the ids of the traits."""
        return {(self.traits[name].id,) for name in self._value(target)}


class AggregateWriter(_RowWriter):
    """Writes aggregates of providers; creates missing aggregates."""

    part = AGGREGATES
    statements = TableStatements(resource_provider_aggregates.c.aggregate_id)

    def write(self) -> None:
        """Create missing aggregates, then write the links."""
        self._ids = _ensure_aggregates(self._transaction, sorted(self._names))
        super().write()

    def make_rows(self, target: Target) -> set[tuple[Any, ...]]:
        """Return the ids of the aggregates."""
        return {(self._ids[uuid],) for uuid in self._value(target)}


def _ensure_aggregates(transaction: WriteTransaction, uuids: Sequence[str]) -> Mapping[str, int]:
    id_by_uuid = {row.uuid: row.id for row in transaction.rows_in_chunks(_AGGREGATES, uuids=uuids)}
    return {
        uuid: id_by_uuid[uuid] if uuid in id_by_uuid else _ensure_aggregate(transaction, uuid)
        for uuid in uuids
    }


def _ensure_aggregate(transaction: WriteTransaction, uuid: str) -> int:
    # Spellings that are equal in the collation of the database name the same aggregate.
    if (aggregate_id := transaction.scalar(_AGGREGATES, uuids=[uuid])) is None:
        transaction.change_each(_INSERT_AGGREGATE, [{"uuid": uuid, "created_at": transaction.now}])
        aggregate_id = transaction.scalar(_AGGREGATES, uuids=[uuid])
    return int(aggregate_id)


def list_inventories(entries: Sequence[BatchEntry]) -> list[Inventory]:
    """Return the inventories of entries, without deletions."""
    return [
        inventory
        for entry in entries
        for inventory in entry.values.get(INVENTORIES.name, {}).values()
        if inventory is not None
    ]


def raise_first(problems: Sequence[EntryFault]) -> None:
    """Raise the error of the first problem, if any."""
    if problems:
        raise problems[0].error


def raise_all(problems: list[EntryFault]) -> None:
    """Raise `BatchRefusedError` with the problems in the order of their entries, if any."""
    if problems:
        problems.sort(key=lambda problem: problem.index)
        raise BatchRefusedError(problems[:MOST_PROBLEMS])


def record_changes(
    transaction: WriteTransaction, targets: Sequence[Target], rules: WriteRules
) -> None:
    """Record the written parts for the feed, and raise the generations according to the rules."""
    is_limited_to_changes = rules.generation is GenerationRule.IF_CHANGED
    written_providers = []
    for target in targets:
        parts = 0
        for name in target.changed if is_limited_to_changes else target.entry.values:
            parts |= _FEED_PARTS.get(name, 0)
        if parts:
            transaction.touch_providers([target.row.id], Part(parts))
            written_providers.append(target.row)
    if rules.generation is not GenerationRule.NEVER:
        raise_generations(
            transaction, written_providers, {provider.id: 1 for provider in written_providers}
        )
