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
