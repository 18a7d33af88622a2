# SPDX-License-Identifier: Apache-2.0
"""A table without the dead rows, made in steps beside the one that is in use.

Each step copies some living rows, in their order. What is written to a row that is copied already is
written to the copy too, and a tree that is written again meanwhile is reached in the end, where its new
rows are. So nobody has to wait for longer than a step takes, and when all rows are copied the new table
takes the place of the old one.
"""

from collections.abc import Iterable

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.columns import NO_ROW, Column, Rows, search_ascending
from treeclaim.forest.table.provider_table import Places, ProviderTable

_SPAN = 8
"""Dead rows and living ones that are looked through for each that is to be copied."""


class Compaction:
    """Copies of the living rows of a table.

    Attributes:
        table: The copies.
        row: Column of the row of the newest copy by handle; 0 where there is none yet.
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
        self.row = Column(np.int32)
        self.row.make_room(2 * living)
        self._next = 0
        self._undone = 0

    @property
    def copied(self) -> Rows:
        """Return by row of the new table which row it is a copy of, ascending."""
        return self._copied.values

    @property
    def is_complete(self) -> bool:
        """Tell whether all living rows are copied."""
        return self._next == self._source.row_count

    def step(self, most: int) -> int:
        """Copy at most this many living rows; return how many there were.

        As many more as copies have died since the last step, so that there is an end to it. Fewer
        where each has classes or aggregates of its own.
        """
        rows = self._next_rows(most + self._undone)
        self._undone = 0
        first = self.table.row_count
        self._copied.extend(rows)
        new = np.arange(first, first + len(rows))
        parents = self._source.parent.values[rows]
        places = Places(
            parent=np.where(parents == NO_ROW, NO_ROW, search_ascending(self.copied, parents)),
            root=search_ascending(self.copied, self._source.root.values[rows]),
            end=self._source.end.values[rows] - rows + new,
        )
        self.table.gather([(self._source, rows)], np.arange(len(rows)), places)
        handles = self.table.handle.values[first:]
        missing = int(handles.max(initial=-1)) + 1 - len(self.row)
        if missing > 0:
            self.row.extend(np.zeros(missing, dtype=np.int32))
        self.row.values[handles] = new
        return len(rows)

    def _next_rows(self, most: int) -> Rows:
        alive = self._source.alive.values[self._next :]
        dead = int(alive.argmax()) if len(alive) else 0
        if not alive[dead : dead + 1].any():
            dead = len(alive)
        first = self._next + dead
        rows: Rows = first + np.flatnonzero(alive[dead : dead + _SPAN * most])[:most]
        few = self._source.with_few_groups(rows, most)
        if len(few) < len(rows) or len(rows) == most:
            rows, self._next = few, int(few[-1]) + 1
        else:
            self._next = min(first + _SPAN * most, self._source.row_count)
        return rows

    def copied_among(self, rows: Rows) -> tuple[list[int], list[int]]:
        """Return the copies of those of some rows that are copied, and these rows."""
        at = search_ascending(self.copied, rows)
        is_copied = at < len(self.copied)
        is_copied[is_copied] = self.copied[at[is_copied]] == rows[is_copied]
        return at[is_copied].tolist(), rows[is_copied].tolist()

    def bury(self, rows: Rows, class_ids: Iterable[int]) -> None:
        """Mark the copies of some rows as dead; see `ProviderTable.bury`."""
        copies = np.array(self.copied_among(rows)[0], dtype=np.int64)
        self.table.bury(copies, class_ids)
        self._undone += len(copies)


def is_too_large(table: ProviderTable, living: int) -> bool:
    """Tell whether too many rows of a table are dead, or its columns nearly full."""
    dead = table.row_count - living
    return dead > max(thresholds.FEWEST_DEAD_ROWS, living // 2) or (
        table.row_count > max(thresholds.FEWEST_FULL_ROWS, table.id.room * 3 // 4)
    )
