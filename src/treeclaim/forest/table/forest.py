# SPDX-License-Identifier: Apache-2.0
"""The Forest: every provider, kept for searching.

Why this shape. A search looks at one property of all providers at a time, so each property is a
column over dense row numbers. The rows of one tree are contiguous and in pre-order, so that "is in
the subtree of" is two comparisons. Inventories are columns per resource class; traits and
aggregates are lists of rows.

What changes often, amounts in use and generations, is written in place. What changes seldom, the
shape of a tree or which classes, traits and aggregates a provider has, makes the whole tree be
written again at the end, and its old rows are dead from then on. So all columns and row lists are
always sorted by row, and a change costs what its tree costs, whatever the size of the Forest. Before
too many rows are dead, the living ones are copied to another table, step by step
(`compaction.py`).

The order of rows thus depends on history. What clients see is ordered by `TreeOrder` instead,
which depends on the data alone, so that every worker gives the same answer.
"""

import copy
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.table.columns import NO_ROW, Integers, Rows
from treeclaim.forest.table.compaction import Compaction
from treeclaim.forest.table.held import NOTHING_HELD, Held
from treeclaim.forest.table.holdings import Use
from treeclaim.forest.table.layout import lay_out
from treeclaim.forest.table.linking import ConsumptionLinks
from treeclaim.forest.table.memberships import Memberships
from treeclaim.forest.table.named_table import NamedTable
from treeclaim.forest.table.order import Genealogy, TreeOrder
from treeclaim.forest.table.provider_table import Places, ProviderTable
from treeclaim.forest.table.register import Register
from treeclaim.forest.table.splice import Splice
from treeclaim.forest.table.texts import (
    SummaryTexts,
)
from treeclaim.model.attributes import AttributeKind
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, UsageChange
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.whole import NO_PARENT, WholeInventory

_LEAST_CACHE_BYTES = 16_000_000
_CACHE_BYTES_FOR_A_ROW = 60
"""Bytes of each cache of what depends on the shape: the greater of this many and so many for each row."""

_COUNTS_BYTES = 32_000_000
"""Bytes of the cache of counts: 24 bytes for each tree and request, so a hundred flavors on 13,000 hosts."""

_CANDIDATES_BYTES = 8_000_000
"""Bytes of the candidates that follow changes of single trees: 16 bytes for each of a usual one."""

_GONE = 16
"""Changed trees that cost as much as one that is gone, behind which all trees have other numbers."""

_MOST_SPLICES = 16
"""Changes of single trees that are followed one by one; more cost as much as starting over."""


class Forest(NamedTable):
    """All providers as columns; see the module's description.

    Attributes:
        summaries: Texts of the trees, ready to be joined.
        cache: What depends on the shape alone. The shape is everything but amounts, usage, names
            and generations: which providers there are in which tree, and which classes, traits
            and aggregates each has.
        counts: How many consumers of a request fit into each tree; follows amounts, and is
            emptied by a change of the shape.
        pairs: Pairs of anchor and provider (`domains/relation.py`), which follow changes of single
            trees by splices.
        candidates: What the last question of each kind found (`solve/candidate_cache.py`), which
            follows changes of single trees too.
        held: What holds have, in the copy that a question is given which asks for that.
        overlooks_conditions: Whether no condition counts, as where it is asked what would fit if nothing
            were allocated.
        moment: How many times the shape has changed, or rows have become others.
        whole: The Forest that this one is a part of, by which attributes are measured.
        names_given: How many times ids of traits or classes were given to others, or names changed.
    """

    def __init__(self) -> None:
        self.catalogue = Catalogue.of((), ())
        self.held = NOTHING_HELD
        self.whole: Forest | None = None
        self.overlooks_conditions = False
        self.names_given = 0
        self._clear()

    def _clear(self) -> None:
        super().__init__()
        self.summaries = SummaryTexts(self.summary, lambda: self.handle.values)
        self.cache = ByteCache(_LEAST_CACHE_BYTES)
        self.counts = ByteCache(_COUNTS_BYTES)
        self.pairs = ByteCache(_LEAST_CACHE_BYTES)
        self.candidates = ByteCache(_CANDIDATES_BYTES)
        self.moment = 0
        self._splices: deque[Splice] = deque(maxlen=_MOST_SPLICES)
        self._register = Register(self)
        self._count = 0
        self._order: TreeOrder | None = None
        self._compaction: Compaction | None = None
        self._former: list[Any] = []

    def __len__(self) -> int:
        """Return the number of providers."""
        return self._count

    @property
    def handle_count(self) -> int:
        """Return how many handles there are, including unused ones."""
        return len(self._register)

    # -- keeping up with the store ---------------------------------------------------------

    def agrees_with(self, changes: Changes) -> bool:
        """Tell whether the generations that changes of usage lead to are those that were recorded.

        If not, something was written beside the feed, and nothing that is known can be trusted.
        """
        usage, by_id = changes.usage, self._register.by_id
        rows = (
            map(by_id.get, usage)
            if len(usage) < thresholds.MANY_COUNTED
            else by_id.get_each(list(usage))
        )
        return not any(
            change.steps
            and (row is None or self.generation.values[row] + change.steps != change.generation)
            for row, change in zip(rows, usage.values(), strict=True)
        )

    def apply(self, changes: Changes) -> None:
        """Bring the Forest to the state that the changes describe."""
        if changes.catalogue is not None:
            self._take_names(changes.catalogue)
        if changes.complete:
            self._clear()
        if changes.whole is not None:
            self._begin_with(changes.whole)
        reshaped = self._refresh_each(changes.records)
        self._count_usage(changes.usage)
        removed = {
            provider_id for provider_id in changes.removed if provider_id in self._register.by_id
        }
        if reshaped or removed:
            self._rewrite_trees(reshaped, removed)
        self.tidy()

    def _take_names(self, catalogue: Catalogue) -> None:
        """Take the names of traits and classes; forget what was made of names that are others now.

        What nobody has is in no text, and nobody was found by it.
        """
        before, self.catalogue = self.catalogue, catalogue
        traits = _renamed(before.trait_by_id, catalogue.trait_by_id)
        classes = _renamed(before.class_by_id, catalogue.class_by_id)
        self.names_given += bool(traits or classes)
        if any(len(self.rows_with_trait(trait_id)) for trait_id in traits) or any(
            len(self.classes[class_id].living()) for class_id in classes & self.classes.keys()
        ):
            self.summaries.forget_all()
            for cache in (self.cache, self.counts, self.pairs, self.candidates):
                cache.clear()

    def _begin_with(self, whole: WholeInventory) -> None:
        self.begin_with(whole)
        self._count = self.row_count
        self._register.begin_with_all()
        self.summaries.extend(self.row_count)
        self.moment += 1
        self._forget_shape()

    def _refresh_each(self, records: Sequence[ProviderRecord]) -> dict[int, ProviderRecord]:
        """Write what changes in place; return the records that another shape comes with, by id."""
        if not records:
            return {}
        reshaped = {}
        rows = self._register.by_id.get_each([record.id for record in records])
        known_rows = np.array([row for row in rows if row is not None], dtype=np.int64)
        attributes = iter(self.attributes_of_each(known_rows))
        for row, record in zip(rows, records, strict=True):
            if row is None or not self.has_shape_of(row, next(attributes), record):
                reshaped[record.id] = record
                continue
            self._register.keep(row, record)
            more = self._more_allocated(row, record)
            for table, place in self._places_of(row):
                table.write(place, record)
            self._forget_summary(row)
            for use, amount in more:
                self._consume(row + use.offset, use.class_id, amount * use.amount)
        return reshaped

    def _more_allocated(self, row: int, record: ProviderRecord) -> list[tuple[Use, int]]:
        """Return what a row consumes of others, and of how many units more that is so now."""
        if not self.holdings.patterns.are_any:
            return []
        return [
            (use, inventory.used - self.classes[class_id].allocated(index))
            for (class_id, index), inventory in zip(
                self.inventory_indices(row), record.inventories, strict=True
            )
            for use in self.uses_of(class_id, index)
        ]

    def _consume(self, row: int, class_id: int, amount: int) -> None:
        """Let more be consumed of an inventory, wherever it is written."""
        if not amount or class_id not in self.class_ids_of(row):
            return
        for table, place in self._places_of(row):
            columns = table.classes[class_id]
            columns.consume(columns.index_of(place), amount)
            table.touch(np.array([place]))
        self._forget_summary(row)

    def _count_usage(self, usage: Mapping[int, UsageChange]) -> None:
        if self.holdings.patterns.are_any:
            self._count_consumed(usage)
        if len(usage) >= thresholds.MANY_COUNTED:
            self._count_together(usage)
            return
        for provider_id, change in usage.items():
            row = self._register.by_id.get(provider_id)
            if row is not None:
                for table, place in self._places_of(row):
                    table.count(place, change)
                self._forget_summary(row)

    def _count_consumed(self, usage: Mapping[int, UsageChange]) -> None:
        """Count what is consumed by what claims changed."""
        for provider_id, change in usage.items():
            row = self._register.by_id.get(provider_id)
            if row is None:
                continue
            for class_id in change.used.keys() & set(self.class_ids_of(row)):
                for use in self.uses_of(class_id, self.classes[class_id].index_of(row)):
                    self._consume(
                        row + use.offset, use.class_id, change.used[class_id] * use.amount
                    )

    def _count_together(self, usage: Mapping[int, UsageChange]) -> None:
        found = zip(self._register.by_id.get_each(list(usage)), usage.values(), strict=True)
        changed = {row: change for row, change in found if row is not None}
        rows = np.array(list(changed), dtype=np.int64)
        self.count_each(list(changed), list(changed.values()))
        if self._compaction is not None:
            copies, copied = self._compaction.copied_among(rows)
            self._compaction.table.count_each(copies, [changed[row] for row in copied])
        roots = self.root.values[rows]
        self.summaries.forget(
            self.handle.values[rows].tolist(), self.handle.values[roots].tolist()
        )

    def _forget_summary(self, row: int) -> None:
        root = int(self.root.values[row])
        self.summaries.forget([int(self.handle.values[row])], [int(self.handle.values[root])])

    # -- changes of the shape --------------------------------------------------------------

    def _rewrite_trees(self, reshaped: dict[int, ProviderRecord], removed: set[int]) -> None:
        """Write the trees again that some providers were in, or are in now."""
        old = self._trees_of(reshaped.values(), removed)
        rows = np.concatenate([np.arange(0), *(np.arange(t.start, t.stop) for t in old)])
        others = rows[~np.isin(self.id.values[rows], [*reshaped, *removed])]
        class_ids = self.classes_of(rows)
        records = list(reshaped.values())
        at, places = self._laid_out(others, records)
        told = self._told(records, at - len(others))
        new = self.gather([(self, others), (told, np.arange(len(records)))], at, places)
        altered = self._note_relatives(others, at, new)
        self.bury(rows, class_ids)
        if self._compaction is not None:
            self._compaction.bury(rows, class_ids)
        self._register.place(np.arange(new.start, new.stop))
        is_gone = self._register.row.values[self.handle.values[rows]] < new.start
        gone = [self._register.leave(row) for row in rows[is_gone].tolist()]
        changed = ConsumptionLinks(self, self._register, others, records).link(at, new)
        self._count += len(new) - len(rows)
        trees = _trees(places, new)
        roots = [tree.start for tree in (*old, *trees)]
        self.summaries.forget([*altered, *changed, *gone], self.handle.values[roots].tolist())
        self._edit_order(old, trees)
        self._forget_shape()

    def _trees_of(
        self, reshaped: Iterable[ProviderRecord], removed: Iterable[int]
    ) -> Sequence[range]:
        """Return the rows of the trees that providers are in, and of those that they will be in."""
        ids = {*removed}
        for record in reshaped:
            ids |= {record.id, record.root_id}
        rows = [row for row in self._register.by_id.get_each(list(ids)) if row is not None]
        roots = np.unique(self.root.values[rows])
        return list(map(range, roots.tolist(), self.end.values[roots].tolist()))

    def _laid_out(
        self, others: Rows, records: Sequence[ProviderRecord]
    ) -> tuple[Integers, Places]:
        """Lay out some rows and what records tell, behind all rows; see `gather`."""
        parents = self.parent.values[others]
        above = [NO_PARENT if record.parent_id is None else record.parent_id for record in records]
        parent_ids = np.concatenate(
            [np.where(parents == NO_ROW, NO_PARENT, self.id.values[parents]), above]
        ).astype(np.int64)
        ids = np.concatenate([self.id.values[others], [record.id for record in records]])
        by_id = np.argsort(ids)
        layout = lay_out(ids[by_id].astype(np.int64), parent_ids[by_id])
        first = self.row_count
        parent = np.where(layout.parent == NO_ROW, NO_ROW, first + layout.parent)
        return by_id[layout.provider], Places(parent, first + layout.root, first + layout.end)

    def _told(self, records: Sequence[ProviderRecord], placed: Integers) -> ProviderTable:
        """Return what records tell as rows, with handles for those that get a row here.

        Others are above no root.
        """
        numbers = placed[placed >= 0].tolist()
        handles = [0] * len(records)
        rows = self._register.by_id.get_each([records[number].id for number in numbers])
        for number, row in zip(numbers, rows, strict=True):
            record = records[number]
            # Some databases give the id of a deleted provider to a new one.
            is_new = row is None or self.uuid_of(row) != record.uuid
            handles[number] = (
                self._register.enter(record)
                if row is None or is_new
                else self._register.keep(row, record)
            )
        self.holdings.tell(
            [records[number] for number in numbers], [handles[number] for number in numbers]
        )
        self.summaries.extend(len(self._register) - len(self.summaries))
        told = ProviderTable()
        told.put(records, handles)
        return told

    def _note_relatives(self, others: Rows, at: Integers, new: range) -> Sequence[int]:
        """Return the handles of the new rows that tell something else than the rows they were made of.

        Besides what was told, these are rows whose parent or root is another one now.
        """
        is_other = at < len(others)
        rows = np.arange(new.start, new.stop)[is_other]
        before, altered = others[at[is_other]], ~is_other
        for above in (self.parent.values, self.root.values):
            was, now = above[before], above[rows]
            was, now = np.where(was == NO_ROW, before, was), np.where(now == NO_ROW, rows, now)
            altered[is_other] |= self.handle.values[was] != self.handle.values[now]
        altered_rows = new.start + np.flatnonzero(altered)
        self.touch(altered_rows)
        handles: list[int] = self.handle.values[altered_rows].tolist()
        return handles

    def _edit_order(self, old: Sequence[range], new: Sequence[range]) -> None:
        """Write into the canonical order which trees there are instead of others."""
        was = {int(self.id.values[tree.start]): tree.start for tree in old}
        gone = range(self.row_count, self.row_count)
        edits = [(was.pop(int(self.id.values[tree.start]), None), tree) for tree in new]
        edits += [(root, gone) for root in was.values()]
        table = Genealogy(self.id.values, self.parent.values, self.end.values)
        order, self._order = self._order, None
        if len(new) + _GONE * len(was) <= thresholds.MOST_TREES_EDITED:
            for root, tree in edits:
                edited = None if order is None else order.edited(root, table, tree)
                if edited is None:
                    order = None
                    break
                order, splice = edited
                self.moment += 1
                self._splices.append(splice)
            self._order = order
        if self._order is None:
            self.moment += 1
            self._splices.clear()

    def _forget_shape(self) -> None:
        """Forget what depends on the shape."""
        self.cache.clear()
        self.counts.clear()
        most = max(_LEAST_CACHE_BYTES, self.row_count * _CACHE_BYTES_FOR_A_ROW)
        self.cache.most_bytes = self.pairs.most_bytes = most

    # -- room ------------------------------------------------------------------------------

    def tidy(self) -> bool:
        """Do a step of the work that keeps the table small, if there is any.

        Returns:
            Whether the rows are others now: nothing that was read by rows holds any more. What
            clients see is the same.
        """
        if self._former:
            former = self._former[-1]
            if not isinstance(former, Memberships) or not former.release(
                thresholds.GROUPS_RELEASED_TOGETHER
            ):
                self._former.pop()
        if self._compaction is None and self._is_too_large():
            self._compaction = Compaction(self, len(self))
        if self._compaction is None:
            return False
        self._compaction.step(thresholds.ROWS_COPIED_TOGETHER)
        if not self._compaction.is_complete:
            return False
        self._take(self._compaction)
        return True

    @property
    def is_tidy(self) -> bool:
        """Tell whether there is no such work left."""
        return self._compaction is None and not self._former

    def _is_too_large(self) -> bool:
        dead = self.row_count - len(self)
        return dead > max(thresholds.FEWEST_DEAD_ROWS, len(self) // 2) or (
            self.row_count > max(thresholds.FEWEST_FULL_ROWS, self.id.room * 3 // 4)
        )

    def _take(self, compaction: Compaction) -> None:
        """Use the copies from now on."""
        copied = compaction.copied
        self._compaction = None
        self._former += self.become(compaction.table)
        self._register.place_all(compaction.row)
        if self._order is not None:
            self._order = self._order.renumbered(copied, self.living_rows)
        self.moment += 1
        self._splices.clear()
        self.pairs.clear()
        self.candidates.clear()
        self._forget_shape()

    def _places_of(self, row: int) -> Iterator[tuple[ProviderTable, int]]:
        """Yield where a row is to be written: here, and where it is copied to."""
        yield self, row
        if self._compaction is not None:
            for copied in self._compaction.copied_among(np.array([row]))[0]:
                yield self._compaction.table, copied

    # -- what happened to the shape --------------------------------------------------------

    @property
    def oldest_splice(self) -> int:
        """Return the moment before which no change of a single tree is known any more."""
        return self.moment - len(self._splices)

    def splices_since(self, moment: int) -> Sequence[Splice] | None:
        """Return how the shape has changed since a moment; None if that is not known any more."""
        count = self.moment - moment
        if not 0 <= count <= len(self._splices):
            return None
        return list(self._splices)[len(self._splices) - count :]

    # -- what searches ask -----------------------------------------------------------------

    def prepare(self) -> None:
        """Work out what the first search of all would have to."""
        self._order = self.order

    @property
    def order(self) -> TreeOrder:
        """Return the canonical order of the living rows."""
        if self._order is None:
            self._order = TreeOrder.of(
                self.id.values, self.root.values, self.end.values, self.alive.values
            )
        return self._order

    def range_of_attribute(self, name: str) -> tuple[int, int] | None:
        """Return the least and the greatest integer that any provider has of an attribute."""
        if self.whole is not None:
            return self.whole.range_of_attribute(name)
        column = self.attributes.column(name)
        if column is None:
            return None
        some = self.alive.values[column.rows] & (column.kinds == AttributeKind.INTEGER)
        values = column.values[some]
        return (int(values.min()), int(values.max())) if len(values) else None

    # -- what clients ask ------------------------------------------------------------------

    def row_of(self, uuid: str) -> int | None:
        """Return the row of the provider with exactly this uuid, or None."""
        return self._register.by_uuid.get(uuid)

    def row_of_id(self, provider_id: int) -> int | None:
        """Return the row of the provider with this id, or None."""
        return self._register.by_id.get(provider_id)

    def rows_created_behind(self, provider_id: int, count: int) -> Rows:
        """Return the rows of the first so many providers with greater ids, in any order."""
        return self._register.by_id.behind(provider_id, count)

    def row_of_name(self, name: str) -> int | None:
        """Return the row of the provider with exactly this name, or None."""
        return self._register.by_name.get(name)

    def holding(self, held: Held) -> "Forest":
        """Return the same Forest for a question about what holds have."""
        self.prepare()
        other = copy.copy(self)
        other.held = held
        return other

    def emptied(self) -> "Forest":
        """Return the same providers as if nothing were allocated, to be searched at once.

        No condition counts in it (contract page 102, section 3).
        """
        other = copy.copy(self)
        other.overlooks_conditions = True
        other.classes = {number: columns.emptied() for number, columns in self.classes.items()}
        return other

    def records(self) -> list[ProviderRecord]:
        """Return all providers as records in order of id."""
        return sorted(map(self.record, self.living_rows.tolist()), key=lambda record: record.id)


def _trees(places: Places, rows: range) -> Sequence[range]:
    """Return the rows of each tree, given where all of their rows are."""
    starts = np.flatnonzero(places.root == np.arange(rows.start, rows.stop))
    return list(map(range, (rows.start + starts).tolist(), places.end[starts].tolist()))


def _renamed(before: Mapping[int, CatalogueEntry], now: Mapping[int, CatalogueEntry]) -> set[int]:
    """Return the ids of entries that had another name, or are gone."""
    return {
        number
        for number, entry in before.items()
        if number not in now or now[number].name != entry.name
    }
