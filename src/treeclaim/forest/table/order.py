# SPDX-License-Identifier: Apache-2.0
"""The canonical order of trees: by the id of their root.

The rows of a tree are contiguous and in pre-order. The canonical order of providers is the order of
their trees, and within a tree the order of rows. Rows depend on the history of one worker's Forest,
numbers of trees on the data alone. All workers therefore list candidates in the same order
(contract page 90, section 6).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import Column, Integers, Rows, Trees, search_ascending

MOST_TREES_EDITED = 16
"""Changed trees up to which the canonical order, and pairs of anchor and provider, are edited instead
of computed again.
"""


@dataclass(frozen=True, slots=True)
class Splice:
    """A tree that was rewritten, added or removed.

    Attributes:
        tree: Its number; after a removal, the number of the next tree.
        trees_before: Number of trees replaced: 1 or 0.
        trees_now: Number of trees in their place: 1 or 0.
        rows: The present rows of the tree; empty after a removal.
    """

    tree: int
    trees_before: int
    trees_now: int
    rows: range


@dataclass(frozen=True, slots=True)
class TreeOrder:
    """Numbers of trees in the canonical order.

    Attributes:
        roots: Root row by number of the tree, int64, shape (trees,).
        root: Row of the tree's root by row, int64, shape (rows,).
        end: One past the last row of the subtree by row, int64, shape (rows,).
        width: One more than the number of rows of the largest tree, at least.
    """

    roots: Rows
    root: Rows
    end: Rows
    width: int
    _tree: Column

    @classmethod
    def of(
        cls,
        ids: npt.NDArray[Any],
        roots: npt.NDArray[Any],
        ends: npt.NDArray[Any],
        alive: npt.NDArray[Any],
    ) -> "TreeOrder":
        """Compute the order from columns of a Forest (all int64, alive bool)."""
        heads = np.flatnonzero(alive & (roots == np.arange(len(roots))))
        heads = heads[np.argsort(ids[heads], kind="stable")]
        number = np.zeros(len(roots), dtype=np.int64)
        number[heads] = np.arange(len(heads))
        width = int((ends[heads] - heads).max(initial=0)) + 1
        return cls(heads, roots, ends, width, Column.of(number[roots]))

    @property
    def tree(self) -> Trees:
        """Return the tree number of each row, int64, shape (rows,); arbitrary for dead rows."""
        return self._tree.values

    @property
    def span(self) -> int:
        """Return a number greater than all ranks."""
        return len(self.roots) * self.width

    def rank(self, rows: Rows) -> Integers:
        """Return numbers that order rows of living providers canonically."""
        ranks: Integers = self.tree[rows] * self.width + (rows - self.root[rows])
        return ranks

    def rows_at(self, ranks: Integers) -> Rows:
        """Return the rows with these ranks."""
        # Faster than `divmod`.
        tree = ranks // self.width
        rows: Rows = self.roots[tree] + (ranks - tree * self.width)
        return rows

    def in_order(self, rows: Rows) -> Rows:
        """Return ascending rows in canonical order."""
        ordered: Rows = rows[np.argsort(self.tree[rows], kind="stable")]
        return ordered

    def edited(
        self,
        edits: Sequence[tuple[int | None, range]],
        ids: npt.NDArray[Any],
        roots: npt.NDArray[Any],
        ends: npt.NDArray[Any],
    ) -> "tuple[TreeOrder, Sequence[Splice]] | None":
        """Replace trees, given columns of the Forest; the former order must not be used afterwards.

        Args:
            edits: The row of the former root of each tree, None for a new tree, and its present rows,
                empty for a removed tree. The present rows of all trees are the last rows of the table.
            ids: Ids of providers by row.
            roots: Rows of roots by row.
            ends: Ends of subtrees by row.

        Returns:
            The new order and its splices; None if computing the order again is cheaper.
        """
        if len(edits) > MOST_TREES_EDITED:
            return None
        heads, width, splices = self.roots.copy(), self.width, []
        new_rows = sum(len(now) for _, now in edits)
        self._tree.extend(np.zeros(len(ids) - new_rows - len(self._tree), dtype=np.int64))
        for before, now in edits:
            if before is not None:
                number = int(self.tree[before])
            else:
                number = int(search_ascending(ids[heads], ids[now.start]))
            trees_before, trees_now = int(before is not None), int(len(now) > 0)
            self._tree.extend(np.full(len(now), number))
            if trees_before == trees_now:
                heads[number] = now.start
            else:
                tree = self._tree.values[: len(self._tree) - len(now)]
                tree[tree >= number] += trees_now - trees_before
                root = np.full(trees_now, now.start)
                heads = np.concatenate([heads[:number], root, heads[number + trees_before :]])
            width = max(width, len(now) + 1)
            splices.append(Splice(number, trees_before, trees_now, now))
        return replace(self, roots=heads, root=roots, end=ends, width=width), splices
