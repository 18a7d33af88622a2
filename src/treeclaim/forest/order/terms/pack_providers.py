# SPDX-License-Identifier: Apache-2.0
"""`pack_providers`: how full the providers of a candidate are."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.counted import Taken
from treeclaim.forest.order.terms.options import greatest, least
from treeclaim.forest.order.terms.term import Partial, ValueOfSlot
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Rows


class PackProvidersOfSlot(ValueOfSlot):
    """How full the provider of a slot is of a class, with all that the candidate takes there."""

    def __init__(
        self,
        name: str,
        totals: ClassTotals,
        taken: Taken,
        beside: Sequence[Taken],
        relations: Sequence[Relation],
    ) -> None:
        """Take what a search has.

        Args:
            name: The class.
            totals: What is used of it.
            taken: What the slot takes of it.
            beside: What other slots take of it that may have the same provider.
            relations: Who may take each slot of the search.
        """
        self.resource_class = name
        self.amount = taken.amount
        self._totals = totals
        self._beside = beside
        self._least = taken.least
        self._most = float(taken.amount) + sum(part.amount for part in beside)
        self.slot = taken.slot
        self.relation = relations[taken.slot]

    def exact(self, chosen: Choices) -> Floats:
        """Return how full the provider is for each complete candidate."""
        return self._filled(chosen[:, self.slot], self._with(chosen, self._beside))

    def _with(self, chosen: Choices, beside: Sequence[Taken]) -> Floats:
        """Return what the slot and some others take from its provider."""
        position = chosen[:, self.slot]
        amount = np.full(len(chosen), float(self.amount))
        for other in beside:
            amount += np.where(chosen[:, other.slot] == position, other.amount, 0)
        return amount

    def _filled(self, position: Rows, amount: "Floats | float") -> Floats:
        capacity = np.maximum(self._totals.capacity[position], 1)
        filled: Floats = np.minimum((self._totals.used[position] + amount) / capacity, 1)
        return filled

    def filled(self, positions: Rows, amounts: Rows) -> Floats:
        """Return how full some providers are by amounts that a candidate takes there."""
        return self._filled(positions, amounts.astype(np.float64))

    def shared(self, positions: Rows, amount: int) -> Floats:
        """Return how full some providers are by an amount, which may be more than they have."""
        capacity = np.maximum(self._totals.capacity[positions], 1)
        filled: Floats = (self._totals.used[positions] + amount) / capacity
        return filled

    def most(self, positions: Rows) -> Floats:
        """Return the greatest value of some options: whoever may take from them does."""
        return self._filled(positions, self._most)

    def fewest(self, positions: Rows) -> Floats:
        """Return the least value of some options: nobody else takes from them."""
        return self._filled(positions, self._least)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest value under each root."""
        return greatest(self.relation, self.most(self.relation.pairs.provider))

    @cached_property
    def floor(self) -> Floats:
        """Return the least value under each root."""
        return least(self.relation, self.fewest(self.relation.pairs.provider))

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest value: whoever is not filled yet takes from the provider too."""
        if self.slot not in partial.filled:
            return self.ceiling[partial.anchor]
        beside = [part for part in self._beside if part.slot in partial.filled]
        more = sum(part.amount for part in self._beside if part.slot not in partial.filled)
        return self._filled(
            partial.chosen[:, self.slot], self._with(partial.chosen, beside) + more
        )

    def least(self, partial: Partial) -> Floats:
        """Return the least value: nobody else takes from the provider."""
        if self.slot not in partial.filled:
            return self.floor[partial.anchor]
        beside = [part for part in self._beside if part.slot in partial.filled]
        return self._filled(partial.chosen[:, self.slot], self._with(partial.chosen, beside))
