# SPDX-License-Identifier: Apache-2.0
"""`near`: how near the providers of some suffixed groups are."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.competing.filling import ABOVE
from treeclaim.forest.order.terms.term import Partial, TermValue
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.order.trees import Relatives
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Mask, Rows


@dataclass(frozen=True, slots=True)
class Frame:
    """A way in which providers may be near each other.

    Attributes:
        value: How near they are then.
        above: Position of their lowest common ancestor-or-self; None if there are no limits.
        deepest: Depth that none of them exceeds.
    """

    value: float
    above: int | None
    deepest: int


class Near(TermValue):
    """How near the providers of some suffixed groups are: `near`."""

    def __init__(
        self,
        relatives: Relatives,
        slots: Sequence[int],
        relations: Sequence[Relation],
        roots: Rows,
        cache: ByteCache,
    ) -> None:
        self._cache = cache
        self._relatives = relatives
        self.slots = list(slots)
        self._relations = [relations[slot] for slot in slots]
        self._roots = roots
        self._is_local = all(relation.pairs.is_local for relation in self._relations)

    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""
        return self._near(chosen[:, self.slots])

    def _near(self, positions: Choices) -> Floats:
        relatives = self._relatives
        first, last = positions.min(axis=1), positions.max(axis=1)
        near = np.zeros(len(positions))
        same = np.flatnonzero(relatives.same_tree(first, last))
        common = relatives.common(first[same], last[same])
        deepest = relatives.depth[positions[same]].max(axis=1, initial=0)
        near[same] = (relatives.depth[common] + 1) / (deepest + 1)
        return near

    def frames(self, known: Sequence[int], options: Sequence[Rows]) -> list[Frame]:
        """Return in how many ways the providers of all slots may be near each other.

        Args:
            known: Those that are chosen.
            options: For each other slot, the providers that may serve it: positions, ascending.
        """
        relatives = self._relatives
        anywhere = Frame(0.0, None, 0)
        above = options[0] if options else np.array(known[:1], dtype=np.int64)
        if known:
            first, last = np.array([min(known)]), np.array([max(known)])
            if not relatives.same_tree(first, last)[0]:
                return [anywhere]
            above = relatives.common(first, last)
        depths = np.unique(relatives.depth[np.concatenate([*options, np.array(known, np.int64)])])
        least = int(relatives.depth[known].max(initial=0))
        frames = set() if self._is_local else {anywhere}
        while len(above):
            for position in set(above.tolist()):
                depth = int(relatives.depth[position])
                frames |= {
                    Frame((depth + 1) / (deepest + 1), position, deepest)
                    for deepest in depths[depths >= max(least, depth)].tolist()
                }
            above = relatives.parent[above[relatives.depth[above] > 0]]
        return list(frames)

    def is_inside(self, frame: Frame, positions: Rows) -> Mask:
        """Tell which positions keep within a frame."""
        relatives = self._relatives
        if frame.above is None:
            return np.ones(len(positions), dtype=np.bool_)
        is_below = (positions >= frame.above) & (positions < relatives.end[frame.above])
        inside: Mask = is_below & (relatives.depth[positions] <= frame.deepest)
        return inside

    def branches(self, above: int, positions: Rows) -> Rows:
        """Return the child of an ancestor that each position is below; `ABOVE` for itself, -2 for others."""
        relatives = self._relatives
        child = positions.copy()
        depth = int(relatives.depth[above]) + 1
        while (is_deep := relatives.depth[child] > depth).any():
            child[is_deep] = relatives.parent[child[is_deep]]
        branches: Rows = np.where(relatives.parent[child] == above, child, -2)
        branches[positions == above] = ABOVE
        return branches

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest value under each root.

        At best all meet in some provider, and are as high below it as they can be.
        """
        if not self._is_local:
            return np.ones(len(self._roots))
        related = {id(relation): relation for relation in self._relations}.values()
        # Amounts count only as far as they decide which providers have room.
        key = tuple(
            (
                relation.pairs.serial,
                None if relation.fits is None else np.packbits(relation.fits).tobytes(),
            )
            for relation in related
        )
        return self._cache.get(("near", key), self._nearest)

    def _nearest(self) -> Floats:
        """Work out the greatest value under each root."""
        relatives = self._relatives
        highest = np.zeros(len(relatives.depth), dtype=np.int64)
        for relation in {id(relation): relation for relation in self._relations}.values():
            np.maximum(highest, self._highest_below(relation.providers), out=highest)
        values = (relatives.depth + 1) / (highest + 1)
        return np.maximum.reduceat(values, self._roots) if len(self._roots) else values

    def _highest_below(self, providers: Rows) -> Rows:
        """Return the least depth of some providers in the subtree of each position."""
        relatives = self._relatives
        never = np.int64(2**40)
        highest = np.full(len(relatives.depth), never)
        highest[providers] = relatives.depth[providers]
        for depth in range(relatives.deepest, 0, -1):
            level = np.flatnonzero((relatives.depth == depth) & (highest < never))
            np.minimum.at(highest, relatives.parent[level], highest[level])
        return highest

    @cached_property
    def floor(self) -> Floats:
        """Return a value that none is below, under each root."""
        return np.full(len(self._roots), self._least())

    def _least(self) -> float:
        return 1 / (self._relatives.deepest + 1) if self._is_local else 0.0

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest value: more providers only make it less."""
        known = [slot for slot in self.slots if slot in partial.filled]
        ceiling = self.ceiling[partial.anchor]
        if not known:
            return ceiling
        return np.minimum(self._near(partial.chosen[:, known]), ceiling)

    def least(self, partial: Partial) -> Floats:
        """Return a value that none is below."""
        if all(slot in partial.filled for slot in self.slots):
            return self._near(partial.chosen[:, self.slots])
        return np.full(len(partial), self._least())
