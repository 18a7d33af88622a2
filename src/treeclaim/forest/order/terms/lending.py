# SPDX-License-Identifier: Apache-2.0
"""How full of a class the trees of partial candidates become, with what is lent to them: `pack`, bounded.

A candidate is as full as its tree and its lenders are together; or, if only lenders give
anything, as the trees of the lenders. Each counts once, however many slots it serves. So a slot that is
still to be filled changes nothing if a provider fills it that is counted already and has room, and a
new one makes the candidate as full as `Added` says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.added import Added
from treeclaim.forest.order.terms.counted import CountedTrees, Taken
from treeclaim.forest.order.terms.term import Partial
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.table.columns import Integers, Mask, Positions

_MOST_WRITTEN = 2**22
"""Flags that say which provider may come to which tree: four megabytes."""

_TOGETHER = 2**18
"""As many are looked at by one operation."""

_NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class PackedClass:
    """What a search has of a class.

    Attributes:
        trees: Which trees each candidate uses.
        totals: What is used of the class.
        taken: What slots take of it.
        relations: Who may take each slot of the search.
        are_apart: Whether each of these slots has another provider.
    """

    trees: CountedTrees
    totals: ClassTotals
    taken: Sequence[Taken]
    relations: Sequence[Relation]
    are_apart: bool


class Lending:
    """Candidates with a tree of their own, or those of only sharing providers."""

    def __init__(self, packed: PackedClass, *, is_shared: bool) -> None:
        """Begin with a class, and with whether candidates of only sharing providers are meant."""
        self._trees = packed.trees
        self._totals = packed.totals
        self._relations = packed.relations
        self._are_apart = packed.are_apart
        self._is_shared = is_shared
        self._amounts = {part.slot: part.amount for part in packed.taken}
        self._divided = {part.slot for part in packed.taken if part.is_divided}
        self._slots = packed.trees.giving if is_shared else list(self._amounts)
        self._unit = 1 if self._divided else gcd(*self._amounts.values())

    @cached_property
    def _pairs(self) -> Sequence[tuple[Integers, Positions]]:
        """Return trees and options of each slot, those that are not meant left out."""
        by_slot = []
        for slot in self._slots:
            pairs, fits = self._relations[slot].pairs, self._relations[slot].fits
            root = np.arange(len(pairs.starts) - 1).repeat(np.diff(pairs.starts))
            provider = pairs.provider
            if fits is not None:
                root, provider = root[fits], provider[fits]
            by_slot.append((root, provider))
        return by_slot

    def _lent(self, anchor: Integers, positions: Positions) -> Mask:
        """Tell which providers count besides the tree of their anchor."""
        if self._is_shared:
            return self._trees.sharing[positions]
        lent: Mask = self._trees.tree[positions] != anchor
        return lent

    @cached_property
    def _who(self) -> tuple[Integers, Integers]:
        """Return what may come to any tree, trees or providers, and the number of each by position."""
        lent = [some[self._lent(root, some)] for root, some in self._pairs]
        providers = np.unique(np.concatenate(lent))
        meant = self._trees.tree[providers] if self._is_shared else providers
        who, number = np.unique(meant, return_inverse=True)
        by_position = np.full(len(self._trees.tree), _NOBODY)
        by_position[providers] = number
        return who, by_position

    @cached_property
    def is_known(self) -> bool:
        """Tell whether which may come to which tree is little enough to be written down."""
        return len(self._who[0]) * len(self._totals.tree_used) <= _MOST_WRITTEN

    @cached_property
    def _may(self) -> Mask:
        """Tell which may come under each root, shape (roots, those that may come)."""
        may = np.zeros((len(self._totals.tree_used), len(self._who[0])), dtype=np.bool_)
        for root, some in self._pairs:
            lent = self._lent(root, some)
            may[root[lent], self._who[1][some[lent]]] = True
        self._trees.budget.hold(may.nbytes)
        return may

    @cached_property
    def _room(self) -> Floats:
        """Return what each may give at most: parts of the amounts that are asked for."""
        who = self._who[1]
        lent = np.flatnonzero(who >= 0)
        room: Floats = np.zeros(len(self._who[0]))
        np.add.at(room, who[lent], self._room_of(lent))
        return room

    @cached_property
    def _own(self) -> tuple[Integers, Floats]:
        """Return how many are counted already under each root, and what they may give at most."""
        is_own = np.zeros(len(self._trees.tree), dtype=np.bool_)
        for root, some in self._pairs:
            is_own[some[~self._lent(root, some)]] = True
        positions = np.flatnonzero(is_own)
        trees = self._trees.tree[positions]
        count = np.zeros(len(self._totals.tree_used), dtype=np.int64)
        room: Floats = np.zeros(len(count))
        np.add.at(count, trees, 1)
        np.add.at(room, trees, self._room_of(positions))
        return count, room

    def _room_of(self, positions: Positions) -> Floats:
        totals = self._totals
        free = np.maximum(totals.capacity[positions] - totals.used[positions], 0)
        room: Floats = free // self._unit * self._unit
        return room

    def share(self, partial: Partial, *, is_greatest: bool) -> Floats:
        """Return the greatest or the least share that is used of what partial candidates count.

        It is infinite where there are no such candidates: less than any, or more.
        """
        together = max(_TOGETHER // max(len(self._who[0]), 1), 1)
        shares = [np.empty(0)]
        for start in range(0, len(partial), together):
            self._trees.budget.check()
            some = np.zeros(len(partial), dtype=np.bool_)
            some[start : start + together] = True
            shares.append(self._share(partial.part(some), is_greatest=is_greatest))
        return np.concatenate(shares)

    def _share(self, partial: Partial, *, is_greatest: bool) -> Floats:
        anchor, totals, (who, by_position) = partial.anchor, self._totals, self._who
        filled = [slot for slot in self._slots if slot in partial.filled]
        positions = partial.chosen[:, filled]
        lent = self._lent(anchor[:, None], positions)
        known = np.zeros((len(anchor), len(who)), dtype=np.bool_)
        row, column = np.nonzero(lent)
        known[row, by_position[positions[row, column]]] = True
        left = [slot for slot in self._slots if slot not in partial.filled]
        most = len(who) if self._divided.intersection(left) else len(left)
        if self._is_shared:
            used, capacity = totals.tree_used[who], totals.tree_capacity[who]
            own_used = own_capacity = np.zeros(len(anchor))
        else:
            used, capacity = totals.used[who], totals.capacity[who]
            own_used, own_capacity = totals.tree_used[anchor], totals.tree_capacity[anchor]
        asked = float(sum(self._amounts.values()))
        missing = np.maximum(asked - known @ self._room - self._own[1][anchor], 0)
        may = self._may[anchor] & ~known
        added = Added(
            before=(own_used + known @ used + asked, own_capacity + known @ capacity),
            used=used,
            capacity=capacity,
            room=self._room,
            unit=self._unit,
            may=may,
            fewest=self._fewest(partial, missing, may, lent),
            most=np.full(len(anchor), most),
            missing=missing,
        )
        shares = added.share(is_greatest=is_greatest)
        shares[~self._are_possible(partial, lent)] = -np.inf if is_greatest else np.inf
        return shares

    def _fewest(self, partial: Partial, missing: Floats, may: Mask, lent: Mask) -> Integers:
        """Return how many have to come at least.

        Args:
            partial: Partial candidates.
            missing: What they have to give together.
            may: Who may come.
            lent: Which slots are filled by a provider that counts besides the own tree.
        """
        left = [slot for slot in self._amounts if slot not in partial.filled]
        rooms = -np.sort(-np.where(may, self._room, 0), axis=1)
        fewest: Integers = (rooms.cumsum(axis=1) < missing[:, None]).sum(axis=1) + (missing > 0)
        if self._is_shared:
            fewest = np.maximum(fewest, ~lent.any(axis=1))
        if self._are_apart and len(self._who[0]) == np.count_nonzero(self._who[1] >= 0):
            free = self._own[0][partial.anchor] - np.count_nonzero(~lent, axis=1)
            fewest = np.maximum(fewest, len(left) - free)
        return fewest if left else np.zeros_like(fewest)

    def _are_possible(self, partial: Partial, lent: Mask) -> Mask:
        """Tell which partial candidates may become candidates of the kind meant."""
        if self._is_shared:
            are_lent: Mask = np.logical_and.reduce(lent, axis=1)
            return are_lent
        if self._trees.may_be_shared:
            return self._trees.may_be_own(partial)
        return np.ones(len(partial), dtype=np.bool_)
