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
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.held import NOTHING_HELD, Held
from treeclaim.forest.table.order import Genealogy, TreeOrder
from treeclaim.forest.table.planting import plan_rows
from treeclaim.forest.table.provider_table import NO_ROW, ProviderTable
from treeclaim.forest.table.row_index import RowIndex
from treeclaim.forest.table.splice import Splice
from treeclaim.forest.table.texts.fragments import summary_fragment
from treeclaim.forest.table.texts.inventory_view import InventoryView
from treeclaim.forest.table.texts.summary_texts import SummaryTexts
from treeclaim.model.catalogue import Catalogue
from treeclaim.model.changes import Changes
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.whole import WholeInventory

_NO_INVENTORIES = ClassInventories()

_LEAST_CACHE_BYTES = 16_000_000
_CACHE_BYTES_FOR_A_ROW = 60
"""Of each cache of what depends on the shape: the greater of this many and so many for each row."""

_COUNTS_BYTES = 32_000_000
"""Of the cache of counts: 24 bytes for each tree and request, so a hundred flavors on 13,000 hosts."""

_CANDIDATES_BYTES = 8_000_000
"""Of the candidates that follow changes of single trees: 16 bytes for each of a usual one."""

_MOST_SPLICES = 16
"""Changes of single trees that are followed one by one; more cost as much as to begin anew."""


class Forest(ProviderTable):
    """All providers as columns; see the module's description.

    Attributes:
        catalogue: The traits and resource classes that exist.
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
        moment: How many times the shape has changed.
        held: What holds have, in the copy that a question is given which asks for that.
    """

    def __init__(self) -> None:
        self.catalogue = Catalogue.of((), ())
        self.held = NOTHING_HELD
        self._clear()

    def _clear(self) -> None:
        super().__init__()
        self.summaries = SummaryTexts(self._summary)
        self.cache = ByteCache(_LEAST_CACHE_BYTES)
        self.counts = ByteCache(_COUNTS_BYTES)
        self.pairs = ByteCache(_LEAST_CACHE_BYTES)
        self.candidates = ByteCache(_CANDIDATES_BYTES)
        self.moment = 0
        self._splices: deque[Splice] = deque(maxlen=_MOST_SPLICES)
        self._row_by_id = RowIndex(lambda row: int(self.id.values[row]))
        self._row_by_uuid = RowIndex(self.uuid_of)
        self._row_by_name = RowIndex(lambda row: self.names([row])[0])
        self._count = 0
        self._order: TreeOrder | None = None

    def __len__(self) -> int:
        """Return the number of providers."""
        return self._count

    # -- keeping up with the store ---------------------------------------------------------

    def agrees_with(self, changes: Changes) -> bool:
        """Tell whether the generations that changes of usage lead to are those that were told.

        If not, something was written beside the feed, and nothing that is known can be trusted.
        """
        for provider_id, change in changes.usage.items():
            if change.steps:
                row = self._row_by_id.get(provider_id)
                if row is None or self.generation.values[row] + change.steps != change.generation:
                    return False
        return True

    def apply(self, changes: Changes) -> None:
        """Bring the Forest to the state that the changes describe."""
        if changes.catalogue is not None:
            self.catalogue = changes.catalogue
            self.summaries.forget_all()
            self.cache.clear()
            self.counts.clear()
            self.pairs.clear()
            self.candidates.clear()
        if changes.complete:
            self._clear()
        if changes.whole is not None:
            self._begin_with(changes.whole)
        reshaped = {}
        for record in changes.records:
            row = self._row_by_id.get(record.id)
            if row is not None and self.has_shape_of(row, record):
                self._refresh(row, record)
            else:
                reshaped[record.id] = record
        for provider_id, change in changes.usage.items():
            row = self._row_by_id.get(provider_id)
            if row is not None:
                self.count(row, change)
                self._forget_summary(row)
        removed = {
            provider_id for provider_id in changes.removed if provider_id in self._row_by_id
        }
        if reshaped or removed:
            self._rewrite_trees(reshaped, removed)
        dead = self.row_count - len(self)
        if dead > max(thresholds.FEWEST_DEAD_ROWS, len(self)):
            self._rewrite_everything()

    def _begin_with(self, whole: WholeInventory) -> None:
        self.begin_with(whole)
        self._count = self.row_count
        self.summaries.extend(self.row_count)
        self._row_by_id.begin_with(self.id.values.tolist(), self.row_count)
        uuids = (uuid.decode() for uuid in self.uuid.values.tolist())
        self._row_by_uuid.begin_with(uuids, self.row_count)
        self._row_by_name.begin_with(self.names(range(self.row_count)), self.row_count)
        self._reshaped()

    def _refresh(self, row: int, record: ProviderRecord) -> None:
        (name,) = self.names([row])
        # Two providers may have swapped names: the old one may be the other's by now.
        if record.name != name and self._row_by_name.get(name) == row:
            del self._row_by_name[name]
        self._row_by_name[record.name] = row
        self.write(row, record)
        self._forget_summary(row)

    def _forget_summary(self, row: int) -> None:
        self.summaries.forget(row, int(self.root.values[row]))

    def _rewrite_trees(self, reshaped: dict[int, ProviderRecord], removed: set[int]) -> None:
        roots = {self._root_row_of(provider_id) for provider_id in (*reshaped, *removed)}
        roots |= {self._root_row_of(record.root_id) for record in reshaped.values()}
        roots -= {NO_ROW}
        order = self._order
        records: dict[int, ProviderRecord] = {}
        texts: dict[int, bytes | None] = {}
        for root in roots:
            for row in range(root, int(self.end.values[root])):
                record = self.record(row)
                records[record.id] = record
                texts[record.id] = self.summaries.known(row)
                self._bury(row)
                if record.id in reshaped or record.id in removed:
                    self._forget_keys(row)
        records.update(reshaped)
        first = self.row_count
        self._append(
            record for provider_id, record in records.items() if provider_id not in removed
        )
        new = range(first, self.row_count)
        self._put_texts(new, texts, reshaped.keys())
        edited = None
        if order is not None and self._is_one_tree(roots, new):
            old_root = next(iter(roots), None)
            table = Genealogy(self.id.values, self.parent.values, self.end.values)
            edited = order.edited(old_root, table, new)
        if edited is None:
            self._splices.clear()
        else:
            self._order, splice = edited
            self._splices.append(splice)

    def _put_texts(
        self, new: range, texts: Mapping[int, bytes | None], reshaped: AbstractSet[int]
    ) -> None:
        """Keep the texts of the providers that, as their parents and roots, are the same as before."""
        rows = np.arange(new.start, new.stop)
        parents, roots = self.parent.values[rows], self.root.values[rows]
        related = np.stack([rows, np.where(parents == NO_ROW, rows, parents), roots])
        for row, ids in zip(new, self.id.values[related].T.tolist(), strict=True):
            text = texts.get(ids[0])
            if text is not None and reshaped.isdisjoint(ids):
                self.summaries.put(row, text)

    def _is_one_tree(self, old_roots: AbstractSet[int], new: range) -> bool:
        """Tell whether old and new rows are those of one tree, by the id of its root."""
        new_roots = set(self.root.values[new.start : new.stop].tolist())
        ids = {int(self.id.values[root]) for root in old_roots | new_roots}
        return len(old_roots) <= 1 and len(new_roots) <= 1 and len(ids) == 1

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

    def _root_row_of(self, provider_id: int) -> int:
        row = self._row_by_id.get(provider_id)
        return NO_ROW if row is None else int(self.root.values[row])

    def _rewrite_everything(self) -> None:
        records = [self.record(row) for row in self.living_rows.tolist()]
        self._clear()
        self._append(records)

    def _bury(self, row: int) -> None:
        self.bury(row)
        self._count -= 1
        self._forget_summary(row)

    def _forget_keys(self, row: int) -> None:
        """Let nobody find a dead row; a provider that only gets another row is found there."""
        del self._row_by_id[int(self.id.values[row])]
        (name,) = self.names([row])
        for index, key in ((self._row_by_uuid, self.uuid_of(row)), (self._row_by_name, name)):
            if index.get(key) == row:
                del index[key]

    def _append(self, records: Iterable[ProviderRecord]) -> None:
        first = self.row_count
        planned = plan_rows(records, first)
        self.append(planned)
        self.summaries.extend(len(planned))
        for row, planned_row in enumerate(planned, first):
            self._row_by_id[planned_row.record.id] = row
            self._row_by_uuid[planned_row.record.uuid] = row
            self._row_by_name[planned_row.record.name] = row
        self._count += len(planned)
        self._reshaped()

    def _reshaped(self) -> None:
        """Forget what depends on the shape."""
        self._order = None
        self.moment += 1
        self.cache.clear()
        self.counts.clear()
        most = max(_LEAST_CACHE_BYTES, self.row_count * _CACHE_BYTES_FOR_A_ROW)
        self.cache.most_bytes = self.pairs.most_bytes = most

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

    def class_inventories(self, name: str) -> ClassInventories:
        """Return the inventories of a class that exists, to be read only."""
        found = self.classes.get(self.catalogue.resource_classes[name].id)
        return _NO_INVENTORIES if found is None else found

    # -- what clients ask ------------------------------------------------------------------

    def row_of(self, uuid: str) -> int | None:
        """Return the row of the provider with exactly this uuid, or None."""
        return self._row_by_uuid.get(uuid)

    def row_of_name(self, name: str) -> int | None:
        """Return the row of the provider with exactly this name, or None."""
        return self._row_by_name.get(name)

    def inventories(self, row: int) -> list[InventoryView]:
        """Return the inventories of a row with their usage, in order of class id."""
        return [
            InventoryView(
                resource_class=self.catalogue.class_by_id[class_id].name,
                inventory=columns.inventory(index),
                used=int(columns.used.values[index]),
                modified_at=float(columns.modified_at.values[index]),
            )
            for class_id, index in self.inventory_indices(row)
            for columns in (self.classes[class_id],)
        ]

    def traits(self, row: int) -> list[str]:
        """Return the names of a row's traits in catalogue order."""
        rank = self.catalogue.trait_rank
        ordered = sorted(self.trait_links.of(row), key=lambda trait_id: rank[trait_id])
        return [self.catalogue.trait_by_id[trait_id].name for trait_id in ordered]

    def associated_traits(self) -> set[str]:
        """Return the names of all traits that some provider has."""
        return {
            self.catalogue.trait_by_id[trait_id].name
            for trait_id in self.trait_links
            if len(self.rows_with_trait(trait_id))
        }

    def _summary(self, row: int) -> bytes:
        """Write a row's entry of `provider_summaries` in its full form."""
        return summary_fragment(self.provider(row), self.inventories(row), self.traits(row))

    def holding(self, held: Held) -> "Forest":
        """Return the same Forest for a question about what holds have."""
        self.prepare()
        other = copy.copy(self)
        other.held = held
        return other

    def emptied(self) -> "Forest":
        """Return the same providers as if nothing were allocated, to be searched at once."""
        other = copy.copy(self)
        other.classes = {number: columns.emptied() for number, columns in self.classes.items()}
        return other

    def records(self) -> list[ProviderRecord]:
        """Return all providers as records in order of id."""
        return sorted(map(self.record, self.living_rows.tolist()), key=lambda record: record.id)
