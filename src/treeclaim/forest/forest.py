# SPDX-License-Identifier: Apache-2.0
"""The Forest: every provider, kept for searching.

Why this shape. A search looks at one property of all providers at a time, so each property is a
column over dense row numbers. The rows of one tree are contiguous and in pre-order, so that "is in
the subtree of" is two comparisons. Inventories are columns per resource class; traits and
aggregates are lists of rows.

What changes often, amounts in use and generations, is written in place. What changes seldom, the
shape of a tree or which classes, traits and aggregates a provider has, makes the whole tree be
written again at the end, and its old rows are dead from then on. So all columns and row lists are
always sorted by row, and a change costs what its tree costs, whatever the size of the Forest. When
too many rows are dead, everything is written anew.

The order of rows thus depends on history. What clients see is ordered by `TreeOrder` instead,
which depends on the data alone, so that every worker gives the same answer.
"""

import copy
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treeclaim.forest.class_inventories import ClassInventories
from treeclaim.forest.columns import Column, Mask, Rows
from treeclaim.forest.fragments import summary_fragment
from treeclaim.forest.memberships import Memberships
from treeclaim.forest.memory import Memory
from treeclaim.forest.order import TreeOrder
from treeclaim.forest.planting import PlannedRow, plan_rows
from treeclaim.forest.summary_texts import SummaryTexts
from treeclaim.model.catalogue import Catalogue
from treeclaim.model.changes import Changes
from treeclaim.model.inventory import Inventory
from treeclaim.model.provider import InventoryRecord, Provider, ProviderRecord

NO_ROW = -1
"""Stands for "no parent" in the column of parents."""

_NO_INVENTORIES = ClassInventories()

_FEWEST_DEAD_ROWS = 4096

_LEAST_REMEMBERED = 16_000_000
_REMEMBERED_FOR_A_ROW = 300
"""Bytes of what is remembered of the shape: the greater of this many and so many for each row."""


@dataclass(frozen=True, slots=True)
class InventoryView:
    """One inventory of a provider as clients see it.

    Attributes:
        resource_class: Name of the class.
        inventory: The amounts.
        used: Units allocated.
        modified_at: Last update (or creation), in seconds since the epoch.
    """

    resource_class: str
    inventory: Inventory
    used: int
    modified_at: float


class Forest:
    """All providers as columns; see the module's description.

    Attributes:
        catalogue: The traits and resource classes that exist.
        uuid: Column of `S36` byte strings.
        root, parent, end: Columns of rows: the tree's root, the direct parent (or NO_ROW), and the
            first row behind the provider's subtree.
        alive: Column of truth values; False for rows that were replaced or deleted.
        classes: Inventories by id of the resource class.
        summaries: Texts of the trees, ready to be joined.
        memory: What depends on the shape alone. The shape is everything but amounts, usage, names
            and generations: which providers there are in which tree, and which classes, traits
            and aggregates each has.
    """

    def __init__(self) -> None:
        self.catalogue = Catalogue.of((), ())
        self._clear()

    def _clear(self) -> None:
        self.id = Column(np.int64)
        self.uuid = Column("S36")
        self.generation = Column(np.int64)
        self.modified_at = Column(np.float64)
        self.parent = Column(np.int64)
        self.root = Column(np.int64)
        self.end = Column(np.int64)
        self.alive = Column(np.bool_)
        self.classes: dict[int, ClassInventories] = {}
        self._names: list[str] = []
        self._traits: list[tuple[int, ...]] = []
        self._aggregates: list[tuple[str, ...]] = []
        self._class_ids: list[tuple[int, ...]] = []
        self.summaries = SummaryTexts(self._summary)
        self._shared: dict[tuple[Any, ...], Any] = {}
        self._trait_rows: Memberships[int] = Memberships()
        self._aggregate_rows: Memberships[str] = Memberships()
        self._row_by_id: dict[int, int] = {}
        self._row_by_uuid: dict[str, int] = {}
        self._row_by_name: dict[str, int] = {}
        self._order: TreeOrder | None = None
        self.memory = Memory(_LEAST_REMEMBERED)

    def __len__(self) -> int:
        """Return the number of providers."""
        return len(self._row_by_id)

    @property
    def row_count(self) -> int:
        """Return the number of rows, dead ones included."""
        return len(self.id)

    # -- keeping up with the store ---------------------------------------------------------

    def apply(self, changes: Changes) -> None:
        """Bring the Forest to the state that the changes describe."""
        if changes.catalogue is not None:
            self.catalogue = changes.catalogue
            self.summaries.forget_all(self.row_count)
            self.memory.clear()
        if changes.complete:
            self._clear()
        reshaped = {}
        for record in changes.records:
            row = self._row_by_id.get(record.id)
            if row is not None and self._has_shape_of(row, record):
                self._refresh(row, record)
            else:
                reshaped[record.id] = record
        removed = {one for one in changes.removed if one in self._row_by_id}
        if reshaped or removed:
            self._rewrite_trees(reshaped, removed)
        dead = self.row_count - len(self)
        if dead > max(_FEWEST_DEAD_ROWS, len(self)):
            self._rewrite_everything()

    def _has_shape_of(self, row: int, record: ProviderRecord) -> bool:
        parent = int(self.parent.values[row])
        parent_id = None if parent == NO_ROW else int(self.id.values[parent])
        # Some databases give the id of a deleted provider to a new one.
        return (
            self.uuid_of(row) == record.uuid
            and parent_id == record.parent_id
            and int(self.id.values[self.root.values[row]]) == record.root_id
            and self._traits[row] == record.trait_ids
            and self._aggregates[row] == record.aggregates
            and self._class_ids[row] == tuple(one.class_id for one in record.inventories)
        )

    def _refresh(self, row: int, record: ProviderRecord) -> None:
        self.generation.values[row] = record.generation
        self.modified_at.values[row] = record.modified_at
        if record.name != self._names[row]:
            # Two providers may have swapped names: the old one may be the other's by now.
            if self._row_by_name.get(self._names[row]) == row:
                del self._row_by_name[self._names[row]]
            self._names[row] = record.name
        self._row_by_name[record.name] = row
        for (class_id, slot), inventory in zip(self._slots(row), record.inventories, strict=True):
            self.classes[class_id].refresh(slot, inventory)
        self.summaries.forget(row)

    def _rewrite_trees(self, reshaped: dict[int, ProviderRecord], removed: set[int]) -> None:
        roots = {self._root_row_of(one) for one in (*reshaped, *removed)}
        roots |= {self._root_row_of(record.root_id) for record in reshaped.values()}
        records: dict[int, ProviderRecord] = {}
        for root in roots - {NO_ROW}:
            for row in range(root, int(self.end.values[root])):
                record = self.record(row)
                records[record.id] = record
                self._bury(row)
        records.update(reshaped)
        self._append(record for one, record in records.items() if one not in removed)

    def _root_row_of(self, provider_id: int) -> int:
        row = self._row_by_id.get(provider_id)
        return NO_ROW if row is None else int(self.root.values[row])

    def _rewrite_everything(self) -> None:
        records = [self.record(row) for row in self._row_by_id.values()]
        self._clear()
        self._append(records)

    def _bury(self, row: int) -> None:
        self.alive.values[row] = False
        for class_id, slot in self._slots(row):
            self.classes[class_id].bury(slot)
        del self._row_by_id[int(self.id.values[row])]
        for index, key in (
            (self._row_by_uuid, self.uuid_of(row)),
            (self._row_by_name, self._names[row]),
        ):
            if index.get(key) == row:
                del index[key]
        self.summaries.forget(row)

    def _append(self, records: Iterable[ProviderRecord]) -> None:
        first = self.row_count
        planned = plan_rows(records, first)
        self._append_columns(planned)
        self._append_inventories(first, planned)
        self._trait_rows.append(first, (one.record.trait_ids for one in planned))
        self._aggregate_rows.append(first, (one.record.aggregates for one in planned))
        for row, one in enumerate(planned, first):
            self._row_by_id[one.record.id] = row
            self._row_by_uuid[one.record.uuid] = row
            self._row_by_name[one.record.name] = row
        self._order = None
        self.memory.clear()
        self.memory.most_bytes = max(_LEAST_REMEMBERED, self.row_count * _REMEMBERED_FOR_A_ROW)

    def _append_columns(self, planned: Sequence[PlannedRow]) -> None:
        records = [one.record for one in planned]
        self.id.extend([one.id for one in records])
        self.uuid.extend([one.uuid.encode() for one in records])
        self.generation.extend([one.generation for one in records])
        self.modified_at.extend([one.modified_at for one in records])
        self.parent.extend([one.parent for one in planned])
        self.root.extend([one.root for one in planned])
        self.end.extend([one.end for one in planned])
        self.alive.extend([True] * len(planned))
        self._names.extend(one.name for one in records)
        # Many providers have the same traits and aggregates: one tuple serves them all.
        self._traits.extend(
            self._shared.setdefault(one.trait_ids, one.trait_ids) for one in records
        )
        self._aggregates.extend(
            self._shared.setdefault(one.aggregates, one.aggregates) for one in records
        )
        self.summaries.extend(len(planned))

    def _append_inventories(self, first: int, planned: Sequence[PlannedRow]) -> None:
        rows: dict[int, list[int]] = defaultdict(list)
        records: dict[int, list[InventoryRecord]] = defaultdict(list)
        for row, one in enumerate(planned, first):
            class_ids = tuple(inventory.class_id for inventory in one.record.inventories)
            self._class_ids.append(self._shared.setdefault(class_ids, class_ids))
            for inventory in one.record.inventories:
                rows[inventory.class_id].append(row)
                records[inventory.class_id].append(inventory)
        for class_id, class_rows in rows.items():
            columns = self.classes.setdefault(class_id, ClassInventories())
            columns.extend(class_rows, records[class_id])

    def _slots(self, row: int) -> list[tuple[int, int]]:
        """Return where a row's inventories are: class id and slot, in order of class id."""
        return [
            (class_id, self.classes[class_id].slot_of(row)) for class_id in self._class_ids[row]
        ]

    # -- what searches ask -----------------------------------------------------------------

    @property
    def order(self) -> TreeOrder:
        """Return the canonical order of the living rows."""
        if self._order is None:
            self._order = TreeOrder.of(
                self.id.values, self.root.values, self.end.values, self.alive.values
            )
        return self._order

    @property
    def living_rows(self) -> Rows:
        """Return the rows of all providers, ascending."""
        rows: Rows = np.flatnonzero(self.alive.values)
        return rows

    def class_inventories(self, name: str) -> ClassInventories:
        """Return the inventories of a class that exists, to be read only."""
        found = self.classes.get(self.catalogue.resource_classes[name].id)
        return _NO_INVENTORIES if found is None else found

    def rows_with_trait(self, trait_id: int) -> Rows:
        """Return the rows of providers that have a trait, ascending."""
        return self._trait_rows.rows(trait_id, self.alive.values)

    def rows_in_aggregate(self, aggregate: str) -> Rows:
        """Return the rows of providers in an aggregate (uuid, literally), ascending."""
        return self._aggregate_rows.rows(aggregate, self.alive.values)

    def with_any_trait(self, trait_ids: Iterable[int]) -> Mask:
        """Tell which rows have any of some traits; what it tells of dead rows means nothing."""
        return self._trait_rows.mask(trait_ids, self.row_count)

    def in_any_aggregate(self, aggregates: Iterable[str]) -> Mask:
        """Tell which rows are in any of some aggregates, as `with_any_trait` does."""
        return self._aggregate_rows.mask(aggregates, self.row_count)

    # -- what clients ask ------------------------------------------------------------------

    def row_of(self, uuid: str) -> int | None:
        """Return the row of the provider with exactly this uuid, or None."""
        return self._row_by_uuid.get(uuid)

    def row_of_name(self, name: str) -> int | None:
        """Return the row of the provider with exactly this name, or None."""
        return self._row_by_name.get(name)

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

    def inventories(self, row: int) -> list[InventoryView]:
        """Return the inventories of a row with their usage, in order of class id."""
        return [
            InventoryView(
                resource_class=self.catalogue.class_by_id[class_id].name,
                inventory=columns.inventory(slot),
                used=int(columns.used.values[slot]),
                modified_at=float(columns.modified_at.values[slot]),
            )
            for class_id, slot in self._slots(row)
            for columns in (self.classes[class_id],)
        ]

    def traits(self, row: int) -> list[str]:
        """Return the names of a row's traits in catalogue order."""
        rank = self.catalogue.trait_rank
        ordered = sorted(self._traits[row], key=lambda one: rank[one])
        return [self.catalogue.trait_by_id[one].name for one in ordered]

    def aggregates(self, row: int) -> list[str]:
        """Return the aggregates of a row."""
        return list(self._aggregates[row])

    def associated_traits(self) -> set[str]:
        """Return the names of all traits that some provider has."""
        return {
            self.catalogue.trait_by_id[one].name
            for one in self._trait_rows
            if len(self.rows_with_trait(one))
        }

    def _summary(self, row: int) -> bytes:
        """Write a row's entry of `provider_summaries` in its full form."""
        return summary_fragment(self.provider(row), self.inventories(row), self.traits(row))

    def emptied(self) -> "Forest":
        """Return the same providers as if nothing were allocated, to be searched at once."""
        other = copy.copy(self)
        other.classes = {number: one.emptied() for number, one in self.classes.items()}
        return other

    def record(self, row: int) -> ProviderRecord:
        """Return a row as the record it was made of."""
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
                self.classes[class_id].record(slot, class_id)
                for class_id, slot in self._slots(row)
            ),
            trait_ids=self._traits[row],
            aggregates=self._aggregates[row],
        )

    def records(self) -> list[ProviderRecord]:
        """Return all providers as records in order of id."""
        return sorted(map(self.record, self._row_by_id.values()), key=lambda one: one.id)
