# SPDX-License-Identifier: Apache-2.0
"""Ancestors by position: depths, parents and lowest common ancestors."""

from dataclasses import dataclass

import numpy as np

from treeclaim.forest.table.columns import NO_ROW, Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.order import SPARE


@dataclass(frozen=True, slots=True)
class Relatives:
    """Which provider is above which; depends only on the shape of the Forest.

    Attributes:
        parent: Position of the parent by position, int64; a root is its own.
        depth: Depth by position, int64; that of a root is 0.
        root, end: As in `TreeOrder`.
    """

    parent: Rows
    depth: Rows
    root: Rows
    end: Rows

    @property
    def nbytes(self) -> int:
        """Return the memory that is kept for it; `root` and `end` belong to the order."""
        return self.parent.nbytes + self.depth.nbytes

    @property
    def deepest(self) -> int:
        """Return the greatest depth of all."""
        return int(self.depth.max(initial=0))

    def common(self, first: Rows, last: Rows) -> Rows:
        """Return the lowest common ancestor-or-self of each pair of positions of one tree.

        Args:
            first: int64, shape (n,).
            last: int64, shape (n,), none before the first of its pair.
        """
        ancestor = first.copy()
        above = np.flatnonzero(self.end[ancestor] <= last)
        while len(above):
            ancestor[above] = self.parent[ancestor[above]]
            above = above[self.end[ancestor[above]] <= last[above]]
        return ancestor

    def same_tree(self, first: Rows, last: Rows) -> Mask:
        """Tell which pairs are of one tree."""
        same: Mask = self.root[first] == self.root[last]
        return same


def relatives_of(forest: Forest) -> Relatives:
    """Return which provider is above which in a Forest; the same as long as its shape is."""

    def made() -> Relatives:
        order = forest.order
        rows = forest.parent.values[order.row]
        positions = np.arange(len(order.row))
        has_parent = (order.row != SPARE) & (rows != NO_ROW)
        parent = np.where(has_parent, order.position[rows], positions)
        depth = np.zeros(len(positions), dtype=np.int64)
        reached = positions
        while (is_below := parent[reached] != reached).any():
            depth += is_below
            reached = parent[reached]
        # The order goes on being written; only what is kept here may not be written into.
        return Relatives(parent, depth, order.root[:], order.end[:])

    return forest.cache.get("relatives", made)
