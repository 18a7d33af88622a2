# SPDX-License-Identifier: Apache-2.0
"""The Forest: all providers, stored for searching.

A search reads one property of all providers at a time, so each property is a column over dense row
numbers. The rows of a tree are contiguous and in pre-order, so that "is in the subtree of" takes two
comparisons. Inventories are columns per resource class; traits and aggregates are lists of rows.

Amounts in use and generations change often, and are written in place. Changes of the shape of a
tree, or of a provider's classes, traits or aggregates, are rare: the whole tree is rewritten at the
end, and its old rows are dead. All columns and row lists therefore stay sorted by row, and a change
costs as much as its tree, whatever the size of the Forest. Before too many rows are dead, the living
rows are copied to another table in steps (`compaction.py`).

The order of rows depends on history. Answers are ordered by `TreeOrder`, which depends on the data
alone, so that all workers give the same answer.
"""

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import (
    NO_ROW,
    Column,
    Mask,
    RecentEntries,
    Rows,
    expand_ranges,
)
from treeclaim.forest.table.compaction import Compaction, is_too_large
from treeclaim.forest.table.consumption import Use
from treeclaim.forest.table.held import NOTHING_HELD
from treeclaim.forest.table.order import MOST_TREES_EDITED, Splice, TreeOrder
from treeclaim.forest.table.provider_table import ROWS_COPIED_TOGETHER, ProviderTable
from treeclaim.forest.table.register import Register
from treeclaim.forest.table.texts import (
    InventoryView,
    SummaryTexts,
    make_serializable,
    summary_fragment,
)
from treeclaim.forest.table.updates import InPlaceWriter, edit_order, rewrite_trees
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes
from treeclaim.model.parts import CONDITIONS, TRAITS
from treeclaim.model.provider import Condition, Consumption, ProviderRecord
from treeclaim.model.whole import WholeInventory

_LEAST_CACHE_BYTES = 48_000_000
_LEAST_PAIRS_BYTES = 16_000_000
_CACHE_BYTES_FOR_A_ROW = 60
"""Bytes of each cache for each row, if that is more than its minimum. The counts of a hundred flavors
on 13,000 hosts take 31 MB.
"""

_NO_INVENTORIES = ClassInventories()


class Forest(ProviderTable):
    """All providers as columns; see the module's description.

    Attributes:
        catalogue: All traits and resource classes.
        summaries: Texts of the trees.
        cache: Values that depend on the shape, and amounts that follow writes (`domains/followed.py`).
            The shape is everything but amounts, usage, names and generations: the providers of each
            tree, and their classes, traits and aggregates.
        pairs: Pairs of anchor and provider (`domains/relation.py`), which follow splices of single trees.
        held_amounts: Held amounts, in a copy for a request that needs them.
        ignores_conditions: Whether conditions are ignored, as for the room of an unallocated cloud.
        ignores_units: Whether units of inventories are ignored; see `view_without_units`.
        splices: Recent changes of the shape; cleared by a change that cannot be followed, or that
            renumbers rows.
        rename_count: Number of times that traits or classes were renamed, or their ids reassigned.
    """

    def __init__(self) -> None:
        self.catalogue = Catalogue.of((), ())
        self.held_amounts = NOTHING_HELD
        self.ignores_conditions = False
        self.ignores_units = False
        self.rename_count = 0
        self._clear()

    def _clear(self) -> None:
        super().__init__()
        self.summaries = SummaryTexts(self, self.summary)
        self._create_caches()
        self.splices = RecentEntries[Splice](MOST_TREES_EDITED)
        self._register = Register(self)
        self._count = 0
        self._order: TreeOrder | None = None
        self._compaction: Compaction | None = None

    def _create_caches(self) -> None:
        self.cache = ByteCache(_LEAST_CACHE_BYTES)
        self.pairs = ByteCache(_LEAST_PAIRS_BYTES)

    def __len__(self) -> int:
        """Return the number of providers."""
        return self._count

    # -- applying changes of the store -----------------------------------------------------

    def is_consistent_with(self, changes: Changes) -> bool:
        """Return whether changes of usage lead to the generations that they record.

        Otherwise something was written beside the feed, and the Forest must be loaded again.
        """
        rows = self._register.by_id.get_each(list(changes.usage))
        return not any(
            change.steps
            and (row is None or self.generation.values[row] + change.steps != change.generation)
            for row, change in zip(rows, changes.usage.values(), strict=True)
        )

    def apply(self, changes: Changes) -> None:
        """Apply changes of the store."""
        if changes.catalogue is not None:
            self._replace_catalogue(changes.catalogue)
        if changes.complete:
            self._clear()
        if changes.whole is not None:
            self._load_whole(changes.whole)
        writer = InPlaceWriter(self, self._register, self._compaction)
        reshaped = writer.write_records(changes.records)
        writer.write_usage(changes.usage)
        removed = {
            provider_id for provider_id in changes.removed if provider_id in self._register.by_id
        }
        if reshaped or removed:
            self._rewrite_trees(reshaped, removed)
        self.run_compaction_step()

    def _replace_catalogue(self, catalogue: Catalogue) -> None:
        """Replace the catalogue, and clear all caches if names or ids were reassigned."""
        before, self.catalogue = self.catalogue, catalogue
        if _has_renamed(before.trait_by_id, catalogue.trait_by_id) or _has_renamed(
            before.class_by_id, catalogue.class_by_id
        ):
            self.rename_count += 1
            self.summaries.forget_all()
            self.cache.clear()
            self.pairs.clear()

    def _load_whole(self, whole_inventory: WholeInventory) -> None:
        self.load(whole_inventory)
        self._count = self.row_count
        self._register.load_all()
        self.splices.invalidate()
        self._forget_shape()

    # -- changes of the shape --------------------------------------------------------------

    def _rewrite_trees(self, reshaped: Mapping[int, ProviderRecord], removed: set[int]) -> None:
        trees = rewrite_trees(self, self._register, reshaped, removed)
        if self._compaction is not None:
            self._compaction.mark_dead(trees.rows, trees.class_ids)
        self._count += trees.added_count
        order, self._order = self._order, None
        self._order, splices = edit_order(order, self, trees)
        self.splices.append(splices)
        if self._order is None:
            self.splices.invalidate()
        self._forget_shape()

    def _forget_shape(self) -> None:
        self.cache.clear()
        most = self.row_count * _CACHE_BYTES_FOR_A_ROW
        self.cache.most_bytes = max(_LEAST_CACHE_BYTES, most)
        self.pairs.most_bytes = max(_LEAST_PAIRS_BYTES, most)

    # -- compaction ------------------------------------------------------------------------

    def run_compaction_step(self) -> bool:
        """Do one step of compaction, if the table needs it, and fold changed keys.

        Returns:
            Whether rows were renumbered, which invalidates rows read before, but no answer.
        """
        self._register.fold()
        if self._compaction is None and is_too_large(self, len(self)):
            self._compaction = Compaction(self, len(self))
        if self._compaction is None:
            return False
        self._compaction.step(ROWS_COPIED_TOGETHER)
        if not self._compaction.is_complete:
            return False
        self._adopt_compaction(self._compaction)
        return True

    @property
    def is_compacting(self) -> bool:
        """Return whether a compaction is running."""
        return self._compaction is not None

    def _adopt_compaction(self, compaction: Compaction) -> None:
        self._compaction = None
        self.adopt(compaction.table)
        self._register.set_rows(self.living_rows)
        self._order = None
        self.splices.invalidate()
        self.pairs.clear()
        self._forget_shape()

    def prepare(self) -> None:
        """Compute the canonical order, which the first search would have to."""
        self._order = self.order

    @property
    def order(self) -> TreeOrder:
        """Return the canonical order of trees."""
        if self._order is None:
            self._order = TreeOrder.of(
                self.id.values, self.root.values, self.end.values, self.alive.values
            )
        return self._order

    # -- rows by key -----------------------------------------------------------------------

    def row_of(self, uuid: str) -> int | None:
        """Return the row of the provider with exactly this uuid, or None."""
        return self._only_living(self._register.by_uuid.get(uuid))

    def row_of_id(self, provider_id: int) -> int | None:
        """Return the row of the provider with this id, or None."""
        return self._only_living(self._register.by_id.get(provider_id))

    def rows_of_ids(self, provider_ids: Sequence[int]) -> Rows:
        """Return the row of each provider, `NO_ROW` for providers that do not exist."""
        rows = map(self._only_living, self._register.by_id.get_each(provider_ids))
        return np.array([NO_ROW if row is None else row for row in rows], dtype=np.int64)

    def rows_created_after(self, provider_id: int, count: int) -> Rows:
        """Return the rows of the first `count` providers with greater ids, in any order."""
        return self._register.by_id.rows_after(provider_id, count)

    def row_of_name(self, name: str) -> int | None:
        """Return the row of the provider with exactly this name, or None."""
        return self._only_living(self._register.by_name.get(name))

    def _only_living(self, row: int | None) -> int | None:
        """Return a row; None if a view leaves its tree out."""
        return row if row is not None and self.alive.values[row] else None

    # -- properties of providers, by name --------------------------------------------------

    def class_inventories(self, name: str) -> ClassInventories:
        """Return the inventories of an existing class, which must not be written."""
        return self.classes.get(self.catalogue.resource_classes[name].id, _NO_INVENTORIES)

    def uses_at(self, name: str, rows: Rows) -> Iterator[tuple[Use, Rows]]:
        """Yield each use by inventories of a class in some rows, with the positions of these rows."""
        if not self.holdings.patterns.are_any:
            return
        columns = self.class_inventories(name)
        has, indices = columns.indices_of(rows)
        for uses, which in self.holdings.patterns.group_by_pattern(
            columns.pattern.values[indices]
        ):
            users = np.flatnonzero(has)[which]
            yield from ((use, users) for use in uses)

    def inventories(self, row: int) -> list[InventoryView]:
        """Return the inventories of a row with their usage, in order of class id."""
        return [
            InventoryView(
                resource_class=self.catalogue.class_by_id[class_id].name,
                inventory=columns.inventory(index),
                used=int(columns.used.values[index]),
                modified_at=float(columns.modified_at.values[index]),
                consumes=self.consumes(row, class_id, index),
            )
            for class_id, index in self.inventory_indices(row)
            for columns in (self.classes[class_id],)
        ]

    def amounts(self, row: int) -> dict[str, Any]:
        """Return capacity and usage of a row's inventories by class name, in order of class id."""
        return {
            self.catalogue.class_by_id[class_id].name: {
                "capacity": make_serializable(self.classes[class_id].whole_capacity(index)),
                "used": self.classes[class_id].used.values.item(index),
            }
            for class_id, index in self.inventory_indices(row)
        }

    def consumes(self, row: int, class_id: int, index: int) -> tuple[Consumption, ...]:
        """Return the consumption of an inventory as clients see it."""
        names = self.catalogue.class_by_id
        entries = [
            (self.uuid_of(row + use.offset), names[use.class_id].name, use.amount)
            for use in self.uses_of(class_id, index)
        ]
        return tuple(Consumption(*entry) for entry in sorted(entries))

    def traits(self, row: int) -> list[str]:
        """Return the names of a row's traits in catalogue order."""
        rank = self.catalogue.trait_rank
        ordered = sorted(self.links_of(TRAITS.name, row), key=lambda trait_id: rank[trait_id])
        return [self.catalogue.trait_by_id[trait_id].name for trait_id in ordered]

    def conditions(self, row: int) -> tuple[Condition, ...]:
        """Return a row's conditions in order of their keys."""
        return self.links_of(CONDITIONS.name, row)

    @property
    def has_conditions(self) -> bool:
        """Return whether any provider ever had a condition."""
        return not self.links[CONDITIONS.name].is_empty

    def conditions_in_force(self, tolerated: Collection[str] | None) -> Sequence[Condition]:
        """Return the conditions in force for consumers that tolerate these keys; None tolerates all.

        The result may include conditions that no provider has any more.
        """
        if tolerated is None:
            return ()
        return [each for each in self.links[CONDITIONS.name] if each.affects(tolerated)]

    def associated_traits(self) -> set[str]:
        """Return the names of all traits of providers."""
        return {
            self.catalogue.trait_by_id[trait_id].name
            for trait_id in self.links[TRAITS.name]
            if len(self.rows_with_trait(trait_id))
        }

    def summary(self, row: int) -> bytes:
        """Write a row's entry of `provider_summaries` in its full form."""
        return summary_fragment(self.provider(row), self.amounts(row), self.traits(row))

    # -- views -----------------------------------------------------------------------------

    def make_view(self, **attributes: Any) -> "Forest":
        """Return a view with other attributes, valid until the next change of the Forest."""
        self.prepare()
        view = copy.copy(self)
        vars(view).update(attributes)
        return view

    def view_emptied(self) -> "Forest":
        """Return a view in which nothing is allocated, and no condition counts (contract page 102, section 3)."""
        classes = {number: columns.without_usage() for number, columns in self.classes.items()}
        return self.make_view(ignores_conditions=True, classes=classes)

    def view_without_units(self) -> "Forest":
        """Return a view in which inventories give any free amount.

        The view shares the columns of used and free units.
        """
        classes = {
            number: columns.without_unit_limits() for number, columns in self.classes.items()
        }
        return self.make_view(ignores_units=True, classes=classes)

    def view_without_trees(self, trees: Mask) -> "Forest":
        """Return a view without some trees, given a truth value for each tree."""
        roots = self.order.roots[trees]
        rows = expand_ranges(roots, self.end.values[roots] - roots)
        forest_copy = copy.copy(self)
        forest_copy._mark_rows_dead(rows)  # noqa: SLF001 - of this class
        return forest_copy

    def _mark_rows_dead(self, rows: Rows) -> None:
        self._create_caches()
        self._order = None
        self._count -= len(rows)
        self.alive = Column.of(self.alive.values)
        self.alive.values[rows] = False
        self.classes = {number: columns.copy_usage() for number, columns in self.classes.items()}
        for columns in self.classes.values():
            columns.mark_dead(rows)

    def records(self) -> list[ProviderRecord]:
        """Return all providers as records in order of id."""
        return sorted(map(self.record, self.living_rows.tolist()), key=lambda record: record.id)


def _has_renamed(before: Mapping[int, CatalogueEntry], now: Mapping[int, CatalogueEntry]) -> bool:
    return any(
        number not in now or now[number].name != entry.name for number, entry in before.items()
    )
