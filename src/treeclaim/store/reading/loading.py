# SPDX-License-Identifier: Apache-2.0
"""Loads providers as records for a Forest, by a few set-based queries."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from treeclaim.model.catalogue import Catalogue, CatalogueEntry
from treeclaim.model.inventory import Inventory
from treeclaim.model.provider import InventoryRecord, ProviderRecord
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, chunks, seconds
from treeclaim.store.reading.inventory_columns import INVENTORY_COLUMNS, USED
from treeclaim.store.schema.tables import (
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

_IDS = "ids"

_PROVIDERS = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    resource_providers.c.name,
    resource_providers.c.generation,
    resource_providers.c.parent_provider_id,
    resource_providers.c.root_provider_id,
    resource_providers.c.updated_at,
    resource_providers.c.created_at,
)
_INVENTORIES = sa.select(
    inventories.c.resource_provider_id,
    inventories.c.resource_class_id,
    *INVENTORY_COLUMNS,
    inventories.c.updated_at,
    inventories.c.created_at,
).order_by(inventories.c.resource_class_id)


def _of(statement: sa.Select[Any], column: sa.Column[Any]) -> sa.Select[Any]:
    return statement.where(column.in_(sa.bindparam(_IDS, expanding=True)))


_SOME_PROVIDERS = CompiledStatement(_of(_PROVIDERS, resource_providers.c.id))
_SOME_INVENTORIES = CompiledStatement(
    _of(_INVENTORIES.add_columns(USED), inventories.c.resource_provider_id)
)
_SOME_TRAITS_AND_AGGREGATES = CompiledStatement(
    sa.union_all(
        _of(
            sa.select(
                resource_provider_traits.c.resource_provider_id,
                resource_provider_traits.c.trait_id,
                sa.null().label("uuid"),
            ),
            resource_provider_traits.c.resource_provider_id,
        ),
        _of(
            sa.select(
                resource_provider_aggregates.c.resource_provider_id,
                sa.literal_column("0"),
                placement_aggregates.c.uuid,
            ).join(
                placement_aggregates,
                placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
            ),
            resource_provider_aggregates.c.resource_provider_id,
        ),
    )
)
"""Rows of traits without a uuid, and rows of aggregates with one."""

_TRAIT_NAMES = sa.select(traits.c.id, traits.c.name, traits.c.updated_at, traits.c.created_at)
_CLASS_NAMES = sa.select(
    resource_classes.c.id,
    resource_classes.c.name,
    resource_classes.c.updated_at,
    resource_classes.c.created_at,
)


def catalogue(transaction: ReadTransaction) -> Catalogue:
    """Load the names of all traits and resource classes."""
    return Catalogue.of(
        map(_entry, transaction.rows(_TRAIT_NAMES)), map(_entry, transaction.rows(_CLASS_NAMES))
    )


def _entry(row: Any) -> CatalogueEntry:
    known = row.updated_at or row.created_at
    return CatalogueEntry(row.id, row.name, None if known is None else seconds(known))


def some_providers(
    transaction: ReadTransaction, provider_ids: Collection[int]
) -> list[ProviderRecord]:
    """Load those of the given providers that exist."""
    found: list[ProviderRecord] = []
    for ids in chunks(sorted(provider_ids)):
        providers = transaction.rows(_SOME_PROVIDERS, ids=ids)
        rows = transaction.rows(_SOME_INVENTORIES, ids=ids)
        inventories_of = _inventories((row[:-1], row.used) for row in rows)
        parts = transaction.rows(_SOME_TRAITS_AND_AGGREGATES, ids=ids)
        traits_of = _grouped(
            (provider_id, trait) for provider_id, trait, uuid in parts if uuid is None
        )
        aggregates = _grouped(
            (provider_id, uuid) for provider_id, _, uuid in parts if uuid is not None
        )
        found.extend(_records(providers, inventories_of, traits_of, aggregates))
    return found


def _grouped(pairs: Iterable[Any]) -> Mapping[int, list[Any]]:
    """Group values by provider id."""
    found: dict[int, list[Any]] = defaultdict(list)
    for provider_id, value in pairs:
        found[provider_id].append(value)
    return found


def _records(
    provider_rows: Iterable[Any],
    inventories_of: Mapping[int, list[InventoryRecord]],
    trait_ids: Mapping[int, list[int]],
    aggregates: Mapping[int, list[str]],
) -> Iterator[ProviderRecord]:
    for row in provider_rows:
        yield ProviderRecord(
            id=row.id,
            uuid=row.uuid,
            name=row.name or "",
            generation=row.generation or 0,
            parent_id=row.parent_provider_id,
            root_id=row.id if row.root_provider_id is None else row.root_provider_id,
            modified_at=seconds(row.updated_at, row.created_at),
            inventories=tuple(inventories_of.get(row.id, ())),
            trait_ids=tuple(sorted(trait_ids.get(row.id, ()))),
            # Databases sort text in different ways; the order must not depend on it.
            aggregates=tuple(sorted(aggregates.get(row.id, ()))),
        )


def _inventories(rows: Iterable[tuple[Any, Any]]) -> dict[int, list[InventoryRecord]]:
    """Make records of inventories with their usage, by provider id."""
    inventories_of: dict[int, list[InventoryRecord]] = defaultdict(list)
    for row, used in rows:
        provider_id, class_id, total, reserved, least, most, step, ratio, updated, created = row
        inventories_of[provider_id].append(
            InventoryRecord(
                class_id=class_id,
                inventory=Inventory(total, reserved, least, most, step, ratio),
                used=int(used),
                modified_at=seconds(updated, created),
            )
        )
    return inventories_of
