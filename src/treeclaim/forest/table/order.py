# SPDX-License-Identifier: Apache-2.0
"""The canonical order of trees: by the id of their root.

The rows of a tree are contiguous and in pre-order, so the canonical order of providers is that of their trees, and
within a tree that of rows. Rows depend on the history of one worker's Forest; numbers of trees depend on the data
alone. All workers therefore list candidates in the same order (contract page 90, section 6).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import Column, Integers, Rows, Trees, search_ascending

MOST_TREES_EDITED = 16
"""Changed trees that the canonical order, and pairs of anchor and provider, follow; after more, both are found
again."""


@dataclass(frozen=True, slots=True)
class Splice:
    """A tree that was written again, made or taken away.

    Attributes:
        tree: Its number, or that of the tree behind it.
        trees_before: How many trees there were: one or none.
        trees_now: How many trees there are instead: one or none.
        rows: The rows that it has now; empty where it is gone.
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
        width: More than any tree has rows.
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
        """Compute the order from the columns of a Forest (all int64, alive bool)."""
        heads = np.flatnonzero(alive & (roots == np.arange(len(roots))))
        heads = heads[np.argsort(ids[heads], kind="stable")]
        number = np.zeros(len(roots), dtype=np.int64)
        number[heads] = np.arange(len(heads))
        width = int((ends[heads] - heads).max(initial=0)) + 1
        return cls(heads, roots, ends, width, Column.of(number[roots]))

    @property
    def tree(self) -> Trees:
        """Return the number of the tree by row, int64, shape (rows,); meaningless for dead rows."""
        return self._tree.values

    @property
    def span(self) -> int:
        """Return a number that is greater than all ranks."""
        return len(self.roots) * self.width

    def rank(self, rows: Rows) -> Integers:
        """Return numbers that order some rows of living providers canonically."""
        ranks: Integers = self.tree[rows] * self.width + (rows - self.root[rows])
        return ranks

    def rows_at(self, ranks: Integers) -> Rows:
        """Return the rows that have some ranks."""
        # A division by one number is faster than `divmod`.
        tree = ranks // self.width
        rows: Rows = self.roots[tree] + (ranks - tree * self.width)
        return rows

    def in_order(self, rows: Rows) -> Rows:
        """Return some rows, ascending before, in canonical order."""
        ordered: Rows = rows[np.argsort(self.tree[rows], kind="stable")]
        return ordered

    def edited(
        self,
        edits: Sequence[tuple[int | None, range]],
        ids: npt.NDArray[Any],
        roots: npt.NDArray[Any],
        ends: npt.NDArray[Any],
    ) -> "tuple[TreeOrder, Sequence[Splice]] | None":
        """Replace some trees; this order must not be used afterwards.

        Args:
            edits: For each tree the row of its former root, None if it is new, and its rows now, empty if it is gone.
                The rows of all trees together are the last rows of the table, in order.
            ids: Ids of providers by row, as the Forest is now.
            roots: Rows of roots by row.
            ends: Ends of subtrees by row.

        Returns:
            The order now and what changed, one tree after the other; None if that costs more than to compute the
            order again.
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
                here = np.full(trees_now, now.start)
                heads = np.concatenate([heads[:number], here, heads[number + trees_before :]])
            width = max(width, len(now) + 1)
            splices.append(Splice(number, trees_before, trees_now, now))
        return replace(self, roots=heads, root=roots, end=ends, width=width), splices
