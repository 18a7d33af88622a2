# SPDX-License-Identifier: Apache-2.0
"""Providers as rows of columns, which are only appended.

A row is dead if its provider was deleted or has moved to another row. Most new rows are copies: a
rewritten tree differs in a few providers, a compacted table in none. All rows are therefore copied
column by column; the contents of records are first written into dead rows.

Names, and the traits, aggregates and classes of a provider, are Python objects. They are stored by
handle, so that copying a row copies no objects.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from treeclaim.forest.table.attributes import AttributeColumns
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import NO_ROW, Column, Rows
from treeclaim.forest.table.consumption import Uses, link_all
from treeclaim.forest.table.holdings import Holdings, Memberships, rows_by_group
from treeclaim.forest.table.layout import Layout, group_values, lay_out
from treeclaim.model.changes import UsageChange
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, INVENTORIES, SHOWN_LINKS, TRAITS
from treeclaim.model.provider import (
    Attributes,
    AttributeValue,
    ConsumptionRecord,
    InventoryRecord,
    Provider,
    ProviderRecord,
    are_same_attributes,
)
from treeclaim.model.whole import WholeInventory

ROWS_COPIED_TOGETHER = 1024
"""Rows that a step of compaction copies, in less than a millisecond."""

GROUPS_COPIED_TOGETHER = 64
"""Distinct classes of the rows that a step copies: appending to the columns of a class takes some 60
microseconds, however few rows it has. Traits and aggregates may be sixteen times as many.
"""

_LISTS_FOR_A_CLASS = 16
"""Lists of rows that are appended to in the time of the columns of one class."""

_STAMPS = count(1)
"""Numbers that are unique to a state of a row, even if a table is created anew."""

_COPIED = ("id", "uuid", "generation", "modified_at", "stamp", "tree_stamp", "handle")
"""Columns that a copy of a row keeps."""

_COLUMNS = (*_COPIED, "parent", "root", "end", "alive")


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The columns `parent`, `root` and `end` of a `ProviderTable` for new rows, all int64."""

    parent: Rows
    root: Rows
    end: Rows


class ProviderTable:
    """The rows of providers.

    Attributes:
        id, generation, modified_at: Columns with these values of the store.
        uuid: Column of `S36` byte strings.
        root, parent, end: Columns of rows: the tree's root, the direct parent (or NO_ROW), and
            one past the last row of the provider's subtree.
        alive: Column of truth values; False for rows that were replaced or deleted.
        stamp: Column of numbers that differ after each change of the row's values.
        tree_stamp: At a root, a number that changes with the values of the tree.
        handle: Column of handles, which identify providers across rows; see `RowIndex`.
        classes: Inventories by class id.
        holdings: Names, classes and links, by handle.
        links: Rows by link, for each part with links, by the part's name.
        attributes: Columns of attributes.
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
        self.tree_stamp = Column(np.int64)
        self.handle = Column(np.int32)
        self.classes: dict[int, ClassInventories] = {}
        self.holdings = Holdings()
        self.links: dict[str, Memberships[Any]] = {
            part.name: Memberships() for part in SHOWN_LINKS
        }
        self.attributes = AttributeColumns()

    @property
    def row_count(self) -> int:
        """Return the number of rows, dead ones included."""
        return len(self.id)

    def links_of(self, part: str, row: int) -> tuple[Any, ...]:
        """Return the ascending entries of a row in a part; see `Holdings.lists`."""
        return self.holdings.lists[part][int(self.handle.values[row])]

    def inventory_indices(self, row: int) -> list[tuple[int, int]]:
        """Return the class id and the index of each inventory of a row, in order of class id."""
        return [
            (class_id, self.classes[class_id].index_of(row))
            for class_id in self.links_of(INVENTORIES.name, row)
        ]

    def has_shape_of(self, row: int, attributes: Attributes, record: ProviderRecord) -> bool:
        """Return whether a row differs from a record only in values that are written in place."""
        parent = int(self.parent.values[row])
        parent_id = None if parent == NO_ROW else int(self.id.values[parent])
        # Some databases reuse the id of a deleted provider.
        return (
            self.uuid_of(row) == record.uuid
            and parent_id == record.parent_id
            and int(self.id.values[self.root.values[row]]) == record.root_id
            and all(self.links_of(name, row) == record.links.get(name, ()) for name in self.links)
            and are_same_attributes(attributes, record.attributes)
            and self.links_of(INVENTORIES.name, row)
            == tuple(inventory.class_id for inventory in record.inventories)
            and self._has_consumption_of(row, record)
        )

    def _has_consumption_of(self, row: int, record: ProviderRecord) -> bool:
        if not self.holdings.patterns.are_any:
            return not any(inventory.consumes for inventory in record.inventories)
        pairs = zip(self.inventory_indices(row), record.inventories, strict=True)
        return all(
            self.consumed_by(row, class_id, index) == inventory.consumes
            for (class_id, index), inventory in pairs
        )

    def uses_of(self, class_id: int, index: int) -> Uses:
        """Return the consumption of an inventory, relative to its row."""
        return self.holdings.patterns[int(self.classes[class_id].pattern.values[index])]

    def consumed_by(self, row: int, class_id: int, index: int) -> tuple[ConsumptionRecord, ...]:
        """Return the consumption of an inventory, ascending."""
        uses = self.uses_of(class_id, index)
        if not uses:
            return ()
        consumed = [
            ConsumptionRecord(int(self.id.values[row + use.offset]), *use[1:]) for use in uses
        ]
        return tuple(sorted(consumed))

    @property
    def living_rows(self) -> Rows:
        """Return the rows of all providers, ascending."""
        rows: Rows = np.flatnonzero(self.alive.values)
        return rows

    def rows_with_trait(self, trait_id: int) -> Rows:
        """Return the rows of providers with a trait, ascending."""
        return self.links[TRAITS.name].rows(trait_id, self.alive.values)

    def rows_in_aggregate(self, aggregate: str) -> Rows:
        """Return the rows of providers in an aggregate (uuid, literally), ascending."""
        return self.links[AGGREGATES.name].rows(aggregate, self.alive.values)

    def uuid_of(self, row: int) -> str:
        """Return the uuid of a row."""
        return bytes(self.uuid.values[row]).decode()

    def provider(self, row: int) -> Provider:
        """Return a row as clients see it."""
        parent = int(self.parent.values[row])
        return Provider(
            uuid=self.uuid_of(row),
            name=self.holdings.names[self.handle.values[row]],
            generation=int(self.generation.values[row]),
            parent_uuid=None if parent == NO_ROW else self.uuid_of(parent),
            root_uuid=self.uuid_of(int(self.root.values[row])),
            modified_at=float(self.modified_at.values[row]),
        )

    def names(self, rows: Sequence[int] | Rows) -> list[str]:
        """Return the names of some rows."""
        return [self.holdings.names[handle] for handle in self.handle.values[rows].tolist()]

    def attributes_of(self, row: int) -> dict[str, AttributeValue]:
        """Return the attributes of a row."""
        return self.attributes_of_each(np.array([row]))[0]

    def attributes_of_each(self, rows: Rows) -> list[dict[str, AttributeValue]]:
        """Return the attributes of each row, in order of their names."""
        names = self.holdings.lists[ATTRIBUTES.name]
        handles = self.handle.values[rows].tolist()
        return self.attributes.read_rows(rows, [names[handle] for handle in handles])

    def record(self, row: int) -> ProviderRecord:
        """Return a row as a record."""
        parent = int(self.parent.values[row])
        return ProviderRecord(
            id=int(self.id.values[row]),
            uuid=self.uuid_of(row),
            name=self.holdings.names[self.handle.values[row]],
            generation=int(self.generation.values[row]),
            parent_id=None if parent == NO_ROW else int(self.id.values[parent]),
            root_id=int(self.id.values[self.root.values[row]]),
            modified_at=float(self.modified_at.values[row]),
            inventories=tuple(
                InventoryRecord(
                    class_id=class_id,
                    inventory=columns.inventory(index),
                    used=columns.allocated(index),
                    modified_at=float(columns.modified_at.values[index]),
                    consumes=self.consumed_by(row, class_id, index),
                )
                for class_id, index in self.inventory_indices(row)
                for columns in (self.classes[class_id],)
            ),
            links={name: self.links_of(name, row) for name in self.links},
            attributes=self.attributes_of(row),
        )

    def append_records(self, records: Sequence[ProviderRecord], handles: Sequence[int]) -> range:
        """Append the contents of records as dead rows, to be copied by `append_copies`; return these rows.

        Their places in trees are not set.
        """
        rows = range(self.row_count, self.row_count + len(records))
        self.id.extend([record.id for record in records])
        self.uuid.extend([record.uuid.encode() for record in records])
        self.generation.extend([record.generation for record in records])
        self.modified_at.extend([record.modified_at for record in records])
        self.stamp.extend(np.zeros(len(records), dtype=np.int64))
        self.tree_stamp.extend(np.zeros(len(records), dtype=np.int64))
        self.handle.extend(handles)
        self.parent.extend(np.full(len(records), NO_ROW))
        self.root.extend(rows)
        self.end.extend(rows)
        self.alive.extend(np.zeros(len(records), dtype=np.bool_))
        inventories_by_class: dict[int, list[tuple[int, InventoryRecord]]] = defaultdict(list)
        for row, record in zip(rows, records, strict=True):
            for inventory in record.inventories:
                inventories_by_class[inventory.class_id].append((row, inventory))
        for class_id, pairs in inventories_by_class.items():
            self.classes.setdefault(class_id, ClassInventories()).extend(*zip(*pairs, strict=True))
        self.attributes.append(rows.start, [record.attributes for record in records])
        return rows

    def append_copies(self, source: "ProviderTable", rows: Rows, places: RowPlaces) -> range:
        """Append copies of rows of a table, which may be this one; return the new rows."""
        new_rows = range(self.row_count, self.row_count + len(rows))
        for name in _COPIED:
            getattr(self, name).extend(getattr(source, name).values[rows])
        self.parent.extend(places.parent)
        self.root.extend(places.root)
        self.end.extend(places.end)
        self.alive.extend(np.ones(len(rows), dtype=np.bool_))
        handles = self.handle.values[new_rows.start :].tolist()
        lists = {
            name: [entries[handle] for handle in handles]
            for name, entries in self.holdings.lists.items()
        }
        for class_id, of_class in rows_by_group(new_rows.start, lists[INVENTORIES.name]).items():
            columns = source.classes[class_id]
            if class_id not in self.classes:
                self.classes[class_id] = ClassInventories()
                self.classes[class_id].make_room(2 * len(columns))
            self.classes[class_id].append_copies(
                of_class, columns, rows[of_class - new_rows.start]
            )
        for name, links in self.links.items():
            links.append(new_rows.start, lists[name])
        for attribute, having in rows_by_group(new_rows.start, lists[ATTRIBUTES.name]).items():
            self.attributes.append_copies(
                attribute, having, source.attributes, rows[having - new_rows.start]
            )
        return new_rows

    def load(self, inventory: WholeInventory) -> Layout:
        """Load a whole inventory into an empty table; return the layout of its rows."""
        layout = lay_out(inventory.id, inventory.parent_id)
        provider, count = layout.provider, len(layout.provider)
        self.id.extend(inventory.id[provider])
        self.uuid.extend(inventory.uuid[provider])
        self.generation.extend(inventory.generation[provider])
        self.modified_at.extend(inventory.modified_at[provider])
        self.parent.extend(layout.parent)
        self.root.extend(layout.root)
        self.end.extend(layout.end)
        self.alive.extend(np.ones(count, dtype=np.bool_))
        self.stamp.extend(np.full(count, next(_STAMPS)))
        self.tree_stamp.extend(self.stamp.values)
        self.handle.extend(np.arange(count))
        self.holdings.names = [inventory.name[at] for at in provider.tolist()]
        self._load_inventories(inventory, layout)
        for name, links in self.links.items():
            self.holdings.lists[name] = links.load(inventory.links[name], layout)
        self.holdings.lists[ATTRIBUTES.name] = self.attributes.load(inventory.attributes, layout)
        link_all(self.classes, self.holdings.patterns, layout, inventory.consumption)
        return layout

    def _load_inventories(self, inventory: WholeInventory, layout: Layout) -> None:
        columns = inventory.inventories
        rows = layout.rows_of(columns.provider_id)
        order = np.lexsort((rows, columns.class_id))
        order = order[rows[order] != NO_ROW]
        class_ids, starts = np.unique(columns.class_id[order], return_index=True)
        for class_id, which in zip(class_ids.tolist(), np.split(order, starts[1:]), strict=False):
            self.classes[class_id] = ClassInventories()
            self.classes[class_id].load(rows[which], columns, which)
        self.holdings.lists[INVENTORIES.name] = list(
            group_values(rows[order], columns.class_id[order], len(layout.provider))
        )

    def write(self, row: int, record: ProviderRecord) -> None:
        """Write the values that change in place: name, generation, amounts and usage."""
        self.generation.values[row] = record.generation
        self.modified_at.values[row] = record.modified_at
        self.mark_changed(np.array([row]))
        self.holdings.names[self.handle.values[row]] = record.name
        for (class_id, index), inventory in zip(
            self.inventory_indices(row), record.inventories, strict=True
        ):
            self.classes[class_id].overwrite(index, inventory)

    def write_usage(self, rows: Sequence[int], changes: Sequence[UsageChange]) -> None:
        """Write the changes of claims: usage and, where it was raised, the generation."""
        self.mark_changed(np.array(rows, dtype=np.int64))
        by_class: dict[int, tuple[list[int], list[int]]] = {}
        for row, change in zip(rows, changes, strict=True):
            if change.steps:
                self.generation.values[row] = change.generation
                self.modified_at.values[row] = change.modified_at
            for class_id, amount in change.used.items():
                rows_of_class, amounts = by_class.setdefault(class_id, ([], []))
                rows_of_class.append(row)
                amounts.append(amount)
        for class_id, (rows_of_class, amounts) in by_class.items():
            columns = self.classes.get(class_id)
            if columns is not None:
                has, indices = columns.indices_of(np.array(rows_of_class))
                columns.add_usage(indices, np.array(amounts)[has])

    def classes_of(self, rows: Rows) -> set[int]:
        """Return the ids of the classes of the inventories of these rows."""
        class_ids = self.holdings.lists[INVENTORIES.name]
        return set().union(*{class_ids[handle] for handle in self.handle.values[rows].tolist()})

    def with_few_groups(self, rows: Rows, most_rows: int) -> Rows:
        """Return the leading rows, at least one, with few enough classes and links to copy in one step.

        The limits grow with `most_rows`, by `GROUPS_COPIED_TOGETHER` for `ROWS_COPIED_TOGETHER` rows.
        """
        handles = self.handle.values[rows].tolist()
        share = most_rows / ROWS_COPIED_TOGETHER
        most_classes = int(share * GROUPS_COPIED_TOGETHER)
        for name, list_by_handle in self.holdings.lists.items():
            most = most_classes * (1 if name == INVENTORIES.name else _LISTS_FOR_A_CLASS)
            if len(set[Any]().union(*map(list_by_handle.__getitem__, handles))) > most:
                groups: set[Any] = set()
                for count, handle in enumerate(handles):
                    groups.update(list_by_handle[handle])
                    if len(groups) > most and count:
                        del handles[count:]
                        break
        return rows[: len(handles)]

    def mark_dead(self, rows: Rows, class_ids: Iterable[int]) -> None:
        """Mark rows as dead, with their inventories of these classes."""
        self.alive.values[rows] = False
        for class_id in class_ids:
            if class_id in self.classes:
                self.classes[class_id].mark_dead(rows)

    def mark_changed(self, rows: Rows) -> None:
        """Mark the values of rows as changed."""
        stamp = next(_STAMPS)
        self.stamp.values[rows] = stamp
        self.tree_stamp.values[self.root.values[rows]] = stamp

    def prepare_replacement(self, source: "ProviderTable", count: int) -> None:
        """Prepare to replace a table with `count` living rows.

        This table reserves capacity for twice as many rows, and shares everything stored by handle.
        """
        self.holdings = source.holdings
        for name in _COLUMNS:
            getattr(self, name).make_room(2 * count)

    def adopt(self, source: "ProviderTable") -> None:
        """Take over the columns of another table, which must not be used afterwards."""
        vars(self).update(vars(source))
