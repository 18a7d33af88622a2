# SPDX-License-Identifier: Apache-2.0
"""Providers as rows, with indexes of rows by trait and by aggregate.

Each property is a column over dense row numbers. Rows are only ever added at the end; a row whose
provider has gone, or is in another row by now, is dead.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Column, Rows
from treeclaim.forest.table.layout import Layout, grouped, lay_out
from treeclaim.forest.table.memberships import Memberships
from treeclaim.forest.table.planting import PlannedRow
from treeclaim.model.changes import UsageChange
from treeclaim.model.parts import AGGREGATES, LINKED_PARTS, TRAITS
from treeclaim.model.provider import InventoryRecord, Provider, ProviderRecord
from treeclaim.model.whole import WholeInventory

NO_ROW = -1
"""Stands for "no parent" in the column of parents."""

_STAMPS = count(1)
"""Numbers that no two states of any row have in common, however often a table is begun anew."""


class ProviderTable:
    """The rows of providers.

    Attributes:
        id, generation, modified_at: Columns of what the store has.
        uuid: Column of `S36` byte strings.
        root, parent, end: Columns of rows: the tree's root, the direct parent (or NO_ROW), and the
            first row behind the provider's subtree.
        alive: Column of truth values; False for rows that were replaced or deleted.
        stamp: Column of numbers, another one after each change of a row.
        classes: Inventories by id of the resource class.
        links: What each row has of every other part, by the part's name.
        trait_links: Ids of traits.
        aggregate_links: Uuids of aggregates.
    """

    def __init__(self) -> None:
        self.id = Column(np.int64)
        self.uuid = Column("S36")
        self.generation = Column(np.int64)
        self.modified_at = Column(np.float64)
        self.parent = Column(np.int64)
        self.root = Column(np.int64)
        self.end = Column(np.int64)
        self.alive = Column(np.bool_)
        self.stamp = Column(np.int64)
        self.classes: dict[int, ClassInventories] = {}
        self._names: list[str] = []
        self._class_ids: list[tuple[int, ...]] = []
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.links: dict[str, Memberships[Any]] = {
            part.name: Memberships() for part in LINKED_PARTS
        }
        self.trait_links: Memberships[int] = self.links[TRAITS.name]
        self.aggregate_links: Memberships[str] = self.links[AGGREGATES.name]

    @property
    def row_count(self) -> int:
        """Return the number of rows, dead ones included."""
        return len(self.id)

    # -- writing ---------------------------------------------------------------------------

    def append(self, planned: Sequence[PlannedRow]) -> None:
        """Add rows at the end."""
        first = self.row_count
        self._append_columns(planned)
        self._append_inventories(first, planned)
        for name, links in self.links.items():
            links.append(planned_row.record.links[name] for planned_row in planned)

    def begin_with(self, whole: WholeInventory) -> Layout:
        """Take everything that there is, in place of what was known; return which row is whose."""
        layout = lay_out(whole.id, whole.parent_id)
        provider, count = layout.provider, len(layout.provider)
        self.id.extend(whole.id[provider])
        self.uuid.extend(whole.uuid[provider])
        self.generation.extend(whole.generation[provider])
        self.modified_at.extend(whole.modified_at[provider])
        self.parent.extend(layout.parent)
        self.root.extend(layout.root)
        self.end.extend(layout.end)
        self.alive.extend(np.ones(count, dtype=np.bool_))
        self.stamp.extend(np.full(count, next(_STAMPS)))
        self._names = [whole.name[at] for at in provider.tolist()]
        self._begin_with_inventories(whole, layout)
        for name, links in self.links.items():
            links.begin_with(whole.links[name], layout)
        return layout

    def _begin_with_inventories(self, whole: WholeInventory, layout: Layout) -> None:
        columns = whole.inventories
        rows = layout.rows_of(columns.provider_id)
        order = np.lexsort((rows, columns.class_id))
        order = order[rows[order] != NO_ROW]
        class_ids, starts = np.unique(columns.class_id[order], return_index=True)
        for class_id, which in zip(class_ids.tolist(), np.split(order, starts[1:]), strict=False):
            self.classes[class_id] = ClassInventories()
            self.classes[class_id].begin_with(rows[which], columns, which)
        self._class_ids = grouped(rows[order], columns.class_id[order], len(layout.provider))

    def write(self, row: int, record: ProviderRecord) -> None:
        """Write the columns that change in place: names, generations, amounts and usage."""
        self.generation.values[row] = record.generation
        self.modified_at.values[row] = record.modified_at
        self.stamp.values[row] = next(_STAMPS)
        self._names[row] = record.name
        for (class_id, index), inventory in zip(
            self.inventory_indices(row), record.inventories, strict=True
        ):
            self.classes[class_id].refresh(index, inventory)

    def count(self, row: int, change: UsageChange) -> None:
        """Write what claims changed: usage and, where it was raised, the generation."""
        if change.steps:
            self.generation.values[row] = change.generation
            self.modified_at.values[row] = change.modified_at
        self.stamp.values[row] = next(_STAMPS)
        for class_id in change.used.keys() & set(self._class_ids[row]):
            columns = self.classes[class_id]
            columns.use(columns.index_of(row), change.used[class_id])

    def bury(self, row: int) -> None:
        """Mark a row as dead."""
        self.alive.values[row] = False
        for class_id, index in self.inventory_indices(row):
            self.classes[class_id].bury(index)

    def _append_columns(self, planned: Sequence[PlannedRow]) -> None:
        records = [planned_row.record for planned_row in planned]
        self.id.extend([record.id for record in records])
        self.uuid.extend([record.uuid.encode() for record in records])
        self.generation.extend([record.generation for record in records])
        self.modified_at.extend([record.modified_at for record in records])
        self.parent.extend([planned_row.parent for planned_row in planned])
        self.root.extend([planned_row.root for planned_row in planned])
        self.end.extend([planned_row.end for planned_row in planned])
        self.alive.extend([True] * len(planned))
        self.stamp.extend([next(_STAMPS)] * len(planned))
        self._names.extend(record.name for record in records)

    def _append_inventories(self, first: int, planned: Sequence[PlannedRow]) -> None:
        rows: dict[int, list[int]] = defaultdict(list)
        records: dict[int, list[InventoryRecord]] = defaultdict(list)
        for row, planned_row in enumerate(planned, first):
            class_ids = tuple(inventory.class_id for inventory in planned_row.record.inventories)
            self._class_ids.append(self._shared.setdefault(class_ids, class_ids))
            for inventory in planned_row.record.inventories:
                rows[inventory.class_id].append(row)
                records[inventory.class_id].append(inventory)
        for class_id, class_rows in rows.items():
            if class_id not in self.classes:
                self.classes[class_id] = ClassInventories()
            self.classes[class_id].extend(class_rows, records[class_id])

    def inventory_indices(self, row: int) -> list[tuple[int, int]]:
        """Return where a row's inventories are: class id and index, in order of class id."""
        return [
            (class_id, self.classes[class_id].index_of(row)) for class_id in self._class_ids[row]
        ]

    # -- reading ---------------------------------------------------------------------------

    def has_shape_of(self, row: int, record: ProviderRecord) -> bool:
        """Tell whether a row differs from a record at most in columns that change in place."""
        parent = int(self.parent.values[row])
        parent_id = None if parent == NO_ROW else int(self.id.values[parent])
        # Some databases give the id of a deleted provider to a new one.
        return (
            self.uuid_of(row) == record.uuid
            and parent_id == record.parent_id
            and int(self.id.values[self.root.values[row]]) == record.root_id
            and all(links.of(row) == record.links[name] for name, links in self.links.items())
            and self._class_ids[row]
            == tuple(inventory.class_id for inventory in record.inventories)
        )

    @property
    def living_rows(self) -> Rows:
        """Return the rows of all providers, ascending."""
        rows: Rows = np.flatnonzero(self.alive.values)
        return rows

    def rows_with_trait(self, trait_id: int) -> Rows:
        """Return the rows of providers that have a trait, ascending."""
        return self.trait_links.rows(trait_id, self.alive.values)

    def rows_in_aggregate(self, aggregate: str) -> Rows:
        """Return the rows of providers in an aggregate (uuid, literally), ascending."""
        return self.aggregate_links.rows(aggregate, self.alive.values)

    def uuid_of(self, row: int) -> str:
        """Return the uuid of a row."""
        return bytes(self.uuid.values[row]).decode()

    def provider(self, row: int) -> Provider:
        """Return a row as clients see it."""
        parent = int(self.parent.values[row])
        return Provider(
            uuid=self.uuid_of(row),
            name=self._names[row],
            generation=int(self.generation.values[row]),
            parent_uuid=None if parent == NO_ROW else self.uuid_of(parent),
            root_uuid=self.uuid_of(int(self.root.values[row])),
            modified_at=float(self.modified_at.values[row]),
        )

    def names(self, rows: Sequence[int]) -> list[str]:
        """Return the names of some rows."""
        return [self._names[row] for row in rows]

    def aggregates(self, row: int) -> list[str]:
        """Return the aggregates of a row."""
        return list(self.aggregate_links.of(row))

    def record(self, row: int) -> ProviderRecord:
        """Return a row as a record."""
        parent = int(self.parent.values[row])
        return ProviderRecord(
            id=int(self.id.values[row]),
            uuid=self.uuid_of(row),
            name=self._names[row],
            generation=int(self.generation.values[row]),
            parent_id=None if parent == NO_ROW else int(self.id.values[parent]),
            root_id=int(self.id.values[self.root.values[row]]),
            modified_at=float(self.modified_at.values[row]),
            inventories=tuple(
                self.classes[class_id].record(index, class_id)
                for class_id, index in self.inventory_indices(row)
            ),
            links={name: links.of(row) for name, links in self.links.items()},
        )
