# SPDX-License-Identifier: Apache-2.0
"""`pack_providers`: how full the providers of a candidate are."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.combination import summed
from treeclaim.forest.order.terms.counted import Taken
from treeclaim.forest.order.terms.options import greatest, least
from treeclaim.forest.order.terms.term import Partial, TermValue
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Rows


class PackProvidersOfClass(TermValue):
    """The sum over the slots of a class of how full their providers are: `pack_providers`."""

    def __init__(
        self, totals: ClassTotals, taken: Sequence[Taken], relations: Sequence[Relation]
    ) -> None:
        """Take what a search has.

        Args:
            totals: What is used of the class.
            taken: What slots take of it.
            relations: Who may take each slot of the search.
        """
        self._totals = totals
        self._taken = taken
        self._all = float(sum(part.amount for part in taken))
        self._relations = relations

    def exact(self, chosen: Choices) -> Floats:
        """Return the sum for each complete candidate."""
        total = np.zeros(len(chosen))
        for part in self._taken:
            position = chosen[:, part.slot]
            amount = np.zeros(len(chosen))
            for other in self._taken:
                amount += np.where(chosen[:, other.slot] == position, other.amount, 0)
            total += self._filled(position, amount)
        return total

    def _filled(self, position: Rows, amount: "Floats | float") -> Floats:
        capacity = np.maximum(self._totals.capacity[position], 1)
        filled: Floats = np.minimum((self._totals.used[position] + amount) / capacity, 1)
        return filled

    @cached_property
    def _most(self) -> list[Floats]:
        """Return for each slot the greatest value of its options under each root."""
        return [greatest(*self._of_options(part, self._all)) for part in self._taken]

    @cached_property
    def _fewest(self) -> list[Floats]:
        """Return for each slot the least value of its options under each root."""
        return [least(*self._of_options(part, float(part.amount))) for part in self._taken]

    def _of_options(self, taken: Taken, amount: float) -> tuple[Relation, Floats]:
        relation = self._relations[taken.slot]
        return relation, self._filled(relation.pairs.provider, amount)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest sum under each root."""
        return summed(self._most)

    @cached_property
    def floor(self) -> Floats:
        """Return the least sum under each root."""
        return summed(self._fewest)

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest sum: filled slots as they are, others at their best."""
        return summed(
            self._filled(partial.chosen[:, part.slot], self._all)
            if part.slot in partial.filled
            else most[partial.anchor]
            for part, most in zip(self._taken, self._most, strict=True)
        )

    def least(self, partial: Partial) -> Floats:
        """Return the least sum."""
        return summed(
            self._filled(partial.chosen[:, part.slot], float(part.amount))
            if part.slot in partial.filled
            else fewest[partial.anchor]
            for part, fewest in zip(self._taken, self._fewest, strict=True)
        )
