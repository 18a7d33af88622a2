# SPDX-License-Identifier: Apache-2.0
"""How full of a class the trees of partial candidates become, with what is lent to them: `pack`, bounded.

A candidate is as full as its tree and those who lend to it are together; or, where nobody else gives
anything, as the trees of those who lend. Each counts once, however many slots it serves. So a slot that is
still to be filled changes nothing where somebody takes it who is counted already and has room, and somebody
new makes the candidate as full as `Added` tells. Which of these make it fullest is a fractional program:
with a guess of the share, each adds what it has above or below that, and the best sum shows a better guess
(Dinkelbach, "On nonlinear fractional programming", 1967). No share is guessed twice, and few are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.counted import CountedTrees, Taken
from treeclaim.forest.order.terms.term import Partial
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.table.columns import Integers, Mask, Positions

_MOST_WRITTEN = 2**22
"""Truths about who may come to which tree: four megabytes."""

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
    """Candidates with a tree of their own, or those of sharing providers alone."""

    def __init__(self, packed: PackedClass, *, is_shared: bool) -> None:
        """Begin with a class, and with whether candidates of sharing providers alone are meant."""
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
        """Return who may come to any tree, trees or providers, and the number of each by position."""
        lent = [some[self._lent(root, some)] for root, some in self._pairs]
        providers = np.unique(np.concatenate(lent))
        meant = self._trees.tree[providers] if self._is_shared else providers
        who, number = np.unique(meant, return_inverse=True)
        by_position = np.full(len(self._trees.tree), _NOBODY)
        by_position[providers] = number
        return who, by_position

    @cached_property
    def is_known(self) -> bool:
        """Tell whether it is little enough to be written down who may come to which tree."""
        return len(self._who[0]) * len(self._totals.tree_used) <= _MOST_WRITTEN

    @cached_property
    def _may(self) -> Mask:
        """Tell who may come under each root, shape (roots, who)."""
        may = np.zeros((len(self._totals.tree_used), len(self._who[0])), dtype=np.bool_)
        for root, some in self._pairs:
            lent = self._lent(root, some)
            may[root[lent], self._who[1][some[lent]]] = True
        self._trees.budget.hold(may.nbytes)
        return may

    @cached_property
    def _own(self) -> Mask:
        """Tell under which root each slot has options that are counted already, shape (slots, roots)."""
        counted = np.zeros((len(self._slots), len(self._totals.tree_used)), dtype=np.bool_)
        for slot, (root, some) in zip(counted, self._pairs, strict=True):
            slot[root[~self._lent(root, some)]] = True
        return counted

    @cached_property
    def _room(self) -> Floats:
        """Return what each may give at most: parts of the amounts that are asked for."""
        totals, who = self._totals, self._who[1]
        room = np.maximum(totals.capacity - totals.used, 0) // self._unit * self._unit
        room_of: Floats = np.zeros(len(self._who[0]))
        np.add.at(room_of, who[who >= 0], room[who >= 0])
        return room_of

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
        may = self._may[anchor] & ~known
        left = [slot for slot in self._slots if slot not in partial.filled]
        most = np.full(len(anchor), len(who) if self._divided.intersection(left) else len(left))
        given = lent @ np.array([self._amounts.get(slot, 0) for slot in filled], dtype=np.float64)
        fewest = self._fewest(partial, known @ self._room - given, may, lent)
        if self._is_shared:
            added = Added(totals.tree_used[who], totals.tree_capacity[who], may, fewest, most)
            used = capacity = np.zeros(len(anchor))
        else:
            added = Added(totals.used[who], totals.capacity[who], may, fewest, most)
            used, capacity = totals.tree_used[anchor], totals.tree_capacity[anchor]
        shares = added.share(
            used + known @ added.used + sum(self._amounts.values()),
            capacity + known @ added.capacity,
            is_greatest=is_greatest,
        )
        shares[~self._are_possible(partial, lent)] = -np.inf if is_greatest else np.inf
        return shares

    def _fewest(self, partial: Partial, room: Floats, may: Mask, lent: Mask) -> Integers:
        """Return how many have to come at least.

        Args:
            partial: Partial candidates.
            room: What those may still give that are counted.
            may: Who may come.
            lent: Which slots are filled by somebody who counts besides the own tree.
        """
        left = [slot for slot in self._amounts if slot not in partial.filled]
        missing = sum(self._amounts[slot] for slot in left) - room
        rooms = -np.sort(-np.where(may, self._room, 0), axis=1)
        fewest: Integers = (rooms.cumsum(axis=1) < missing[:, None]).sum(axis=1) + (missing > 0)
        fewest = np.maximum(fewest, ~lent.any(axis=1))
        if self._are_apart and len(self._who[0]) == np.count_nonzero(self._who[1] >= 0):
            fewest = np.maximum(fewest, len(left))
        if not self._is_shared:
            counted = [self._own[self._slots.index(slot)][partial.anchor] for slot in left]
            fewest[np.logical_or.reduce(counted, axis=0)] = 0
        return fewest if left else np.zeros_like(fewest)

    def _are_possible(self, partial: Partial, lent: Mask) -> Mask:
        """Tell which partial candidates may become such as are meant."""
        if self._is_shared:
            are_lent: Mask = np.logical_and.reduce(lent, axis=1)
            return are_lent
        if self._trees.may_be_shared:
            return self._trees.may_be_own(partial)
        return np.ones(len(partial), dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """Who may come to some candidates.

    Attributes:
        used, capacity: Of each that may come, shape (k,).
        may: Which of them may come to each candidate, shape (candidates, k).
        fewest, most: How many come to each candidate, shape (candidates,).
    """

    used: Floats
    capacity: Floats
    may: Mask
    fewest: Integers
    most: Integers

    def share(self, used: Floats, capacity: Floats, *, is_greatest: bool) -> Floats:
        """Return the greatest or the least share that is used, given what candidates have already."""
        best: Floats = np.ones(len(used))
        is_better = np.ones(len(used), dtype=np.bool_)
        is_first = True
        while is_better.any():
            some = np.flatnonzero(is_better)
            taken = self._taken(some, best[some], is_greatest=is_greatest)
            found = used[some] + taken @ self.used
            found /= np.maximum(capacity[some] + taken @ self.capacity, 1)
            if not is_first:
                is_better[some] = found > best[some] if is_greatest else found < best[some]
                found, some = found[is_better[some]], some[is_better[some]]
            best[some] = found
            is_first = False
        return best

    def _taken(self, some: Integers, guess: Floats, *, is_greatest: bool) -> Mask:
        """Return who comes to some candidates if each counts by what it has beside a share."""
        worth = self.used - guess[:, None] * self.capacity
        worth = np.where(self.may[some], worth if is_greatest else -worth, -np.inf)
        order = np.argsort(-worth, axis=1, kind="stable")
        ranked = np.take_along_axis(worth, order, axis=1)
        number = np.arange(len(self.used))
        comes = (number < self.fewest[some, None]) | (ranked > 0)
        comes &= (number < self.most[some, None]) & (ranked > -np.inf)
        taken = np.zeros_like(comes)
        np.put_along_axis(taken, order, comes, axis=1)
        return taken
