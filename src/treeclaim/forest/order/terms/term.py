# SPDX-License-Identifier: Apache-2.0
"""What a term is, for complete candidates, and at most for what may become one; and sums of terms.

Every term is in [0, 1]. It has three faces: its value for complete candidates; a ceiling for all
candidates of each anchor; and a ceiling for what partial candidates can become. Ceilings may be too
high, never too low.

Sums are made in whole units, so that no order of adding changes them. Candidates that are alike except for the order of their providers have the same score then, to the last
bit, and a bound that is attained is no higher than the score. In binary fractions the sums would
differ in the last place, and where that decides how a score is rounded, a bound would stay above all
that it is for.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
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


Units = npt.NDArray[np.int64]
"""Scores or parts of them, times 2⁶⁰. More digits than a value has, and still the sum of all parts
of a score fits: the factors of the terms sum to 1."""

ONE = 2.0**60
"""A score of 1, in units."""

_TOGETHER = 8
"""Parts that are worked out between two looks at the budget."""


def units(values: Floats, factor: float = 1.0) -> Units:
    """Return values, times a factor, in whole units."""
    units: Units = np.rint(values * (factor * ONE)).astype(np.int64)
    return units


@dataclass(frozen=True, eq=False)
class Weighted:
    """A value times a factor, which may be negative: then the value must know its least values.

    Attributes:
        factor: The factor.
        value: The value.
    """

    factor: float
    value: TermValue

    def exact(self, chosen: Choices) -> Units:
        """Return the part for each complete candidate."""
        return units(self.value.exact(chosen), self.factor)

    @cached_property
    def ceiling(self) -> Units:
        """Return the most that it is under each root."""
        value = self.value
        return units(value.ceiling if self.factor > 0 else value.floor, self.factor)

    def bound(self, partial: Partial) -> Units:
        """Return the most that it may become."""
        value = self.value
        most = value.bound(partial) if self.factor > 0 else value.least(partial)
        return units(most, self.factor)


class Sum:
    """Several parts, perhaps hundreds, and a constant; the budget is looked at again and again."""

    def __init__(self, parts: Sequence[Weighted], constant: float, budget: Budget) -> None:
        """Take the parts, at least one, what is added to them, and what the search may cost."""
        self.parts = parts
        self._budget = budget
        self._constant = int(units(np.array(constant)))

    def exact(self, chosen: Choices) -> Units:
        """Return the sum for each complete candidate."""
        return self._with_constant([part.exact(chosen) for part in self._each()])

    @cached_property
    def ceiling(self) -> Units:
        """Return the most that it is under each root."""
        return self._with_constant([part.ceiling for part in self._each()])

    def bound(self, partial: Partial, without: Collection[int] = ()) -> Units:
        """Return the most that it may become."""
        if len(without) >= len(self.parts):
            return np.full(len(partial), self._constant, dtype=np.int64)
        total: Any = self._constant
        for number, part in enumerate(self._each()):
            if number not in without:
                total += part.bound(partial)
        bound: Units = total
        return bound

    def _each(self) -> Iterator[Weighted]:
        for number, part in enumerate(self.parts):
            if not number % _TOGETHER:
                self._budget.check()
            yield part

    def _with_constant(self, values: Sequence[Units]) -> Units:
        total = values[0] + self._constant
        for value in values[1:]:
            total += value
        return total
