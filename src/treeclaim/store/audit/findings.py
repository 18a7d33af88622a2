# SPDX-License-Identifier: Apache-2.0
"""All kinds of findings, as a table of queries (contract page 99, section 5).

The kinds that need the shape of all trees are in `trees.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from treeclaim.model.extension.audit import FindingKind, Findings, Living
from treeclaim.model.inventory import Inventory
from treeclaim.model.names import CUSTOM_PREFIX, FIRST_CUSTOM_CLASS_ID, UNKNOWN_TYPE
from treeclaim.store.audit import trees
from treeclaim.store.audit.conditions import ToleratedKeys, must_leave
from treeclaim.store.audit.trees import HOLDS, Item
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.reading.holds import EXISTING
from treeclaim.store.reading.inventories import INVENTORY_COLUMNS, USED
from treeclaim.store.schema.tables import (
    ROWS_OF_PROVIDERS,
    allocations,
    consumer_types,
    consumers,
    draws,
    holds,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

PARTS = {str(table.name): table for table in ROWS_OF_PROVIDERS}
"""Tables whose rows belong to a provider, by name."""

_LATE = timedelta(minutes=1)
"""The time after its end from which a hold that still exists is a finding."""

_AMOUNTS = [column.name for column in INVENTORY_COLUMNS]


@dataclass(frozen=True, slots=True)
class FindingQuery:
    """The query for the findings of one kind, and its columns that clients see.

    The statement is in order, and may use the parameters `now` and `late`, the time a minute ago. `make_item`
    makes a finding of a row that SQL alone cannot judge, or None if the row is fine.
    """

    statement: sa.Select[Any] | sa.CompoundSelect[Any]
    columns: Sequence[str] = ()
    make_item: Callable[[Any], Item | None] | None = None

    def load(self, transaction: ReadTransaction, limit: int) -> Findings:
        """Count the findings, and load the first of them."""
        times = {"now": transaction.now, "late": transaction.now - _LATE}
        if self.make_item is not None:
            items = map(self.make_item, transaction.each(self.statement))
            return Findings.of([item for item in items if item is not None], limit)
        counted = self.statement.order_by(None).subquery()
        count = int(transaction.scalar(sa.select(sa.func.count()).select_from(counted), **times))
        rows = transaction.rows(self.statement.limit(limit), **times) if count else ()
        return Findings(
            count, [{name: getattr(row, name) for name in self.columns} for row in rows]
        )


def _whole(amount: sa.ColumnElement[Any], name: str) -> sa.Label[Any]:
    """Return a sum as a whole number, which some databases make a decimal."""
    return sa.cast(amount, sa.BigInteger).label(name)


_USED_INVENTORIES = (
    sa.select(resource_providers.c.uuid, resource_classes.c.name, USED, *INVENTORY_COLUMNS)
    .select_from(inventories)
    .join(resource_providers, resource_providers.c.id == inventories.c.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .order_by(inventories.c.id)
)


def _make_overuse(row: Any) -> Item | None:
    inventory = Inventory(*(getattr(row, name) for name in _AMOUNTS))
    capacity = max(inventory.whole_capacity, 0)
    used = int(row.used)
    if used <= capacity:
        return None
    return {
        "provider": row.uuid,
        "resource_class": row.name,
        "capacity": capacity,
        "used": used,
    }


_OF_INVENTORY = sa.and_(
    inventories.c.resource_provider_id == allocations.c.resource_provider_id,
    inventories.c.resource_class_id == allocations.c.resource_class_id,
)
_RECORDS = (
    sa.select(
        allocations.c.consumer_id.label("consumer"),
        resource_providers.c.uuid.label("provider"),
        resource_classes.c.name.label("resource_class"),
        allocations.c.used,
    )
    .select_from(allocations)
    .join(resource_providers, resource_providers.c.id == allocations.c.resource_provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    .order_by(allocations.c.id)
)
_RECORD = ("consumer", "provider", "resource_class", "used")
_AGAINST_UNITS = _RECORDS.join(inventories, _OF_INVENTORY).where(
    # Units concern no hold.
    allocations.c.consumer_id.not_in(HOLDS),
    sa.or_(
        allocations.c.used < inventories.c.min_unit,
        allocations.c.used > inventories.c.max_unit,
        allocations.c.used % inventories.c.step_size != 0,
    ),
)
_WITHOUT_INVENTORY = _RECORDS.outerjoin(inventories, _OF_INVENTORY).where(
    inventories.c.id.is_(None)
)
_ROWS_OF_NOTHING = [
    sa.select(
        sa.literal_column(str(number)).label("number"),
        sa.literal_column(f"'{name}'").label("table"),
        table.c.resource_provider_id.label("provider_id"),
    )
    .select_from(
        table.outerjoin(
            resource_providers, resource_providers.c.id == table.c.resource_provider_id
        )
    )
    .where(resource_providers.c.id.is_(None))
    .distinct()
    for number, (name, table) in enumerate(PARTS.items())
]
_WITHOUT_PROVIDER = sa.union_all(*_ROWS_OF_NOTHING).order_by("number", "provider_id")
_EMPTY_CONSUMERS = (
    sa.select(consumers.c.uuid.label("consumer"))
    .select_from(consumers.outerjoin(allocations, allocations.c.consumer_id == consumers.c.uuid))
    .where(
        allocations.c.id.is_(None),
        sa.or_(
            consumers.c.uuid.not_in(HOLDS),
            consumers.c.uuid.not_in(sa.select(draws.c.hold_uuid)),
        ),
    )
    .order_by(consumers.c.uuid)
)
_UNUSED_AGGREGATES = (
    sa.select(placement_aggregates.c.uuid)
    .where(
        placement_aggregates.c.id.not_in(sa.select(resource_provider_aggregates.c.aggregate_id))
    )
    .order_by(placement_aggregates.c.uuid)
)
_UNUSED_TRAITS = (
    sa.select(traits.c.name)
    .where(
        traits.c.name.startswith(CUSTOM_PREFIX, autoescape=True),
        traits.c.id.not_in(sa.select(resource_provider_traits.c.trait_id)),
    )
    .order_by(traits.c.name)
)
_UNUSED_CLASSES = (
    sa.select(resource_classes.c.name)
    .where(
        resource_classes.c.id >= FIRST_CUSTOM_CLASS_ID,
        *(
            resource_classes.c.id.not_in(sa.select(table.c.resource_class_id))
            for table in (inventories, allocations)
        ),
    )
    .order_by(resource_classes.c.name)
)
_EXPIRED_HOLDS = (
    sa.select(holds.c.uuid.label("consumer"))
    .select_from(EXISTING)
    .where(holds.c.ends_at <= sa.bindparam("late"))
    .order_by(holds.c.uuid)
)
_BROKEN_HOLDS = sa.union(
    sa.select(holds.c.uuid.label("consumer")).where(holds.c.uuid.not_in(HOLDS)),
    sa.select(draws.c.hold_uuid).where(draws.c.hold_uuid.not_in(HOLDS)),
).order_by("consumer")
_DRAWN = (
    sa.select(
        draws.c.consumer_uuid,
        draws.c.provider_id,
        draws.c.class_id,
        _whole(sa.func.sum(draws.c.amount), "drawn"),
    )
    .where(draws.c.hold_uuid.in_(HOLDS))
    .group_by(draws.c.consumer_uuid, draws.c.provider_id, draws.c.class_id)
    .subquery()
)
_HAS = sa.func.coalesce(allocations.c.used, 0)
_BROKEN_DRAWS = (
    sa.select(
        _DRAWN.c.consumer_uuid.label("consumer"),
        resource_providers.c.uuid.label("provider"),
        resource_classes.c.name.label("resource_class"),
        _DRAWN.c.drawn,
        _HAS.label("used"),
    )
    .select_from(_DRAWN)
    .outerjoin(
        allocations,
        sa.and_(
            allocations.c.consumer_id == _DRAWN.c.consumer_uuid,
            allocations.c.resource_provider_id == _DRAWN.c.provider_id,
            allocations.c.resource_class_id == _DRAWN.c.class_id,
        ),
    )
    .outerjoin(resource_providers, resource_providers.c.id == _DRAWN.c.provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == _DRAWN.c.class_id)
    .where(_DRAWN.c.drawn > _HAS)
    .order_by(_DRAWN.c.consumer_uuid, _DRAWN.c.provider_id, _DRAWN.c.class_id)
)


_QUERIES: Mapping[FindingKind, FindingQuery] = {
    FindingKind.OVER_CAPACITY: FindingQuery(_USED_INVENTORIES, make_item=_make_overuse),
    FindingKind.AGAINST_UNITS: FindingQuery(_AGAINST_UNITS, _RECORD),
    FindingKind.WITHOUT_INVENTORY: FindingQuery(_WITHOUT_INVENTORY, _RECORD),
    FindingKind.WITHOUT_PROVIDER: FindingQuery(_WITHOUT_PROVIDER, ("table", "provider_id")),
    FindingKind.WITHOUT_CONSUMER: FindingQuery(CONSUMERS_WITHOUT_RECORD, ("consumer",)),
    FindingKind.EMPTY_CONSUMER: FindingQuery(_EMPTY_CONSUMERS, ("consumer",)),
    FindingKind.UNUSED_AGGREGATE: FindingQuery(_UNUSED_AGGREGATES, ("uuid",)),
    FindingKind.UNUSED_TRAIT: FindingQuery(_UNUSED_TRAITS, ("name",)),
    FindingKind.UNUSED_CLASS: FindingQuery(_UNUSED_CLASSES, ("name",)),
    FindingKind.EXPIRED_HOLD: FindingQuery(_EXPIRED_HOLDS, ("consumer",)),
    FindingKind.BROKEN_HOLD: FindingQuery(_BROKEN_HOLDS, ("consumer",)),
    FindingKind.BROKEN_DRAW: FindingQuery(_BROKEN_DRAWS, (*_RECORD, "drawn")),
}
_TREE_FINDERS: Mapping[
    FindingKind, Callable[[ReadTransaction, trees.TreeShape], Iterable[Item]]
] = {
    FindingKind.BROKEN_ROOT: trees.find_broken_roots,
    FindingKind.BROKEN_PARENT: trees.find_broken_parents,
    FindingKind.IN_MANY_TREES: trees.find_split_consumers,
    FindingKind.SAME_HOST: trees.find_same_hosts,
    FindingKind.EMPTY_TREE: trees.find_empty_trees,
}

_NEWEST = sa.func.max(sa.func.coalesce(allocations.c.updated_at, allocations.c.created_at))
_HOLDERS = (
    sa.select(
        consumers.c.uuid,
        consumers.c.generation,
        consumer_types.c.name.label("type"),
        _NEWEST.label("newest"),
    )
    .select_from(consumers)
    .join(allocations, allocations.c.consumer_id == consumers.c.uuid)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .group_by(consumers.c.uuid, consumers.c.generation, consumer_types.c.name)
    .order_by(consumers.c.uuid)
)


def load_findings(
    transaction: ReadTransaction,
    kinds: Sequence[FindingKind],
    limit: int,
    tolerated_keys: ToleratedKeys,
    living: Living | None = None,
) -> dict[FindingKind, Findings]:
    """Load the findings of some kinds, in the order of the kinds; `ORPHANED` needs `living`."""
    # The queries read all rows.
    transaction.extend_timeouts()
    findings = {
        kind: _QUERIES[kind].load(transaction, limit) for kind in kinds if kind in _QUERIES
    }
    if tree_kinds := [kind for kind in kinds if kind in _TREE_FINDERS]:
        shape = trees.load_shape(transaction)
        for kind in tree_kinds:
            findings[kind] = Findings.of([*_TREE_FINDERS[kind](transaction, shape)], limit)
    if FindingKind.MUST_LEAVE in kinds:
        findings[FindingKind.MUST_LEAVE] = must_leave(transaction, limit, tolerated_keys)
    if FindingKind.ORPHANED in kinds and living is not None:
        findings[FindingKind.ORPHANED] = find_orphans(transaction, limit, living)
    return {kind: findings[kind] for kind in kinds if kind in findings}


def find_orphans(transaction: ReadTransaction, limit: int, living: Living) -> Findings:
    """Find consumers of listed types that are not listed and got nothing for some time."""
    before = transaction.now - timedelta(seconds=living.older_than)
    orphans = []
    for row in transaction.each(_HOLDERS):
        listed = living.uuids.get(row.type or UNKNOWN_TYPE)
        if listed is None or row.uuid in listed:
            continue
        # A record without a time is from before times were written.
        if row.newest is None or row.newest < before:
            orphans.append({"consumer": row.uuid, "consumer_generation": row.generation})
    return Findings.of(orphans, limit)
