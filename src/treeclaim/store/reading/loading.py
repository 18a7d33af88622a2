# SPDX-License-Identifier: Apache-2.0
"""Loads providers as records for a Forest, by one query for all parts of many."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from treeclaim.model.catalogue import Catalogue, CatalogueEntry
from treeclaim.model.inventory import Inventory
from treeclaim.model.provider import InventoryRecord, ProviderRecord
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, chunks, seconds
from treeclaim.store.reading.inventory_columns import INVENTORY_COLUMNS, USED
from treeclaim.store.schema.mixed_collations import PlainText
from treeclaim.store.schema.tables import (
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

IDS = "ids"
"""The parameter of `PARTS`: the ids of providers."""

_INVENTORY, _PROVIDER, _TRAIT, _AGGREGATE = range(4)
_NOTHING = sa.null()
_class_or_trait = attrgetter("n1")


class PartRow(NamedTuple):
    """A row of a query for all parts of some providers; what its numbers mean depends on its kind.

    Attributes:
        kind: One of those above, or another one's own.
        id: Of the provider, in the kinds above.
        n1, n2, n3, n4, n5, n6, n7: Whole numbers.
        ratio, uuid, name, updated_at, created_at: What they say.
    """

    kind: Any
    id: Any
    n1: Any = _NOTHING
    n2: Any = _NOTHING
    n3: Any = _NOTHING
    n4: Any = _NOTHING
    n5: Any = _NOTHING
    n6: Any = _NOTHING
    n7: Any = _NOTHING
    ratio: Any = _NOTHING
    uuid: Any = _NOTHING
    name: Any = _NOTHING
    updated_at: Any = _NOTHING
    created_at: Any = _NOTHING

    @classmethod
    def query(cls, kind: int, *numbers: Any, **others: Any) -> sa.Select[Any]:
        """Return a query for rows of a kind.

        Args:
            kind: Not one of those above, for rows beside `PARTS`.
            *numbers: The columns of `id` and of the whole numbers.
            **others: Other columns by their names.
        """
        columns = cls(sa.literal_column(str(kind)), *numbers, **others)._asdict()
        return sa.select(*(column.label(name) for name, column in columns.items()))


def _of(statement: sa.Select[Any], column: sa.Column[Any]) -> sa.Select[Any]:
    return statement.where(column.in_(sa.bindparam(IDS, expanding=True)))


_TOTAL, _RESERVED, _LEAST, _MOST, _STEP, _RATIO = INVENTORY_COLUMNS
PARTS = (
    # PostgreSQL takes the types of the first two.
    _of(
        PartRow.query(
            _INVENTORY,
            inventories.c.resource_provider_id,
            inventories.c.resource_class_id,
            *(_TOTAL, _RESERVED, _LEAST, _MOST, _STEP),
            USED,
            ratio=_RATIO,
            uuid=sa.cast(sa.null(), sa.String(36)),
            name=sa.cast(sa.null(), sa.String(200)),
            updated_at=inventories.c.updated_at,
            created_at=inventories.c.created_at,
        ),
        inventories.c.resource_provider_id,
    ),
    _of(
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
    _of(
        PartRow.query(
            _TRAIT,
            resource_provider_traits.c.resource_provider_id,
            resource_provider_traits.c.trait_id,
        ),
        resource_provider_traits.c.resource_provider_id,
    ),
    _of(
        PartRow.query(
            _AGGREGATE,
            resource_provider_aggregates.c.resource_provider_id,
            uuid=PlainText(placement_aggregates.c.uuid),
        ).join(
            placement_aggregates,
            placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
        ),
        resource_provider_aggregates.c.resource_provider_id,
    ),
)
"""Queries for all about the providers of some ids, to be asked as one, by one round trip."""

_SOME = CompiledStatement(sa.union_all(*PARTS))
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
        found += records_of(transaction.rows(_SOME, **{IDS: ids}))
    return found


def records_of(rows: Iterable[Any]) -> list[ProviderRecord]:
    """Return the providers of which rows of `PARTS` tell; rows of other kinds are left out."""
    parts: dict[tuple[int, int], list[Any]] = defaultdict(list)
    provider_rows = []
    for row in rows:
        if row.kind == _PROVIDER:
            provider_rows.append(row)
        else:
            parts[row.kind, row.id].append(row)
    return [
        _record(row, parts[_INVENTORY, row.id], parts[_TRAIT, row.id], parts[_AGGREGATE, row.id])
        for row in provider_rows
    ]


def _record(
    row: Any,
    inventory_rows: Sequence[Any],
    trait_rows: Sequence[Any],
    aggregate_rows: Sequence[Any],
) -> ProviderRecord:
    """Return the provider of a row; databases sort in different ways, so its parts are sorted here."""
    _, provider_id, generation, parent_id, root_id, *_ = row
    return ProviderRecord(
        id=provider_id,
        uuid=row.uuid,
        name=row.name or "",
        generation=generation or 0,
        parent_id=parent_id,
        root_id=provider_id if root_id is None else root_id,
        modified_at=seconds(row.updated_at, row.created_at),
        inventories=tuple(map(_inventory, sorted(inventory_rows, key=_class_or_trait))),
        trait_ids=tuple(sorted(map(_class_or_trait, trait_rows))),
        aggregates=tuple(sorted(part.uuid for part in aggregate_rows)),
    )


def _inventory(row: Any) -> InventoryRecord:
    _, _, class_id, total, reserved, least, most, step, used, ratio, *_ = row
    return InventoryRecord(
        class_id=class_id,
        inventory=Inventory(total, reserved, least, most, step, ratio),
        used=int(used),
        modified_at=seconds(row.updated_at, row.created_at),
    )
