# SPDX-License-Identifier: Apache-2.0
"""A table without the dead rows, built in steps beside the table in use.

Each step copies the next living rows in order. Writes to a copied row are repeated on its copy. A
tree that is rewritten meanwhile is copied from its new rows at the end. No request therefore waits
longer than a step. After the last step the new table replaces the old one.
"""

from collections.abc import Iterable

import numpy as np

from treeclaim.forest.table.columns import NO_ROW, Column, Rows, find_ascending, search_ascending
from treeclaim.forest.table.provider_table import ProviderTable, RowPlaces

FEWEST_DEAD_ROWS = 4096
"""Dead rows from which on a table is compacted, if they are also more than half of the living rows."""

FEWEST_FULL_ROWS = 65_536
"""Rows from which on a table is compacted when it is three quarters full; copying smaller columns
takes two milliseconds.
"""


class Compaction:
    """Copies of the living rows of a table.

    Attributes:
        table: The copies.
    """

    def __init__(self, source: ProviderTable, living: int) -> None:
        self.table = ProviderTable()
        self.table.prepare_replacement(source, living)
        self._source = source
        self._copied = Column(np.int64)
        self._copied.make_room(2 * living)
        self._next = 0
        self._row_count = source.row_count

    @property
    def copied(self) -> Rows:
        """Return the source row of each row of the new table, ascending."""
        return self._copied.values

    @property
    def is_complete(self) -> bool:
        """Return whether all living rows are copied."""
        return self._next == self._source.row_count

    def step(self, most: int) -> None:
        """Copy the living rows among the next `most` rows.

        The step is larger by the rows added since the last step, so that compaction ends. It is smaller
        where rows have many distinct classes or aggregates.
        """
        rows = self._next_rows(most)
        first = self.table.row_count
        self._copied.extend(rows)
        parents, roots = self._source.parent.values[rows], self._source.root.values[rows]
        places = RowPlaces(
            parent=np.where(parents == NO_ROW, NO_ROW, search_ascending(self.copied, parents)),
            root=search_ascending(self.copied, roots),
            end=self._source.end.values[rows] - rows + first + np.arange(len(rows)),
        )
        self.table.append_copies(self._source, rows, places)
        # Rows of this step may have changed after a former step copied their root.
        self.table.tree_stamp.values[places.root] = self._source.tree_stamp.values[roots]

    def _next_rows(self, most: int) -> Rows:
        row_count = self._source.row_count
        most += row_count - self._row_count
        self._row_count = row_count
        alive = self._source.alive.values[self._next :]
        dead = int(alive.argmax()) if alive.any() else len(alive)
        self._next += dead
        end = min(self._next + most, row_count)
        rows: Rows = self._next + np.flatnonzero(alive[dead : dead + most])
        copied_rows = self._source.with_few_groups(rows, most)
        self._next = end if len(copied_rows) == len(rows) else int(copied_rows[-1]) + 1
        return copied_rows

    def copied_among(self, rows: Rows) -> tuple[list[int], list[int]]:
        """Return the copies of the rows that are copied, and these rows."""
        is_copied, at = find_ascending(self.copied, rows)
        return at[is_copied].tolist(), rows[is_copied].tolist()

    def mark_dead(self, rows: Rows, class_ids: Iterable[int]) -> None:
        """Mark the copies of rows as dead; see `ProviderTable.mark_dead`."""
        self.table.mark_dead(np.array(self.copied_among(rows)[0], dtype=np.int64), class_ids)


def is_too_large(table: ProviderTable, living: int) -> bool:
    """Return whether too many rows of a table are dead, or its columns are nearly full."""
    dead = table.row_count - living
    return dead > max(FEWEST_DEAD_ROWS, living // 2) or (
        table.row_count > max(FEWEST_FULL_ROWS, table.id.room * 3 // 4)
    )
