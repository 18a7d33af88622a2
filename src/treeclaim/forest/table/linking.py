# SPDX-License-Identifier: Apache-2.0
"""What inventories consume, rewritten together with trees (contract page 102, section 2)."""

from collections.abc import Iterator, Sequence

from treeclaim.forest.table.columns import Integers, Rows
from treeclaim.forest.table.consumption import (
    add_consumed,
    forget_consumed,
    rows_consumed_otherwise,
)
from treeclaim.forest.table.holdings import Use
from treeclaim.forest.table.provider_table import ProviderTable
from treeclaim.forest.table.register import Register
from treeclaim.model.provider import ProviderRecord

_Target = tuple[int | None, int, int]
"""Row of a provider, if it has one, id of a class, and how much of that is consumed."""


class ConsumptionLinks:
    """Links the inventories of rows that trees are written into."""

    def __init__(
        self,
        table: ProviderTable,
        register: Register,
        others: Rows,
        records: Sequence[ProviderRecord],
    ) -> None:
        """Take what the new rows are made of.

        Args:
            table: Where they are.
            register: Knows which provider is where.
            others: The rows that some of the new ones are copies of.
            records: What was recorded.
        """
        self._table = table
        self._register = register
        self._others = others
        self._records = records

    def link(self, at: Integers, new: range) -> Sequence[int]:
        """Write what the inventories of new rows consume, and what is consumed of them.

        What does not exist, or is in another tree, is left out.

        Args:
            at: Which of the old rows, or which record behind them, each new row copies.
            new: The new rows; it is known who is there.

        Returns:
            The handles of those of which another amount is consumed now.
        """
        table, patterns, count = self._table, self._table.holdings.patterns, len(self._others)
        if not patterns.are_any and not any(
            inventory.consumes for record in self._records for inventory in record.inventories
        ):
            return ()
        before = forget_consumed(table.classes, new.start)
        for row, source in zip(new, at.tolist(), strict=True):
            if source < count:
                named = self._named_by_copy(row, int(self._others[source]))
            else:
                named = self._named_by_record(self._records[source - count])
            root = int(table.root.values[row])
            for class_id, targets in named:
                uses = [
                    Use(target - row, consumed, amount)
                    for target, consumed, amount in targets
                    if target is not None
                    and root <= target < int(table.end.values[root])
                    and consumed in table.class_ids_of(target)
                ]
                columns = table.classes[class_id]
                columns.pattern.begin_writing()[columns.index_of(row)] = patterns.number_of(uses)
        add_consumed(table.classes, patterns, new.start)
        rows = rows_consumed_otherwise(table.classes, new.start, before)
        table.touch(rows)
        handles: list[int] = table.handle.values[rows].tolist()
        return handles

    def _named_by_copy(self, row: int, old: int) -> Iterator[tuple[int, list[_Target]]]:
        """Yield what the inventories of a copy of a row consume: class, and rows as they are now."""
        for class_id, index in self._table.inventory_indices(row):
            uses = self._table.uses_of(class_id, index)
            if uses:
                handles = self._table.handle.values[[old + use.offset for use in uses]]
                rows = self._register.row.values[handles].tolist()
                yield (
                    class_id,
                    [(at, use.class_id, use.amount) for at, use in zip(rows, uses, strict=True)],
                )

    def _named_by_record(self, record: ProviderRecord) -> Iterator[tuple[int, list[_Target]]]:
        """Yield the same for what was recorded."""
        for inventory in record.inventories:
            if inventory.consumes:
                yield (
                    inventory.class_id,
                    [
                        (self._register.by_id.get(provider_id), class_id, amount)
                        for provider_id, class_id, amount in inventory.consumes
                    ],
                )
