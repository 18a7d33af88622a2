# SPDX-License-Identifier: Apache-2.0
"""Partial candidates in blocks."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.columns import Integers, Trees

STACK_BYTES = 64_000_000
"""Memory in which partial candidates wait: at each step of a search as many as are extended
together, each with a provider for every slot. A quarter of what a question may hold by default."""

Choices = npt.NDArray[np.int64]
"""Places chosen, shape (candidates, slots); one row is one candidate."""


def most_rows(slots: int, most: int) -> int:
    """Return how many partial candidates may be extended together, at most some number."""
    return max(min(most, STACK_BYTES // (8 * max(slots, 1) ** 2)), 1)


class Anchored(NamedTuple):
    """Candidates.

    Attributes:
        anchor: Index of each one's anchor in its stage, int64, shape (candidates,).
        chosen: Places, int64, shape (candidates, slots).
    """

    anchor: Integers
    chosen: Choices


class CandidateBlock(NamedTuple):
    """Candidates by the trees of their anchors, whatever stage these were made ready in.

    Attributes:
        tree: Number of the tree of each one's anchor, int64, shape (candidates,).
        chosen: Rows of providers, int64, shape (candidates, slots).
    """

    tree: Trees
    chosen: Choices


class Block:
    """Partial candidates, in order.

    The matrix of choices is wide where a request has many slots, and most partial candidates
    of a wide tree are never read again. A block that grew from another one therefore refers to it,
    and computes its own matrix when it is first read.

    Attributes:
        anchor: Index of the anchor of each, int64, shape (n,).
        heads: Positions of the guessed heads, int64, shape (n, same_subtree lists).
    """

    __slots__ = ("_chosen", "_parents", "_position", "_row", "_slot", "anchor", "heads")

    def __init__(self, anchor: Integers, chosen: Choices, heads: Choices) -> None:
        self.anchor = anchor
        self.heads = heads
        self._chosen: Choices | None = chosen
        self._parents = chosen
        self._row = anchor
        self._slot = -1
        self._position = anchor

    @classmethod
    def empty(cls, anchors: Integers, slots: int, lists: int) -> "Block":
        """Return the partial candidates of some anchors in which nothing is chosen."""
        nothing = np.broadcast_to(np.int64(-1), (len(anchors), slots))
        return cls(anchors, nothing, np.full((len(anchors), lists), -1, dtype=np.int64))

    def __len__(self) -> int:
        """Return the number of partial candidates."""
        return len(self.anchor)

    @property
    def nbytes(self) -> int:
        """Return the memory that it takes; what two parts of one block share counts for both."""
        chosen = self._parents if self._chosen is None else self._chosen
        is_one_value = not any(chosen.strides)
        arrays = (self.anchor, self.heads, self._row, self._position)
        return sum(array.nbytes for array in arrays) + (0 if is_one_value else chosen.nbytes)

    @property
    def chosen(self) -> Choices:
        """Return rows of providers, int64, shape (n, slots); columns not filled yet have no meaning."""
        if self._chosen is None:
            # Taking rows of a matrix is much faster this way than by an index in brackets.
            self._chosen = self._parents.take(self._row, axis=0)
            self._chosen[:, self._slot] = self._position
        return self._chosen

    def filled(self, row: Integers, slot: int, position: Integers) -> "Block":
        """Return some of the partial candidates with providers for a slot."""
        grown = Block(self.anchor.take(row), self.chosen, self.heads.take(row, axis=0))
        grown._chosen = None
        grown._row, grown._slot, grown._position = row, slot, position
        return grown

    def headed(self, row: Integers, subtree: int, position: Integers) -> "Block":
        """Return some of the rows with heads for a same_subtree list."""
        grown = self.take(row)
        grown.heads[:, subtree] = position
        return grown

    def part(self, rows: slice) -> "Block":
        """Return a range of the rows."""
        part = Block(self.anchor[rows], self._parents, self.heads[rows])
        part._chosen = None if self._chosen is None else self._chosen[rows]
        part._row, part._slot, part._position = self._row[rows], self._slot, self._position[rows]
        return part

    def take(self, rows: Integers) -> "Block":
        """Return some of the rows."""
        return Block(
            self.anchor.take(rows), self.chosen.take(rows, axis=0), self.heads.take(rows, axis=0)
        )


class Stack:
    """A stack of blocks, each with the number of its next step; a budget counts its memory."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._waiting: list[tuple[int, Block, int]] = []

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._waiting)

    def push(self, depth: int, block: Block) -> None:
        """Push a block."""
        nbytes = block.nbytes
        self._waiting.append((depth, block, nbytes))
        self._budget.hold(nbytes)

    def pop(self) -> tuple[int, Block]:
        """Pop the block that was pushed last."""
        depth, block, nbytes = self._waiting.pop()
        self._budget.hold(-nbytes)
        return depth, block

    def clear(self) -> None:
        """Drop all blocks."""
        while self._waiting:
            self.pop()
