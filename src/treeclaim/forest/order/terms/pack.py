# SPDX-License-Identifier: Apache-2.0
"""`pack`: how full the trees of a candidate are."""

from functools import cached_property

import numpy as np

from treeclaim.forest.order.terms.counted import first_of_each
from treeclaim.forest.order.terms.lending import Lending, PackedClass
from treeclaim.forest.order.terms.term import Partial, TermValue
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Mask, Rows


class PackOfClass(TermValue):
    """How full the trees of a candidate are of a class, with what it takes: `pack`."""

    def __init__(self, packed: PackedClass) -> None:
        """Take what a search has of the class."""
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
        """Return the greatest value: the value, where who gives of the class is known."""
        return self._of_partial(partial, is_greatest=True)

    def least(self, partial: Partial) -> Floats:
        """Return the least value: the value, where who gives of the class is known."""
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
        found: Floats = (np.maximum if is_greatest else np.minimum).reduce(shares)
        return np.clip(found, 0, 1)

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
