# SPDX-License-Identifier: Apache-2.0
"""Providers as a Forest needs them, loaded by a few queries over sets."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from treeclaim.model.catalogue import Catalogue, CatalogueEntry
from treeclaim.model.inventory import Inventory
from treeclaim.model.provider import InventoryRecord, ProviderRecord
from treeclaim.store.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from treeclaim.store.transactions import ReadTransaction, chunks, seconds

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
    inventories.c.total,
    inventories.c.reserved,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
    inventories.c.allocation_ratio,
    inventories.c.updated_at,
    inventories.c.created_at,
).order_by(inventories.c.resource_class_id)
_USAGE = sa.select(
    allocations.c.resource_provider_id,
    allocations.c.resource_class_id,
    sa.func.sum(allocations.c.used).label("used"),
).group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
_TRAITS = sa.select(
    resource_provider_traits.c.resource_provider_id, resource_provider_traits.c.trait_id
).order_by(resource_provider_traits.c.trait_id)
_AGGREGATES = (
    sa.select(resource_provider_aggregates.c.resource_provider_id, placement_aggregates.c.uuid)
    .join(
        placement_aggregates,
        placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
    )
    .order_by(placement_aggregates.c.uuid)
)


def _of(statement: sa.Select[Any], column: sa.Column[Any]) -> sa.Select[Any]:
    return statement.where(column.in_(sa.bindparam(_IDS, expanding=True)))


_SOME_PROVIDERS = _of(_PROVIDERS, resource_providers.c.id)
_SOME_INVENTORIES = _of(_INVENTORIES, inventories.c.resource_provider_id)
_SOME_USAGE = _of(_USAGE, allocations.c.resource_provider_id)
_SOME_TRAITS = _of(_TRAITS, resource_provider_traits.c.resource_provider_id)
_SOME_AGGREGATES = _of(_AGGREGATES, resource_provider_aggregates.c.resource_provider_id)

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


def every_provider(transaction: ReadTransaction) -> list[ProviderRecord]:
    """Load all providers."""
    return list(
        _records(
            transaction.each(_PROVIDERS),
            transaction.each(_INVENTORIES),
            transaction.each(_USAGE),
            transaction.each(_TRAITS),
            transaction.each(_AGGREGATES),
        )
    )


def some_providers(
    transaction: ReadTransaction, provider_ids: Collection[int]
) -> list[ProviderRecord]:
    """Load those of some providers that exist."""
    found: list[ProviderRecord] = []
    for ids in chunks(sorted(provider_ids)):
        found.extend(
            _records(
                transaction.rows(_SOME_PROVIDERS, ids=ids),
                transaction.rows(_SOME_INVENTORIES, ids=ids),
                transaction.rows(_SOME_USAGE, ids=ids),
                transaction.rows(_SOME_TRAITS, ids=ids),
                transaction.rows(_SOME_AGGREGATES, ids=ids),
            )
        )
    return found


def _records(
    provider_rows: Iterable[Any],
    inventory_rows: Iterable[Any],
    usage_rows: Iterable[Any],
    trait_rows: Iterable[Any],
    aggregate_rows: Iterable[Any],
) -> Iterator[ProviderRecord]:
    used = {(row[0], row[1]): int(row.used) for row in usage_rows}
    stocks = _stocks(inventory_rows, used)
    trait_ids: dict[int, list[int]] = defaultdict(list)
    for provider_id, trait_id in trait_rows:
        trait_ids[provider_id].append(trait_id)
    aggregates: dict[int, list[str]] = defaultdict(list)
    for provider_id, uuid in aggregate_rows:
        aggregates[provider_id].append(uuid)
    for row in provider_rows:
        yield ProviderRecord(
            id=row.id,
            uuid=row.uuid,
            name=row.name or "",
            generation=row.generation or 0,
            parent_id=row.parent_provider_id,
            root_id=row.id if row.root_provider_id is None else row.root_provider_id,
            modified_at=seconds(row.updated_at, row.created_at),
            inventories=tuple(stocks.get(row.id, ())),
            trait_ids=tuple(trait_ids.get(row.id, ())),
            # Databases sort text in different ways; the order must not depend on that.
            aggregates=tuple(sorted(aggregates.get(row.id, ()))),
        )


def _stocks(
    rows: Iterable[Any], used: Mapping[tuple[int, int], int]
) -> dict[int, list[InventoryRecord]]:
    stocks: dict[int, list[InventoryRecord]] = defaultdict(list)
    for row in rows:
        provider_id, class_id, total, reserved, least, most, step, ratio, updated, created = row
        stocks[provider_id].append(
            InventoryRecord(
                class_id=class_id,
                inventory=Inventory(total, reserved, least, most, step, ratio),
                used=used.get((provider_id, class_id), 0),
                modified_at=seconds(updated, created),
            )
        )
    return stocks
