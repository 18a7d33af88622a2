# SPDX-License-Identifier: Apache-2.0
"""`pack` and `pack_providers`: how full the trees, or the providers, of a candidate are."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.counted import Taken, first_of_each
from treeclaim.forest.order.terms.lending import Lending, PackedClass
from treeclaim.forest.order.terms.term import (
    Partial,
    TermValue,
    ValueOfSlot,
    greatest,
    least,
)
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Mask, Rows


class PackOfClass(TermValue):
    """How full the trees of a candidate are of a class, with what it takes: `pack`."""

    def __init__(self, packed: PackedClass) -> None:
        self._trees = packed.trees
        self._totals = packed.totals
        self._slots = [part.slot for part in packed.taken]
        self._amount = float(sum(part.amount for part in packed.taken))
        self._lending = [
            Lending(packed, is_shared=is_shared)
            for is_shared in ([False, True] if packed.trees.may_be_shared else [False])
        ]

    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""
        if self._trees.are_own:
            return self._filled(self._trees.own_trees(chosen))
        return self._filled_by(*self._trees.counted(chosen), chosen[:, self._slots])

    def _filled_by(self, trees: Choices, meant: Mask, positions: Choices) -> Floats:
        """Return how full the trees of candidates and what is lent to them are.

        Args:
            trees: Numbers of trees, shape (candidates, k).
            meant: Which of them are those of the candidate, none twice.
            positions: Who serves the slots that take the class.
        """
        totals = self._totals
        used = np.where(meant, totals.tree_used[trees], 0).sum(axis=1)
        capacity = np.where(meant, totals.tree_capacity[trees], 0).sum(axis=1)
        tree_of = self._trees.tree[positions]
        is_in = ((tree_of[:, :, None] == trees[:, None, :]) & meant[:, None, :]).any(axis=2)
        lent = first_of_each(positions, ~is_in)
        used += np.where(lent, totals.used[positions], 0).sum(axis=1)
        capacity += np.where(lent, totals.capacity[positions], 0).sum(axis=1)
        filled: Floats = np.minimum((used + self._amount) / capacity, 1)
        return filled

    def _filled(self, trees: Rows) -> Floats:
        """Return how full some trees are that are the only one of their candidate."""
        totals = self._totals
        used = totals.tree_used[trees] + self._amount
        filled: Floats = np.minimum(used / np.maximum(totals.tree_capacity[trees], 1), 1)
        return filled

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest value under each root."""
        return self._of_roots(is_greatest=True)

    @cached_property
    def floor(self) -> Floats:
        """Return the least value under each root."""
        return self._of_roots(is_greatest=False)

    def _of_roots(self, *, is_greatest: bool) -> Floats:
        roots = np.arange(len(self._totals.tree_used))
        if self._trees.are_own:
            return self._filled(roots)
        nobody = np.empty((len(roots), 0), dtype=np.int64)
        return self._of_partial(Partial(roots, nobody, frozenset()), is_greatest=is_greatest)

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest value: the value, if the provider that gives the class is known."""
        return self._of_partial(partial, is_greatest=True)

    def least(self, partial: Partial) -> Floats:
        """Return the least value: the value, if the provider that gives the class is known."""
        return self._of_partial(partial, is_greatest=False)

    def _of_partial(self, partial: Partial, *, is_greatest: bool) -> Floats:
        if self._trees.are_own:
            return self.ceiling[partial.anchor]
        known = self._known(partial)
        if known is not None:
            return known
        if not all(lending.is_known for lending in self._lending):
            return np.full(len(partial), float(is_greatest))
        shares = [lending.share(partial, is_greatest=is_greatest) for lending in self._lending]
        share: Floats = (np.maximum if is_greatest else np.minimum).reduce(shares)
        return np.clip(share, 0, 1)

    def _known(self, partial: Partial) -> Floats | None:
        """Return the value if no slot that is not filled yet can change it."""
        if not partial.filled.issuperset(self._slots):
            return None
        if not self._trees.may_be_shared:
            # Somebody of the anchor's own tree gives something, so it is the only one.
            trees = partial.anchor[:, None]
            meant = np.ones(trees.shape, dtype=np.bool_)
            return self._filled_by(trees, meant, partial.chosen[:, self._slots])
        return self.exact(partial.chosen) if self._trees.are_known(partial.filled) else None


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
        """Return the greatest value of some options: every slot that may take from them does."""
        return self._filled(positions, self._most)

    def fewest(self, positions: Rows) -> Floats:
        """Return the least value of some options: no other slot takes from them."""
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
        """Return the greatest value: every unfilled slot takes from the provider too."""
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
