# SPDX-License-Identifier: Apache-2.0
"""Partial candidates in blocks."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.columns import Rows

Choices = npt.NDArray[np.int64]
"""Places chosen, shape (candidates, slots); one row is one candidate."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some partial candidates, in order.

    Attributes:
        anchor: Index of each one's anchor, int64, shape (n,).
        chosen: Places, int64, shape (n, slots); columns not filled yet have no meaning.
        heads: Places of the heads guessed, int64, shape (n, same_subtree lists).
    """

    anchor: Rows
    chosen: Choices
    heads: Choices

    def __len__(self) -> int:
        """Return the number of partial candidates."""
        return len(self.anchor)

    def part(self, rows: slice) -> "Block":
        """Return a range of the rows, not to be written to."""
        return Block(self.anchor[rows], self.chosen[rows], self.heads[rows])

    def take(self, rows: Rows) -> "Block":
        """Return some of the rows as a block of its own."""
        # Taking rows of a matrix is much faster this way than by an index in brackets.
        return Block(
            self.anchor.take(rows), self.chosen.take(rows, axis=0), self.heads.take(rows, axis=0)
        )
