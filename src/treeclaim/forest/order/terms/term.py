# SPDX-License-Identifier: Apache-2.0
"""What a term is, for complete candidates, and at most for what may become one.

Every term is in [0, 1]. It has three faces: its value for complete candidates; a ceiling for all
candidates of each anchor; and a ceiling for what partial candidates can become. Ceilings may be too
high, never too low.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Mask, Rows


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial candidates.

    Attributes:
        anchor: Number of the anchor of each, int64, shape (n,).
        chosen: Positions, int64, shape (n, slots).
        filled: Slots whose columns mean something.
    """

    anchor: Rows
    chosen: Choices
    filled: frozenset[int]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.anchor)

    def part(self, some: Mask) -> "Partial":
        """Return some of them."""
        return Partial(self.anchor[some], self.chosen[some], self.filled)


class TermValue(ABC):
    """A term or a part of one, ready to be asked for candidates of one search."""

    @abstractmethod
    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""

    @cached_property
    @abstractmethod
    def ceiling(self) -> Floats:
        """Return the greatest value under each root, by number; of no meaning where none is."""

    @cached_property
    def floor(self) -> Floats:
        """Return the least value under each root, by number."""
        raise NotImplementedError

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest value of what each partial candidate may become."""
        return self.ceiling[partial.anchor]

    def least(self, partial: Partial) -> Floats:
        """Return the least value of what each partial candidate may become."""
        return self.floor[partial.anchor]


class ValueOfSlot(TermValue):
    """A value that each option of a slot has, whatever else is chosen, or at most and at least.

    Attributes:
        slot: The slot.
        relation: Who may take it.
    """

    slot: int
    relation: Relation

    @abstractmethod
    def most(self, positions: Rows) -> Floats:
        """Return the greatest value of some options, by position."""

    @abstractmethod
    def fewest(self, positions: Rows) -> Floats:
        """Return the least value of some options, by position."""


def greatest(relation: Relation, values: Floats) -> Floats:
    """Return the greatest value of the options under each root; 0 where there is none.

    Args:
        relation: Who may take a slot.
        values: One for each of its pairs, those that are not meant included.
    """
    if relation.fits is not None:
        values = np.where(relation.fits, values, -np.inf)
    starts = relation.pairs.starts
    greatest = np.zeros(len(starts) - 1)
    if len(values):
        has = relation.pairs.reached
        greatest[has] = np.maximum.reduceat(values, starts[:-1][has])
        greatest[np.isneginf(greatest)] = 0
    return greatest


def least(relation: Relation, values: Floats) -> Floats:
    """Return the least value of the options under each root; 0 where there is none."""
    return -greatest(relation, -values)
