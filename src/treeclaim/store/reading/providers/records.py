# SPDX-License-Identifier: Apache-2.0
"""Loads providers by id as records for a Forest, all parts by one query."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from treeclaim.model.changes import Catalogue, CatalogueEntry
from treeclaim.model.provider import ConsumptionRecord, Inventory, InventoryRecord, ProviderRecord
from treeclaim.model.whole import NO_PARENT
from treeclaim.store.database.transactions import Key, ReadTransaction, chunks, to_timestamp
from treeclaim.store.reading.providers import parts
from treeclaim.store.reading.providers.json_columns import as_rows, group_rows
from treeclaim.store.reading.providers.parts import make_attributes, make_condition

Rows = list[list[Any]]

PARTS = (
    parts.PROVIDERS,
    parts.INVENTORIES,
    parts.USAGE,
    parts.CONSUMPTION,
    parts.TRAITS,
    parts.AGGREGATES,
    parts.CONDITIONS,
    parts.ATTRIBUTES,
)
SELECT_PARTS = " UNION ALL ".join(
    as_rows(part.name, part.expressions, part.select("{id} IN :ids")) for part in PARTS
)
"""Query for all parts of the providers with the ids `ids`."""

_CACHED_ENTRIES = 16_384
"""Cached entries of the catalogue, about 500 bytes each."""

_TRAIT_NAMES, _CLASS_NAMES = (
    f"SELECT id, name, updated_at, created_at FROM {table}"
    for table in ("traits", "resource_classes")
)


def load_catalogue(transaction: ReadTransaction) -> Catalogue:
    """Load the names of all traits and resource classes."""
    return Catalogue.of(
        map(_make_entry, transaction.rows(_TRAIT_NAMES)),
        map(_make_entry, transaction.rows(_CLASS_NAMES)),
    )


# Cached, because each new name makes readers load all rows again.
@lru_cache(_CACHED_ENTRIES)
def _make_entry(row: Any) -> CatalogueEntry:
    written_at = row.updated_at or row.created_at
    return CatalogueEntry(
        row.id, row.name, None if written_at is None else to_timestamp(written_at)
    )


def load_providers(
    transaction: ReadTransaction, provider_ids: Collection[int]
) -> list[ProviderRecord]:
    """Load the existing providers with these ids."""
    records: list[ProviderRecord] = []
    for ids in chunks(sorted(provider_ids)):
        rows = transaction.rows(SELECT_PARTS, ids=ids)
        records += make_records(group_rows(rows))
    return records


def make_records(tables: Mapping[str, Rows]) -> list[ProviderRecord]:
    """Return the providers, given the rows of `SELECT_PARTS` by part name."""
    inventories = _group_inventories(tables)
    links = {
        part.name: _group_by_provider(tables[part.name])
        for part in (parts.TRAITS, parts.AGGREGATES)
    }
    conditions = _group_by_provider(tables[parts.CONDITIONS.name])
    attributes = _group_by_provider(tables[parts.ATTRIBUTES.name])
    return [
        ProviderRecord(
            id=provider_id,
            uuid=uuid,
            name=name,
            generation=generation,
            parent_id=None if parent_id == NO_PARENT else parent_id,
            root_id=root_id,
            modified_at=to_timestamp(modified_at),
            inventories=tuple(inventories[provider_id]),
            links={
                **{
                    part: tuple(sorted(linked for (linked,) in rows[provider_id]))
                    for part, rows in links.items()
                },
                parts.CONDITIONS.name: tuple(sorted(map(make_condition, conditions[provider_id]))),
            },
            attributes=make_attributes(attributes[provider_id]),
        )
        for provider_id, uuid, name, generation, parent_id, root_id, modified_at in tables[
            parts.PROVIDERS.name
        ]
    ]


def _group_inventories(tables: Mapping[str, Rows]) -> Mapping[int, list[InventoryRecord]]:
    used = {(row[0], row[1]): row[2] for row in tables[parts.USAGE.name]}
    consumes: defaultdict[Key, list[ConsumptionRecord]] = defaultdict(list)
    for provider_id, class_id, *consumed in tables[parts.CONSUMPTION.name]:
        consumes[provider_id, class_id].append(ConsumptionRecord(*consumed))
    by_provider: defaultdict[int, list[InventoryRecord]] = defaultdict(list)
    for row in sorted(tables[parts.INVENTORIES.name]):
        provider_id, class_id, total, reserved, least, most, step, ratio, modified_at = row
        by_provider[provider_id].append(
            InventoryRecord(
                class_id=class_id,
                inventory=Inventory(total, reserved, least, most, step, float(ratio)),
                used=used.get((provider_id, class_id), 0),
                modified_at=to_timestamp(modified_at),
                consumes=tuple(sorted(consumes[provider_id, class_id])),
            )
        )
    return by_provider


def _group_by_provider(rows: Rows) -> Mapping[int, list[Any]]:
    by_provider: defaultdict[int, list[Any]] = defaultdict(list)
    for provider_id, *values in rows:
        by_provider[provider_id].append(values)
    return by_provider
