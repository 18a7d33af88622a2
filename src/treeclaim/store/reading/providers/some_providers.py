# SPDX-License-Identifier: Apache-2.0
"""Loads providers as records for a Forest, by one query for all parts of many."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from treeclaim.model.changes import Catalogue, CatalogueEntry
from treeclaim.model.inventory import Inventory
from treeclaim.model.provider import Consumed, InventoryRecord, ProviderRecord
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, chunks, seconds
from treeclaim.store.reading.inventories import ALLOCATED, INVENTORY_COLUMNS
from treeclaim.store.reading.providers.attributes import attributes_in
from treeclaim.store.reading.providers.parts import (
    ATTRIBUTES_KIND,
    FIRST_KIND,
    IDS,
    LINKED,
    SOME_ATTRIBUTES,
    PartRow,
    of_some,
)
from treeclaim.store.schema.mixed_collations import PlainText
from treeclaim.store.schema.tables import (
    consumption,
    inventories,
    resource_classes,
    resource_providers,
    traits,
)

_INVENTORY, _PROVIDER, _CONSUMPTION = range(FIRST_KIND)
_class_id = attrgetter("n1")
_name_and_value = attrgetter("name", "uuid")

_TOTAL, _RESERVED, _LEAST, _MOST, _STEP, _RATIO = INVENTORY_COLUMNS
PARTS = (
    # PostgreSQL takes the types of the first two.
    of_some(
        PartRow.query(
            _INVENTORY,
            inventories.c.resource_provider_id,
            inventories.c.resource_class_id,
            *(_TOTAL, _RESERVED, _LEAST, _MOST, _STEP),
            ALLOCATED,
            ratio=_RATIO,
            uuid=sa.cast(sa.null(), sa.String(36)),
            name=sa.cast(sa.null(), sa.String(200)),
            updated_at=inventories.c.updated_at,
            created_at=inventories.c.created_at,
        ),
        inventories.c.resource_provider_id,
    ),
    of_some(
        PartRow.query(
            _PROVIDER,
            resource_providers.c.id,
            resource_providers.c.generation,
            resource_providers.c.parent_provider_id,
            resource_providers.c.root_provider_id,
            uuid=PlainText(resource_providers.c.uuid),
            name=PlainText(resource_providers.c.name),
            updated_at=resource_providers.c.updated_at,
            created_at=resource_providers.c.created_at,
        ),
        resource_providers.c.id,
    ),
    of_some(
        PartRow.query(
            _CONSUMPTION,
            consumption.c.resource_provider_id,
            consumption.c.resource_class_id,
            consumption.c.consumed_provider_id,
            consumption.c.consumed_class_id,
            consumption.c.amount,
        ),
        consumption.c.resource_provider_id,
    ),
    *(linked.some for linked in LINKED),
    SOME_ATTRIBUTES,
)
"""Queries for all about the providers of some ids, to be asked as one, by one round trip."""

_SOME = CompiledStatement(sa.union_all(*PARTS))
_NAMES_KNOWN = 16_384
"""Names whose rows are known; each takes 500 bytes, and a few more for a long one."""

_TRAIT_NAMES, _CLASS_NAMES = (
    CompiledStatement(sa.select(table.c.id, table.c.name, table.c.updated_at, table.c.created_at))
    for table in (traits, resource_classes)
)


def load_catalogue(transaction: ReadTransaction) -> Catalogue:
    """Load the names of all traits and resource classes."""
    return Catalogue.of(
        map(_entry, transaction.rows(_TRAIT_NAMES)), map(_entry, transaction.rows(_CLASS_NAMES))
    )


@lru_cache(_NAMES_KNOWN)
def _entry(row: Any) -> CatalogueEntry:
    """Return what a row says. All are read whenever there is a new one, and few of them differ then."""
    known = row.updated_at or row.created_at
    return CatalogueEntry(row.id, row.name, None if known is None else seconds(known))


def some_providers(
    transaction: ReadTransaction, provider_ids: Collection[int]
) -> list[ProviderRecord]:
    """Load those of the given providers that exist."""
    found: list[ProviderRecord] = []
    for ids in chunks(sorted(provider_ids)):
        found += records_of(transaction.rows(_SOME, **{IDS: ids}))
    return found


def records_of(rows: Iterable[Any]) -> list[ProviderRecord]:
    """Return the providers that rows of `PARTS` are about; rows of other kinds are left out."""
    parts: dict[tuple[int, int], list[Any]] = defaultdict(list)
    provider_rows = []
    for row in rows:
        if row.kind == _PROVIDER:
            provider_rows.append(row)
        else:
            parts[row.kind, row.id].append(row)
    return [_record(row, parts) for row in provider_rows]


def _record(row: Any, parts: Mapping[tuple[int, int], Sequence[Any]]) -> ProviderRecord:
    """Return the provider of a row; databases sort in different ways, so its parts are sorted here.

    Args:
        row: A provider's row.
        parts: The other rows, by kind and id of the provider.
    """
    _, provider_id, generation, parent_id, root_id, *_ = row
    consumes: dict[int, list[Consumed]] = defaultdict(list)
    for part in parts.get((_CONSUMPTION, provider_id), ()):
        consumes[part.n1].append(Consumed(part.n2, part.n3, part.n4))
    return ProviderRecord(
        id=provider_id,
        uuid=row.uuid,
        name=row.name or "",
        generation=generation or 0,
        parent_id=parent_id,
        root_id=provider_id if root_id is None else root_id,
        modified_at=seconds(row.updated_at, row.created_at),
        inventories=tuple(
            _inventory(part, tuple(sorted(consumes.get(part.n1, ()))))
            for part in sorted(parts[_INVENTORY, provider_id], key=_class_id)
        ),
        links={
            linked.part.name: tuple(sorted(map(linked.column, parts[linked.kind, provider_id])))
            for linked in LINKED
        },
        attributes=attributes_in(map(_name_and_value, parts[ATTRIBUTES_KIND, provider_id])),
    )


def _inventory(row: Any, consumes: tuple[Consumed, ...]) -> InventoryRecord:
    _, _, class_id, total, reserved, least, most, step, used, ratio, *_ = row
    return InventoryRecord(
        class_id=class_id,
        inventory=Inventory(total, reserved, least, most, step, ratio),
        used=int(used),
        modified_at=seconds(row.updated_at, row.created_at),
        consumes=consumes,
    )
