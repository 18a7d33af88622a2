# SPDX-License-Identifier: Apache-2.0
"""Writes changes into the table: in place, or by rewriting whole trees at its end.

Names, generations, amounts and usage change often, and are overwritten. If the providers of a tree,
or their classes, traits and so on, change, the whole tree is rewritten and its former rows are dead.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.table.columns import NO_ROW, Integers, Rows
from treeclaim.forest.table.compaction import Compaction
from treeclaim.forest.table.consumption import (
    ConsumptionLinks,
    Use,
    add_consumed,
    consume,
    forget_consumed,
    link,
)
from treeclaim.forest.table.layout import lay_out
from treeclaim.forest.table.order import Splice, TreeOrder
from treeclaim.forest.table.provider_table import ProviderTable, RowPlaces
from treeclaim.forest.table.register import Register
from treeclaim.model.changes import UsageChange
from treeclaim.model.parts import INVENTORIES
from treeclaim.model.provider import ConsumptionRecord, ProviderRecord
from treeclaim.model.whole import NO_PARENT


@dataclass(frozen=True, slots=True)
class InPlaceWriter:
    """Overwrites values of providers, in the table and in the copies of a running compaction."""

    table: ProviderTable
    register: Register
    compaction: Compaction | None

    def write_records(self, records: Sequence[ProviderRecord]) -> dict[int, ProviderRecord]:
        """Write records in place; return those that change the shape, by id."""
        if not records:
            return {}
        reshaped = {}
        rows = self.register.by_id.get_each([record.id for record in records])
        known_rows = np.array([row for row in rows if row is not None], dtype=np.int64)
        attributes = iter(self.table.attributes_of_each(known_rows))
        for row, record in zip(rows, records, strict=True):
            if row is None or not self.table.has_shape_of(row, next(attributes), record):
                reshaped[record.id] = record
                continue
            self.register.rename(row, record)
            added_amounts = self._find_added_units(row, record)
            for table, place in self._places_of(row):
                table.write(place, record)
            for use, amount in added_amounts:
                self._add_consumption(row, use, amount)
        return reshaped

    def _find_added_units(self, row: int, record: ProviderRecord) -> list[tuple[Use, int]]:
        """Return the uses of a row's inventories, each with the units allocated since (negative if fewer)."""
        if not self.table.holdings.patterns.are_any:
            return []
        return [
            (use, inventory.used - self.table.classes[class_id].allocated(index))
            for (class_id, index), inventory in zip(
                self.table.inventory_indices(row), record.inventories, strict=True
            )
            for use in self.table.uses_of(class_id, index)
        ]

    def _add_consumption(self, row: int, use: Use, amount: int) -> None:
        if amount:
            for table, place in self._places_of(row + use.offset):
                consume(table.classes, use, np.array([place]), np.array([amount * use.amount]))
                table.mark_changed(np.array([place]))

    def write_usage(self, usage: Mapping[int, UsageChange]) -> None:
        """Write the changes of claims, with the units that they consume."""
        rows = self.register.by_id.get_each(list(usage))
        changes = {
            row: change
            for row, change in zip(rows, usage.values(), strict=True)
            if row is not None
        }
        if not changes:
            return
        if self.table.holdings.patterns.are_any:
            self._add_consumption_of_claims(changes)
        self.table.write_usage(list(changes), list(changes.values()))
        if self.compaction is not None:
            changed_rows = np.array(list(changes), dtype=np.int64)
            copies, copied_rows = self.compaction.copied_among(changed_rows)
            self.compaction.table.write_usage(copies, [changes[row] for row in copied_rows])

    def _add_consumption_of_claims(self, changes: Mapping[int, UsageChange]) -> None:
        for row, change in changes.items():
            for class_id in change.used.keys() & set(self.table.links_of(INVENTORIES.name, row)):
                index = self.table.classes[class_id].index_of(row)
                for use in self.table.uses_of(class_id, index):
                    self._add_consumption(row, use, change.used[class_id])

    def _places_of(self, row: int) -> Iterator[tuple[ProviderTable, int]]:
        """Yield the table and its row, then the compacted table and the copied row, if there is one."""
        yield self.table, row
        if self.compaction is not None:
            for copied in self.compaction.copied_among(np.array([row]))[0]:
                yield self.compaction.table, copied


_Link = tuple[int, int, int, int, int]
"""An item of `ConsumptionLinks`."""


@dataclass(frozen=True, slots=True)
class RewrittenTrees:
    """The former and new rows of trees that were rewritten.

    `rows` joins the former rows, which are dead; `class_ids` has the classes of their inventories.
    """

    old_trees: Sequence[range]
    rows: Rows
    class_ids: set[int]
    new_trees: Sequence[range]

    @property
    def added_count(self) -> int:
        """Return by how many providers the trees have grown."""
        return sum(map(len, self.new_trees)) - len(self.rows)


def rewrite_trees(
    table: ProviderTable,
    register: Register,
    reshaped: Mapping[int, ProviderRecord],
    removed: Iterable[int],
) -> RewrittenTrees:
    """Rewrite the former and present trees of providers.

    `reshaped` holds records of new providers, and of those with another shape, by id; `removed` the
    ids of deleted ones.
    """
    return _Rewriting(table, register, list(reshaped.values())).run({*reshaped, *removed})


def edit_order(
    order: TreeOrder | None, table: ProviderTable, trees: RewrittenTrees
) -> tuple[TreeOrder | None, Sequence[Splice]]:
    """Replace trees in the canonical order, which becomes unusable.

    Returns:
        The new order, None if it must be computed again; and the splices, tree by tree.
    """
    former_roots = {int(table.id.values[tree.start]): tree.start for tree in trees.old_trees}
    edits = [
        (former_roots.pop(int(table.id.values[tree.start]), None), tree)
        for tree in trees.new_trees
    ]
    edits += [(root, range(0)) for root in former_roots.values()]
    columns = table.id.values, table.root.values, table.end.values
    edited = None if order is None else order.edited(edits, *columns)
    return edited or (None, ())


@dataclass(frozen=True, slots=True)
class _Rewriting:
    table: ProviderTable
    register: Register
    records: Sequence[ProviderRecord]

    def run(self, ids: set[int]) -> RewrittenTrees:
        table, records = self.table, self.records
        old_trees = self._trees_of(ids)
        rows = np.concatenate([np.arange(0), *(np.arange(t.start, t.stop) for t in old_trees)])
        other_rows = rows[~np.isin(table.id.values[rows], list(ids))]
        class_ids = table.classes_of(rows)
        at, places = self._lay_out(other_rows)
        record_range = table.append_records(records, self._assign_handles(at - len(other_rows)))
        record_rows = np.arange(record_range.start, record_range.stop)
        new_range = table.append_copies(
            table, np.concatenate([other_rows, record_rows])[at], places
        )
        new_rows = np.arange(new_range.start, new_range.stop)
        table.mark_changed(new_rows)
        class_ids |= {stock.class_id for record in records for stock in record.inventories}
        table.mark_dead(np.concatenate([rows, record_rows]), class_ids)
        self.register.set_rows(new_rows)
        is_gone = self.register.row.values[table.handle.values[rows]] < new_range.start
        for row in rows[is_gone].tolist():
            self.register.remove(row)
        self._link_consumption(other_rows, at, new_range)
        return RewrittenTrees(old_trees, rows, class_ids, _split_by_tree(places, new_range))

    def _trees_of(self, ids: set[int]) -> Sequence[range]:
        all_ids = list(ids.union(record.root_id for record in self.records))
        rows = [row for row in self.register.by_id.get_each(all_ids) if row is not None]
        roots = np.unique(self.table.root.values[rows])
        return list(map(range, roots.tolist(), self.table.end.values[roots].tolist()))

    def _lay_out(self, other_rows: Rows) -> tuple[Integers, RowPlaces]:
        """Lay out existing rows and records, as rows that follow those of the table and of the records.

        Returns:
            The source of each new row (an index into `other_rows`, then into the records), and the places
            of the new rows.
        """
        table, records = self.table, self.records
        parents = table.parent.values[other_rows]
        record_parents = [
            NO_PARENT if record.parent_id is None else record.parent_id for record in records
        ]
        parent_ids = np.concatenate(
            [np.where(parents == NO_ROW, NO_PARENT, table.id.values[parents]), record_parents]
        ).astype(np.int64)
        ids = np.concatenate([table.id.values[other_rows], [record.id for record in records]])
        by_id = np.argsort(ids)
        layout = lay_out(ids[by_id].astype(np.int64), parent_ids[by_id])
        first = table.row_count + len(records)
        parent = np.where(layout.parent == NO_ROW, NO_ROW, first + layout.parent)
        return by_id[layout.provider], RowPlaces(parent, first + layout.root, first + layout.end)

    def _assign_handles(self, record_numbers: Integers) -> Sequence[int]:
        """Store the contents of the placed records; return a handle for each record.

        Records in a cycle of parents get no row, and their handle is meaningless.
        """
        records = self.records
        numbers = record_numbers[record_numbers >= 0].tolist()
        handles = [0] * len(records)
        rows = self.register.by_id.get_each([records[number].id for number in numbers])
        for number, row in zip(numbers, rows, strict=True):
            record = records[number]
            # Some databases reuse the id of a deleted provider.
            is_new = row is None or self.table.uuid_of(row) != record.uuid
            handles[number] = (
                self.register.add(record)
                if row is None or is_new
                else self.register.rename(row, record)
            )
        self.table.holdings.write(
            [records[number] for number in numbers], [handles[number] for number in numbers]
        )
        return handles

    def _link_consumption(self, other_rows: Rows, at: Integers, new_range: range) -> None:
        table, patterns = self.table, self.table.holdings.patterns
        if not patterns.are_any and not any(
            inventory.consumes for record in self.records for inventory in record.inventories
        ):
            return
        forget_consumed(table.classes, new_range.start)
        links: list[_Link] = []
        for row, source in zip(new_range, at.tolist(), strict=True):
            consumption: Iterable[tuple[int, Sequence[ConsumptionRecord]]]
            if source < len(other_rows):
                old_row = int(other_rows[source])
                consumption = (
                    (class_id, table.consumed_by(old_row, class_id, index))
                    for class_id, index in table.inventory_indices(old_row)
                )
            else:
                inventories = self.records[source - len(other_rows)].inventories
                consumption = ((stock.class_id, stock.consumes) for stock in inventories)
            links += self._yield_links(row, consumption)
        columns = np.array(links, dtype=np.int64).reshape(-1, len(ConsumptionLinks._fields)).T
        link(table.classes, patterns, table.root.values, ConsumptionLinks(*columns))
        add_consumed(table.classes, patterns, new_range.start)

    def _yield_links(
        self, row: int, consumption: Iterable[tuple[int, Sequence[ConsumptionRecord]]]
    ) -> Iterator[_Link]:
        for class_id, consumes in consumption:
            for provider_id, consumed_class_id, amount in consumes:
                consumed_row = self.register.by_id.get(provider_id)
                if consumed_row is not None:
                    yield row, class_id, consumed_row, consumed_class_id, amount


def _split_by_tree(places: RowPlaces, rows: range) -> Sequence[range]:
    starts = np.flatnonzero(places.root == np.arange(rows.start, rows.stop))
    return list(map(range, (rows.start + starts).tolist(), places.end[starts].tolist()))
