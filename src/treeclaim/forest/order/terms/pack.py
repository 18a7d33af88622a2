# SPDX-License-Identifier: Apache-2.0
"""`pack`: how full the trees of a candidate are."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.counted import CountedTrees, Taken, first_of_each
from treeclaim.forest.order.terms.options import greatest, least
from treeclaim.forest.order.terms.term import Partial, TermValue
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Mask, Rows


class PackOfClass(TermValue):
    """How full the trees of a candidate are of a class, with what it takes: `pack`."""

    def __init__(
        self,
        trees: CountedTrees,
        totals: ClassTotals,
        taken: Sequence[Taken],
        relations: Sequence[Relation],
    ) -> None:
        """Take what a search has.

        Args:
            trees: Which trees each candidate uses.
            totals: What is used of the class.
            taken: What slots take of it.
            relations: Who may take each slot of the search.
        """
        self._trees = trees
        self._totals = totals
        self._slots = [part.slot for part in taken]
        self._amount = float(sum(part.amount for part in taken))
        self._relations = [relations[slot] for slot in self._slots]
        self._is_divided = any(part.is_divided for part in taken)

    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""
        if self._trees.are_own:
            return self._filled(self._trees.own(chosen))
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
        own = self._trees.tree[positions]
        is_in = ((own[:, :, None] == trees[:, None, :]) & meant[:, None, :]).any(axis=2)
        lent = first_of_each(positions, ~is_in)
        used += np.where(lent, totals.used[positions], 0).sum(axis=1)
        capacity += np.where(lent, totals.capacity[positions], 0).sum(axis=1)
        filled: Floats = np.minimum((used + self._amount) / capacity, 1)
        return filled

    def _filled(self, trees: Rows) -> Floats:
        """Return how full some trees are that are the only one of their candidate."""
        totals = self._totals
        used = totals.tree_used[trees] + self._amount
        filled: Floats = np.minimum(used / totals.tree_capacity[trees], 1)
        return filled

    def _options(self) -> tuple[Relation, Floats] | None:
        """Return the value by option where one provider alone gives of the class, else None."""
        if len(self._slots) > 1 or self._is_divided:
            return None
        (relation,) = self._relations
        totals, pairs = self._totals, relation.pairs
        root = np.arange(len(pairs.starts) - 1).repeat(np.diff(pairs.starts))
        lent = self._trees.tree[pairs.provider] != root
        used = totals.tree_used[root] + np.where(lent, totals.used[pairs.provider], 0)
        capacity = totals.tree_capacity[root] + np.where(lent, totals.capacity[pairs.provider], 0)
        return relation, np.minimum((used + self._amount) / np.maximum(capacity, 1), 1)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest value under each root."""
        if self._trees.may_be_shared:
            return np.ones(len(self._totals.tree_used))
        if all(relation.pairs.is_local for relation in self._relations):
            return self._of_trees()
        options = self._options()
        return np.ones(len(self._totals.tree_used)) if options is None else greatest(*options)

    @cached_property
    def floor(self) -> Floats:
        """Return the least value under each root."""
        if self._trees.may_be_shared:
            return np.zeros(len(self._totals.tree_used))
        if all(relation.pairs.is_local for relation in self._relations):
            return self._of_trees()
        options = self._options()
        return np.zeros(len(self._totals.tree_used)) if options is None else least(*options)

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest value: the value, where who gives of the class is known."""
        known = self._known(partial)
        return self.ceiling[partial.anchor] if known is None else known

    def least(self, partial: Partial) -> Floats:
        """Return the least value: the value, where who gives of the class is known."""
        known = self._known(partial)
        return self.floor[partial.anchor] if known is None else known

    def _known(self, partial: Partial) -> Floats | None:
        """Return the value if no slot that is not filled yet can change it."""
        if self._trees.are_own or not partial.filled.issuperset(self._slots):
            return None
        if not self._trees.may_be_shared:
            # Somebody of the anchor's own tree gives something, so it is the only one.
            trees = partial.anchor[:, None]
            meant = np.ones(trees.shape, dtype=np.bool_)
            return self._filled_by(trees, meant, partial.chosen[:, self._slots])
        return self.exact(partial.chosen) if self._trees.are_known(partial.filled) else None

    def _of_trees(self) -> Floats:
        totals = self._totals
        capacity = np.maximum(totals.tree_capacity, 1)
        filled: Floats = np.minimum((totals.tree_used + self._amount) / capacity, 1)
        return filled
