# SPDX-License-Identifier: Apache-2.0
"""Partial candidates in blocks."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.columns import Integers, Trees

STACK_BYTES = 64_000_000
"""Memory for the partial candidates on the stack: a block for each step of a search, and each row with a provider for
every slot. It is a quarter of a question's default memory limit."""

Choices = npt.NDArray[np.int64]
"""Rows of providers, int64, shape (candidates, slots); -1 or undefined for open slots."""


def most_rows(slots: int, most: int) -> int:
    """Return the number of partial candidates to extend together: at most `most`, within `STACK_BYTES`."""
    return max(min(most, STACK_BYTES // (8 * max(slots, 1) ** 2)), 1)


class Anchored(NamedTuple):
    """Candidates with the indices of their anchors in a stage, int64, shape (candidates,)."""

    anchor: Integers
    chosen_rows: Choices


class CandidateBlock(NamedTuple):
    """Candidates with the numbers of their anchors' trees, int64, shape (candidates,)."""

    tree: Trees
    chosen_rows: Choices


class Block:
    """Partial candidates, in order.

    A request with many slots has a wide matrix of choices, and most partial candidates of a wide tree
    are never read. An extended block therefore refers to its parent, and computes its own matrix
    at the first read.

    Attributes:
        anchor: Index of each anchor, int64, shape (n,).
        heads: Rows of the guessed heads, int64, shape (n, same_subtree lists).
    """

    __slots__ = ("_chosen_rows", "_parents", "_position", "_row", "_slot", "anchor", "heads")

    def __init__(self, anchor: Integers, chosen_rows: Choices, heads: Choices) -> None:
        self.anchor = anchor
        self.heads = heads
        self._chosen_rows: Choices | None = chosen_rows
        self._parents = chosen_rows
        self._row = anchor
        self._slot = -1
        self._position = anchor

    @classmethod
    def empty(cls, anchors: Integers, slots: int, lists: int) -> "Block":
        """Return one partial candidate without choices for each anchor."""
        nothing = np.broadcast_to(np.int64(-1), (len(anchors), slots))
        return cls(anchors, nothing, np.full((len(anchors), lists), -1, dtype=np.int64))

    def __len__(self) -> int:
        """Return the number of partial candidates."""
        return len(self.anchor)

    @property
    def nbytes(self) -> int:
        """Return the bytes of its arrays; arrays that parts of a block share count for each part."""
        chosen_rows = self._parents if self._chosen_rows is None else self._chosen_rows
        is_one_value = not any(chosen_rows.strides)
        arrays = (self.anchor, self.heads, self._row, self._position)
        return sum(array.nbytes for array in arrays) + (0 if is_one_value else chosen_rows.nbytes)

    @property
    def chosen_rows(self) -> Choices:
        """Return rows of providers, int64, shape (n, slots); the columns of open slots are undefined."""
        if self._chosen_rows is None:
            # `take` is much faster than indexing.
            self._chosen_rows = self._parents.take(self._row, axis=0)
            self._chosen_rows[:, self._slot] = self._position
        return self._chosen_rows

    def filled(self, row: Integers, slot: int, position: Integers) -> "Block":
        """Return the partial candidates at `row`, extended by providers for a slot."""
        grown = Block(self.anchor.take(row), self.chosen_rows, self.heads.take(row, axis=0))
        grown._chosen_rows = None
        grown._row, grown._slot, grown._position = row, slot, position
        return grown

    def headed(self, row: Integers, subtree: int, position: Integers) -> "Block":
        """Return the partial candidates at `row`, extended by heads for a same_subtree list."""
        grown = self.take(row)
        grown.heads[:, subtree] = position
        return grown

    def part(self, rows: slice) -> "Block":
        """Return a range of the partial candidates."""
        part = Block(self.anchor[rows], self._parents, self.heads[rows])
        part._chosen_rows = None if self._chosen_rows is None else self._chosen_rows[rows]
        part._row, part._slot, part._position = self._row[rows], self._slot, self._position[rows]
        return part

    def take(self, rows: Integers) -> "Block":
        """Return the partial candidates at some indices."""
        return Block(
            self.anchor.take(rows),
            self.chosen_rows.take(rows, axis=0),
            self.heads.take(rows, axis=0),
        )


class Stack:
    """A stack of blocks with the numbers of their next steps; a budget counts its memory."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._waiting: list[tuple[int, Block, int]] = []

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._waiting)

    def push(self, depth: int, block: Block) -> None:
        """Push a block with the number of its next step."""
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
