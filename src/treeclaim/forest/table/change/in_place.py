# SPDX-License-Identifier: Apache-2.0
"""Writes what changes often where it is: names, generations, amounts and usage."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.table.change.compaction import Compaction
from treeclaim.forest.table.consumption import Use, consume
from treeclaim.forest.table.provider_table import ProviderTable
from treeclaim.forest.table.register import Register
from treeclaim.model.changes import UsageChange
from treeclaim.model.provider import ProviderRecord


@dataclass(frozen=True, slots=True)
class InPlaceWriter:
    """Writes into all rows of a provider.

    Attributes:
        table: The rows.
        register: Finds rows.
        compaction: The compaction under way, if any.
    """

    table: ProviderTable
    register: Register
    compaction: Compaction | None

    def refresh_each(self, records: Sequence[ProviderRecord]) -> dict[int, ProviderRecord]:
        """Write what changes in place; return the records that another shape comes with, by id."""
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
            self.register.keep(row, record)
            added_amounts = self._more_allocated(row, record)
            for table, place in self._places_of(row):
                table.write(place, record)
            for use, amount in added_amounts:
                self._consume(row, use, amount)
        return reshaped

    def _more_allocated(self, row: int, record: ProviderRecord) -> list[tuple[Use, int]]:
        """Return what a row consumes of others, and of how many units more that is so now."""
        if not self.table.holdings.patterns.are_any:
            return []
        return [
            (use, inventory.used - self.table.classes[class_id].allocated(index))
            for (class_id, index), inventory in zip(
                self.table.inventory_indices(row), record.inventories, strict=True
            )
            for use in self.table.uses_of(class_id, index)
        ]

    def _consume(self, row: int, use: Use, amount: int) -> None:
        """Add the consumption of another inventory by so many units of a row, in each row of the other one."""
        if amount:
            for table, place in self._places_of(row + use.offset):
                consume(table.classes, use, np.array([place]), np.array([amount * use.amount]))
                table.touch(np.array([place]))

    def count_usage(self, usage: Mapping[int, UsageChange]) -> None:
        """Count what claims changed."""
        rows = self.register.by_id.get_each(list(usage))
        changes = {
            row: change
            for row, change in zip(rows, usage.values(), strict=True)
            if row is not None
        }
        if not changes:
            return
        if self.table.holdings.patterns.are_any:
            self._count_consumed(changes)
        self.table.count_each(list(changes), list(changes.values()))
        if self.compaction is not None:
            changed_rows = np.array(list(changes), dtype=np.int64)
            copies, copied_rows = self.compaction.copied_among(changed_rows)
            self.compaction.table.count_each(copies, [changes[row] for row in copied_rows])

    def _count_consumed(self, changes: Mapping[int, UsageChange]) -> None:
        """Count what is consumed by what claims changed, by row."""
        for row, change in changes.items():
            for class_id in change.used.keys() & set(self.table.class_ids_of(row)):
                index = self.table.classes[class_id].index_of(row)
                for use in self.table.uses_of(class_id, index):
                    self._consume(row, use, change.used[class_id])

    def _places_of(self, row: int) -> Iterator[tuple[ProviderTable, int]]:
        """Yield where a row is to be written: here, and where it is copied to."""
        yield self.table, row
        if self.compaction is not None:
            for copied in self.compaction.copied_among(np.array([row]))[0]:
                yield self.compaction.table, copied
