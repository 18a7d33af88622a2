# SPDX-License-Identifier: Apache-2.0
"""Terms that are made of others: sums, and one minus a term."""

import operator
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce

from treeclaim.forest.order.terms.term import Partial, TermValue
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.partial.blocks import Choices


class Inverse(TermValue):
    """One minus a value, which must know its least values too."""

    def __init__(self, value: TermValue) -> None:
        """Take the value."""
        self._value = value

    def exact(self, chosen: Choices) -> Floats:
        """Return one minus the value."""
        return 1 - self._value.exact(chosen)

    @cached_property
    def ceiling(self) -> Floats:
        """Return one minus the least value under each root."""
        return 1 - self._value.floor

    def bound(self, partial: Partial) -> Floats:
        """Return one minus the least value."""
        return 1 - self._value.least(partial)


class Sum(TermValue):
    """Several values, each times a factor that is not negative."""

    def __init__(self, parts: Sequence[tuple[float, TermValue]]) -> None:
        """Take the factors and values, at least one."""
        self._parts = parts

    def exact(self, chosen: Choices) -> Floats:
        """Return the sum for each complete candidate."""
        return summed(factor * part.exact(chosen) for factor, part in self._parts)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the sum of the greatest values."""
        return summed(factor * part.ceiling for factor, part in self._parts)

    @cached_property
    def floor(self) -> Floats:
        """Return the sum of the least values."""
        return summed(factor * part.floor for factor, part in self._parts)

    def bound(self, partial: Partial) -> Floats:
        """Return the sum of the greatest values."""
        return summed(factor * part.bound(partial) for factor, part in self._parts)

    def least(self, partial: Partial) -> Floats:
        """Return the sum of the least values."""
        return summed(factor * part.least(partial) for factor, part in self._parts)


def summed(parts: Iterable[Floats]) -> Floats:
    """Return the sum of some values, at least one."""
    total: Floats = reduce(operator.add, parts)
    return total
