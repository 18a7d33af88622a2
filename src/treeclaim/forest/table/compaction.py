# SPDX-License-Identifier: Apache-2.0
"""A table without the dead rows, made in steps beside the one that is in use.

Each step copies the living rows among the next rows, in their order. Writes to a copied row are repeated on its copy,
and a tree that is written again meanwhile is copied from its new rows at the end. No request therefore
waits for longer than a step. When all rows are copied, the new table replaces the old one.
"""

from collections.abc import Iterable

import numpy as np

from treeclaim.forest.table.columns import NO_ROW, Column, Rows, search_ascending
from treeclaim.forest.table.provider_table import ProviderTable, RowPlaces

FEWEST_DEAD_ROWS = 4096
"""Dead rows from which on the living ones are copied to a table of their own, if they are also half
as many as these."""

FEWEST_FULL_ROWS = 65_536
"""Rows from which on the living ones are copied when three quarters of the room are taken: to copy
the columns of fewer takes two milliseconds."""


class Compaction:
    """Copies of the living rows of a table.

    Attributes:
        table: The copies.
    """

    def __init__(self, source: ProviderTable, living: int) -> None:
        """Begin with nothing copied.

        Args:
            source: The table that is in use.
            living: How many of its rows are alive.
        """
        self.table = ProviderTable()
        self.table.begin_beside(source, living)
        self._source = source
        self._copied = Column(np.int64)
        self._copied.make_room(2 * living)
        self._next = 0
        self._row_count = source.row_count

    @property
    def copied(self) -> Rows:
        """Return by row of the new table which row it is a copy of, ascending."""
        return self._copied.values

    @property
    def is_complete(self) -> bool:
        """Return whether all living rows are copied."""
        return self._next == self._source.row_count

    def step(self, most: int) -> None:
        """Copy the living rows among the next ones, of which there are at most this many.

        As many more as were added since the last step, so that there is an end to it. Fewer where each
        has classes or aggregates of its own.
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
        self.table.gather(self._source, rows, places)
        # Rows that are copied now may have changed after their root was copied.
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
        few = self._source.with_few_groups(rows, most)
        self._next = end if len(few) == len(rows) else int(few[-1]) + 1
        return few

    def copied_among(self, rows: Rows) -> tuple[list[int], list[int]]:
        """Return the copies of those of some rows that are copied, and these rows."""
        at = search_ascending(self.copied, rows)
        is_copied = at < len(self.copied)
        is_copied[is_copied] = self.copied[at[is_copied]] == rows[is_copied]
        return at[is_copied].tolist(), rows[is_copied].tolist()

    def bury(self, rows: Rows, class_ids: Iterable[int]) -> None:
        """Mark the copies of some rows as dead; see `ProviderTable.bury`."""
        self.table.bury(np.array(self.copied_among(rows)[0], dtype=np.int64), class_ids)


def is_too_large(table: ProviderTable, living: int) -> bool:
    """Return whether too many rows of a table are dead, or its columns nearly full."""
    dead = table.row_count - living
    return dead > max(FEWEST_DEAD_ROWS, living // 2) or (
        table.row_count > max(FEWEST_FULL_ROWS, table.id.room * 3 // 4)
    )
