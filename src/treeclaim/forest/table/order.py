# SPDX-License-Identifier: Apache-2.0
"""The canonical order of providers: trees by the id of their root, each tree in pre-order.

Rows depend on the history of one worker's Forest; the order of positions depends on the data alone. A
search works with positions from beginning to end, so that every worker gives its candidates in the same
order (contract page 90, section 6), and turns them back into rows when it writes the answer.

The positions of a tree follow each other, but between trees some are spare. So a change of one tree is
written into the columns where it is: what it needs more is taken from the next spare positions, and only
the trees before these move. What it needs less becomes spare.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.table.columns import (
    Column,
    Integers,
    Positions,
    Rows,
    Trees,
)
from treeclaim.forest.table.recent_changes import Splice

SPARE = -1
"""Stands for the row of a position that no provider has; all its other values mean nothing."""

_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """Which position each living row has, and the trees in terms of positions.

    The columns are written in place when a tree changes, and the order is another object then.

    Attributes:
        row: Row by position, or SPARE, int64, shape (positions,).
        position: Position by row, int64, shape (rows,); meaningless for dead rows.
        root: Position of the tree's root by position, int64, shape (positions,).
        end: First position behind the subtree by position, int64, shape (positions,).
        tree: Number of the tree among all trees by position, int64, shape (positions,).
        roots: Positions of the roots, ascending, int64.
        is_row_order: True where ascending rows have ascending positions.
    """

    row: Rows
    root: Positions
    end: Positions
    tree: Trees
    roots: Positions
    is_row_order: bool
    _positions: Column
    _columns: tuple[Column, Column, Column, Column]
    _roots: Column

    @classmethod
    def of(
        cls,
        ids: npt.NDArray[Any],
        roots: npt.NDArray[Any],
        ends: npt.NDArray[Any],
        alive: npt.NDArray[Any],
    ) -> "TreeOrder":
        """Compute the order from the columns of a Forest (all int64, alive bool)."""
        root_ids = np.where(alive, ids[roots], _LAST)
        row = np.argsort(root_ids, kind="stable")[: int(np.count_nonzero(alive))]
        is_root = roots[row] == row
        tree = is_root.cumsum() - 1
        first = np.flatnonzero(is_root)
        moved = first // thresholds.SPARE_EVERY * thresholds.SPARE_POSITIONS
        now = np.arange(len(row)) + moved[tree]
        count = _with_spare(int(now[-1]) + 1) if len(now) else 0
        columns = (
            _spread(count, now, row, SPARE),
            _spread(count, now, (first + moved)[tree]),
            _spread(count, now, now + ends[row] - row),
            _spread(count, now, tree),
        )
        return cls._of_columns(
            columns,
            _column(first + moved),
            _spread(len(ids), row, now),
            is_row_order=bool((row[1:] > row[:-1]).all()),
        )

    @classmethod
    def _of_columns(
        cls,
        columns: tuple[Column, Column, Column, Column],
        roots: Column,
        positions: Column,
        *,
        is_row_order: bool,
    ) -> "TreeOrder":
        row, root, end, tree = (column.values for column in columns)
        return cls(row, root, end, tree, roots.values, is_row_order, positions, columns, roots)

    @property
    def position(self) -> Positions:
        """Return the positions by row, int64, shape (rows,); see the class."""
        return self._positions.values

    def renumbered(self, copied: Rows, living: Rows) -> "TreeOrder":
        """Return the same order where the rows are others; this one is not to be used any more.

        Args:
            copied: By new row: the row that it was, ascending.
            living: Those of the new rows that are alive.
        """
        positions = Column(np.int64)
        positions.extend(self.position[copied])
        self.row[positions.values[living]] = living
        return self._of_columns(
            self._columns, self._roots, positions, is_row_order=self.is_row_order
        )

    def edited(
        self, old_root: int | None, ids: npt.NDArray[Any], ends: npt.NDArray[Any], new: range
    ) -> "tuple[TreeOrder, Splice] | None":
        """Write a change of one tree into the columns; None if there is no room near it.

        This order is not to be used any more, whatever is returned.

        Args:
            old_root: Row of the root that the tree had; None if it was not there.
            ids: Ids of providers by row, int64.
            ends: First rows behind the subtrees by row, int64.
            new: Rows of the tree now, the last of the table; empty if it is gone.

        Returns:
            The order as it is now, and the change.
        """
        first, end, tree = self._place_of(old_root, ids, new)
        stop = self._enough_room(end, len(new) - (end - first))
        if stop is None:
            return None
        if stop > len(self.row):
            return self._with_room(stop).edited(old_root, ids, ends, new)
        is_last = tree + int(end > first) == len(self.roots)
        moved = self._make_room(end, stop)
        splice = Splice(first, end, new.start, len(new), tree, moved)
        self._write(splice, ends)
        self._number_trees(splice)
        return replace(
            self, roots=self._roots.values, is_row_order=self.is_row_order and is_last
        ), splice

    def _number_trees(self, splice: Splice) -> None:
        """Count a tree that is new or gone, and number those behind it."""
        more = splice.trees_now - splice.trees_before
        if not more:
            return
        self.tree[max(splice.end, splice.behind) :] += more
        roots = self._roots.values
        if more > 0:
            self._roots.extend([splice.first])
            self._roots.values[splice.tree + 1 :] = roots[splice.tree :].copy()
            self._roots.values[splice.tree] = splice.first
        else:
            self._roots.shorten_to(len(roots) - 1)
            roots[splice.tree : -1] = roots[splice.tree + 1 :].copy()

    def _with_room(self, count: int) -> "TreeOrder":
        """Return the same order with so many positions, and some more that are spare."""
        more = _with_spare(count) - len(self.row)
        for column, value in zip(self._columns, (SPARE, 0, 0, 0), strict=True):
            column.extend(np.full(more, value, dtype=np.int64))
        return self._of_columns(
            self._columns, self._roots, self._positions, is_row_order=self.is_row_order
        )

    def _place_of(
        self, old_root: int | None, ids: npt.NDArray[Any], new: range
    ) -> tuple[int, int, int]:
        """Return where a tree is, or belongs: its positions, and its number."""
        if old_root is not None:
            first = int(self.position[old_root])
            return first, int(self.end[first]), int(self.tree[first])
        tree = bisect_left(
            range(len(self.roots)),
            ids[new.start],
            key=lambda tree: ids[self.row[self.roots[tree]]],
        )
        first = int(self.end[self.roots[tree - 1]]) if tree else 0
        return first, first, tree

    def _enough_room(self, start: int, wanted: int) -> int | None:
        """Return the least position up to which enough are spare; None if there is none near.

        It may be behind all positions that there are.
        """
        if wanted <= 0:
            return start
        reach = thresholds.FEW_POSITIONS_MOVED
        while True:
            reach = min(reach, thresholds.MOST_POSITIONS_MOVED)
            spare = np.flatnonzero(self.row[start : start + reach] == SPARE)
            if len(spare) >= wanted:
                return start + int(spare[wanted - 1]) + 1
            if start + reach >= len(self.row):
                return len(self.row) + wanted - len(spare)
            if reach == thresholds.MOST_POSITIONS_MOVED:
                return None
            reach *= 8

    def _make_room(self, start: int, stop: int) -> Positions:
        """Move the trees within a range to its end; return the new positions by the old ones."""
        living = np.flatnonzero(self.row[start:stop] != SPARE)
        moved = np.zeros(stop - start, dtype=np.int64)
        now = np.arange(stop - len(living), stop)
        moved[living] = now
        living += start
        by = now - living
        rows, tree, root = self.row[living], self.tree[living], self.root[living] + by
        self.end[now] = self.end[living] + by
        self.row[start:stop] = SPARE
        self.row[now], self.tree[now], self.root[now] = rows, tree, root
        self.position[rows] = now
        is_root = root == now
        self.roots[tree[is_root]] = now[is_root]
        return moved

    def _write(self, splice: Splice, ends: npt.NDArray[Any]) -> None:
        here = slice(splice.first, splice.behind)
        rows = slice(splice.row, splice.row + splice.size)
        self.row[splice.first : splice.end] = SPARE
        self.row[here] = np.arange(rows.start, rows.stop)
        self.root[here] = splice.first
        self.end[here] = ends[rows] + (splice.first - splice.row)
        self.tree[here] = splice.tree
        self._positions.extend(np.arange(splice.first, splice.behind))


def _with_spare(count: int) -> int:
    """Return how many positions there are where so many are needed; new trees often come last."""
    share = count * thresholds.SPARE_POSITIONS // thresholds.SPARE_EVERY
    return count + max(thresholds.SPARE_POSITIONS, share)


def _spread(count: int, at: Integers, values: Integers, otherwise: int = 0) -> Column:
    spread = np.full(count, otherwise, dtype=np.int64)
    spread[at] = values
    return _column(spread)


def _column(values: Integers) -> Column:
    column = Column(np.int64)
    column.extend(values)
    return column
