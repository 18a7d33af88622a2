# SPDX-License-Identifier: Apache-2.0
"""The canonical order of providers: trees by the id of their root, each tree in pre-order.

Rows depend on the history of one worker's Forest; positions depend on the data alone. A search works
with positions from beginning to end, so that every worker gives its candidates in the same order
(contract page 90, section 6), and turns them back into rows when it writes the answer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import Integers, Positions, Rows, Trees

_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Splice:
    """A tree that was written again, made or taken away, in terms of positions.

    Attributes:
        first, end: The positions that the tree had; they are equal where there was none.
        row, size: First row and number of rows that it has now; size 0 where it is gone.
        tree: Its number, or that of the tree behind it.
    """

    first: int
    end: int
    row: int
    size: int
    tree: int

    @property
    def shift(self) -> int:
        """Return how far all positions behind the tree move."""
        return self.size - (self.end - self.first)

    @property
    def trees_before(self) -> int:
        """Return how many trees there were: one or none."""
        return int(self.end > self.first)

    @property
    def trees_now(self) -> int:
        """Return how many trees there are instead: one or none."""
        return int(self.size > 0)


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """Which position each living row has, and the trees in terms of positions.

    Attributes:
        row: Row by position, int64, shape (living,).
        position: Position by row, int64, shape (rows,); meaningless for dead rows.
        root: Position of the tree's root by position, int64, shape (living,).
        end: First position behind the subtree by position, int64, shape (living,).
        tree: Number of the tree among all trees by position, int64, shape (living,).
        roots: Places of the roots, ascending, int64.
        is_row_order: True where ascending rows have ascending positions.
    """

    row: Rows
    position: Positions
    root: Positions
    end: Positions
    tree: Trees
    roots: Positions
    is_row_order: bool

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
        by_tree = np.argsort(root_ids, kind="stable")
        row = by_tree[: int(np.count_nonzero(alive))]
        position = np.empty(len(ids), dtype=np.int64)
        position[by_tree] = np.arange(len(ids))
        sizes: Integers = ends[row] - row
        root = position[roots[row]]
        is_root = root == np.arange(len(row))
        return cls(
            row=row,
            position=position,
            root=root,
            end=np.arange(len(row)) + sizes,
            tree=is_root.cumsum() - 1,
            roots=np.flatnonzero(is_root),
            is_row_order=bool((row[1:] > row[:-1]).all()),
        )

    def splice_of(self, old_root: int | None, root_ids: npt.NDArray[Any], new: range) -> Splice:
        """Say where a tree is and was.

        Args:
            old_root: Row of the root that it had; None if it was not there.
            root_ids: Id of the provider by row.
            new: Its rows now.
        """
        if old_root is not None:
            first = int(self.position[old_root])
            return Splice(first, int(self.end[first]), new.start, len(new), int(self.tree[first]))
        ids = root_ids[self.row[self.roots]]
        tree = int(ids.searchsorted(root_ids[new.start]))
        first = int(self.roots[tree]) if tree < len(self.roots) else len(self.row)
        return Splice(first, first, new.start, len(new), tree)

    def spliced(self, splice: Splice, ends: npt.NDArray[Any]) -> "TreeOrder":
        """Return the order after a change of one tree, by moving what is behind it.

        Args:
            splice: The change. It has added its rows at the end of the table.
            ends: First row behind the subtree, by row.
        """
        first, end, shift = splice.first, splice.end, splice.shift
        rows = np.arange(splice.row, splice.row + splice.size)
        row = np.concatenate([self.row[:first], rows, self.row[end:]])
        position = np.concatenate([self.position, rows - splice.row + first])
        if shift:
            behind = self.row[end:]
            position[behind] += shift
        roots_now = np.full(splice.trees_now, first)
        is_last = end == len(self.row)
        return TreeOrder(
            row=row,
            position=position,
            root=_replaced(self.root, splice, np.full(splice.size, first), shift),
            end=_replaced(self.end, splice, ends[rows] - splice.row + first, shift),
            tree=_replaced(
                self.tree,
                splice,
                np.full(splice.size, splice.tree),
                splice.trees_now - splice.trees_before,
            ),
            roots=np.concatenate(
                [
                    self.roots[: splice.tree],
                    roots_now,
                    self.roots[splice.tree + splice.trees_before :] + shift,
                ]
            ),
            is_row_order=self.is_row_order and is_last,
        )


def _replaced(column: Integers, splice: Splice, new: Integers, behind: int) -> Integers:
    """Return a column by position with the values of one tree replaced, and those behind it raised."""
    after = column[splice.end :]
    return np.concatenate([column[: splice.first], new, after + behind if behind else after])
