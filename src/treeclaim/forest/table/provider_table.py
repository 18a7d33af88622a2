# SPDX-License-Identifier: Apache-2.0
"""Writes providers into rows, which are only ever added at the end.

A row whose provider has gone, or is in another row by now, is dead. Most rows that are added are copies: a tree that
is written again differs in a few providers, and a table that takes the place of another in none. So all
are copied from rows, column by column, and what records tell is first put into dead rows.

Names, and what a provider has of traits, aggregates and classes, are Python's objects. They are by
handle, which outlasts rows, so that a copy of a row needs none of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import NO_ROW, Rows
from treeclaim.forest.table.consumption import link_all
from treeclaim.forest.table.holdings import rows_by_group
from treeclaim.forest.table.layout import Layout, group_values, lay_out
from treeclaim.forest.table.provider_rows import ProviderRows
from treeclaim.model.changes import UsageChange
from treeclaim.model.provider import InventoryRecord, ProviderRecord
from treeclaim.model.whole import WholeInventory

_LISTS_FOR_A_CLASS = 16
"""Lists of rows that are added to in the time that the columns of a class take."""

_STAMPS = count(1)
"""Numbers that no two states of any row have in common, however often a table is begun anew."""

_COPIED = ("id", "uuid", "generation", "modified_at", "stamp", "handle")
"""Columns that a copy of a row takes over."""

_COLUMNS = (*_COPIED, "parent", "root", "end", "alive")


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The places of providers in a table, by row; int64 all.

    Attributes:
        parent, root, end: As the columns of `ProviderRows`.
    """

    parent: Rows
    root: Rows
    end: Rows


class ProviderTable(ProviderRows):
    """Rows that are written."""

    def put(self, records: Sequence[ProviderRecord], handles: Sequence[int]) -> range:
        """Add what records tell as dead rows, to be copied; return these rows.

        Who is above whom is not told.
        """
        rows = range(self.row_count, self.row_count + len(records))
        self.id.extend([record.id for record in records])
        self.uuid.extend([record.uuid.encode() for record in records])
        self.generation.extend([record.generation for record in records])
        self.modified_at.extend([record.modified_at for record in records])
        self.stamp.extend(np.full(len(records), next(_STAMPS)))
        self.handle.extend(handles)
        self.parent.extend(np.full(len(records), NO_ROW))
        self.root.extend(rows)
        self.end.extend(rows)
        self.alive.extend(np.zeros(len(records), dtype=np.bool_))
        held: dict[int, list[tuple[int, InventoryRecord]]] = defaultdict(list)
        for row, record in zip(rows, records, strict=True):
            for inventory in record.inventories:
                held[inventory.class_id].append((row, inventory))
        for class_id, pairs in held.items():
            self.classes.setdefault(class_id, ClassInventories()).extend(*zip(*pairs, strict=True))
        self.attributes.append(rows.start, [record.attributes for record in records])
        return rows

    def gather(self, source: "ProviderTable", rows: Rows, places: RowPlaces) -> range:
        """Add copies of rows of a table, perhaps this one, at the end; return the new rows."""
        new = range(self.row_count, self.row_count + len(rows))
        for name in _COPIED:
            getattr(self, name).extend(getattr(source, name).values[rows])
        self.parent.extend(places.parent)
        self.root.extend(places.root)
        self.end.extend(places.end)
        self.alive.extend(np.ones(len(rows), dtype=np.bool_))
        handles = self.handle.values[new.start :].tolist()
        class_ids = [self.holdings.class_ids[handle] for handle in handles]
        for class_id, of_class in rows_by_group(new.start, class_ids).items():
            columns = source.classes[class_id]
            if class_id not in self.classes:
                self.classes[class_id] = ClassInventories()
                self.classes[class_id].make_room(2 * len(columns))
            self.classes[class_id].gather(of_class, columns, rows[of_class - new.start])
        for name, links in self.links.items():
            held = self.holdings.links[name]
            links.append(new.start, [held[handle] for handle in handles])
        if not source.attributes.is_empty:
            names = [self.holdings.attribute_names.get(handle, ()) for handle in handles]
            for attribute, having in rows_by_group(new.start, names).items():
                self.attributes.gather(
                    attribute, having, source.attributes, rows[having - new.start]
                )
        return new

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
        self.handle.extend(np.arange(count))
        self.holdings.names = [whole.name[at] for at in provider.tolist()]
        self._begin_with_inventories(whole, layout)
        for name, links in self.links.items():
            self.holdings.links[name] = links.begin_with(whole.links[name], layout)
        self.holdings.attribute_names = self.attributes.begin_with(whole.attributes, layout)
        link_all(self.classes, self.holdings.patterns, layout, whole.consumption)
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
        self.holdings.class_ids = group_values(
            rows[order], columns.class_id[order], len(layout.provider)
        )

    def write(self, row: int, record: ProviderRecord) -> None:
        """Write the columns that change in place: names, generations, amounts and usage."""
        self.generation.values[row] = record.generation
        self.modified_at.values[row] = record.modified_at
        self.stamp.values[row] = next(_STAMPS)
        self.holdings.names[self.handle.values[row]] = record.name
        for (class_id, index), inventory in zip(
            self.inventory_indices(row), record.inventories, strict=True
        ):
            self.classes[class_id].refresh(index, inventory)

    def count_each(self, rows: Sequence[int], changes: Sequence[UsageChange]) -> None:
        """Write what claims changed: usage and, where it was raised, the generation."""
        self.touch(np.array(rows, dtype=np.int64))
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
                columns.use_each(indices, np.array(amounts)[has])

    def classes_of(self, rows: Rows) -> set[int]:
        """Return the ids of the classes that some rows have inventories of."""
        handles = self.handle.values[rows].tolist()
        return set().union(*{self.holdings.class_ids[handle] for handle in handles})

    def with_few_groups(self, rows: Rows, most_rows: int) -> Rows:
        """Return the first of some rows, one at least, that have few different classes, traits and so on.

        As few as go with so many rows at most.
        """
        handles = self.handle.values[rows].tolist()
        share = most_rows / thresholds.ROWS_COPIED_TOGETHER
        most_classes = int(share * thresholds.GROUPS_COPIED_TOGETHER)
        kinds: list[tuple[list[tuple[Any, ...]], int]] = [(self.holdings.class_ids, most_classes)]
        most_lists = _LISTS_FOR_A_CLASS * most_classes
        kinds += [(links, most_lists) for links in self.holdings.links.values()]
        for held, most in kinds:
            if len(set[Any]().union(*map(held.__getitem__, handles))) > most:
                groups: set[Any] = set()
                for count, handle in enumerate(handles):
                    groups.update(held[handle])
                    if len(groups) > most and count:
                        del handles[count:]
                        break
        return rows[: len(handles)]

    def bury(self, rows: Rows, class_ids: Iterable[int]) -> None:
        """Mark some rows as dead, and their inventories, which are of these classes."""
        self.alive.values[rows] = False
        for class_id in class_ids:
            if class_id in self.classes:
                self.classes[class_id].bury(rows)

    def touch(self, rows: Rows) -> None:
        """Note that some rows tell something else now."""
        self.stamp.values[rows] = next(_STAMPS)

    def begin_beside(self, other: "ProviderTable", count: int) -> None:
        """Begin to take the place of another table, of which so many rows are alive.

        There is room for as many again. What is by handle is the same for both.
        """
        self.holdings = other.holdings
        for name in _COLUMNS:
            getattr(self, name).make_room(2 * count)

    def become(self, other: "ProviderTable") -> None:
        """Have the rows of another table from now on, which must not be used any more."""
        vars(self).update(vars(other))
