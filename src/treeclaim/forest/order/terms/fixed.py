# SPDX-License-Identifier: Apache-2.0
"""Terms that do not depend on what is used: `preferred`, `most`, `least` and `shuffle`."""

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.counted import CountedTrees
from treeclaim.forest.order.terms.term import Partial, TermValue, ValueOfSlot, greatest
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.attributes import AttributeKind

_HASH_BYTES = 8
"""Bytes of a digest."""

_HASHES = 1 << (8 * _HASH_BYTES)
"""How many different digests there are."""


class PreferredOfSlot(ValueOfSlot):
    """Weights of the preferences of a group with one slot, as one number for each position."""

    def __init__(self, slot: int, relation: Relation, worth: Floats) -> None:
        """Take the weights that hold, by position of the provider."""
        self.slot = slot
        self.relation = relation
        self._worth = worth

    def exact(self, chosen: Choices) -> Floats:
        """Return the weight that holds for each complete candidate."""
        return self._worth[chosen[:, self.slot]]

    def most(self, positions: Rows) -> Floats:
        """Return the weight that holds for some options."""
        return self._worth[positions]

    fewest = most

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest weight under each root."""
        return greatest(self.relation, self.most(self.relation.pairs.provider))

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest weight."""
        if self.slot in partial.filled:
            return self.exact(partial.chosen)
        return self.ceiling[partial.anchor]


class PreferredOfGroup(TermValue):
    """The weight of one preference of a group with several slots."""

    def __init__(
        self,
        slots: Sequence[int],
        relations: Sequence[Relation],
        has: Mask,
        *,
        is_wanted: bool,
        weight: int,
    ) -> None:
        """Take the slots of the group, and the preference.

        Args:
            slots: Those of the group.
            relations: Who may take each slot of the search.
            has: Who has the trait, by position.
            is_wanted: Whether some provider of the group is to have it, or none.
            weight: The weight of the preference.
        """
        self._slots = list(slots)
        self._relations = [relations[slot] for slot in slots]
        self._has = has
        self._is_wanted = is_wanted
        self._weight = float(weight)

    def exact(self, chosen: Choices) -> Floats:
        """Return the weight where it holds."""
        some = self._has[chosen[:, self._slots]].any(axis=1)
        return np.where(some == self._is_wanted, self._weight, 0.0)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the weight where some options may make it hold."""
        could = [self._could(relation) for relation in self._relations]
        holds = np.logical_or.reduce(could) if self._is_wanted else np.logical_and.reduce(could)
        return np.where(holds, self._weight, 0.0)

    def _could(self, relation: Relation) -> Mask:
        """Tell for each root whether some option has the trait, or lacks it if that is wanted."""
        suits = self._has[relation.pairs.provider] == self._is_wanted
        could: Mask = greatest(relation, suits.astype(np.float64)) > 0
        return could

    def bound(self, partial: Partial) -> Floats:
        """Return the weight where it holds, or still may."""
        verdicts = []
        for slot, relation in zip(self._slots, self._relations, strict=True):
            if slot in partial.filled:
                verdicts.append(self._has[partial.chosen[:, slot]] == self._is_wanted)
            else:
                verdicts.append(self._could(relation)[partial.anchor])
        holds = (
            np.logical_or.reduce(verdicts) if self._is_wanted else np.logical_and.reduce(verdicts)
        )
        return np.where(holds, self._weight, 0.0)


def worth_of_attribute(forest: Forest, name: str, *, is_most: bool) -> Floats:
    """Return what providers are worth by an attribute, from 0 to 1, by position (page 102, section 1).

    Args:
        forest: Where they are.
        name: The attribute's name; a provider without an integer there is worth 0.
        is_most: Whether a greater one is worth more, or less.
    """
    worth = np.zeros(len(forest.order.row))
    column, ends = forest.attributes.column(name), forest.range_of_attribute(name)
    if column is None or ends is None:
        return worth
    least, greatest = ends
    kinds, values = column.at(forest.order.row)
    is_integer = kinds == AttributeKind.INTEGER
    if least == greatest:
        worth[is_integer] = 1.0
        return worth
    distance = values[is_integer] - least if is_most else greatest - values[is_integer]
    worth[is_integer] = distance / (greatest - least)
    return worth


class Shuffle(TermValue):
    """A number that depends on a seed and the root of the tree: `shuffle`."""

    def __init__(self, trees: CountedTrees, numbers: Floats, rank: Rows) -> None:
        """Take the numbers of all trees, and the ranks of their roots' uuids."""
        self._trees = trees
        self._numbers = numbers
        self._rank = rank

    def exact(self, chosen: Choices) -> Floats:
        """Return the number of the tree, of several that whose root has the smallest uuid."""
        trees, meant = self._trees.counted(chosen)
        ranks = np.where(meant, self._rank[trees], len(self._rank))
        first = ranks.argmin(axis=1)
        numbers: Floats = self._numbers[trees[np.arange(len(trees)), first]]
        return numbers

    @cached_property
    def ceiling(self) -> Floats:
        """Return the number of each tree, unless only others may serve."""
        return np.ones(len(self._numbers)) if self._trees.may_be_shared else self._numbers

    def bound(self, partial: Partial) -> Floats:
        """Return the number of the tree, where it is known, else the greatest there may be."""
        if self._trees.may_be_shared and self._trees.are_known(partial.filled):
            return self.exact(partial.chosen)
        return self.ceiling[partial.anchor]


def tree_numbers(forest: Forest, seed: str, budget: Budget = UNBOUNDED) -> Floats:
    """Return the number in [0, 1) of each tree that `shuffle` with a seed gives it."""

    def made() -> Floats:
        uuids = forest.uuid.values[forest.order.row[forest.order.roots]].tolist()
        begin = f"{seed}/".encode()
        numbers = np.empty(len(uuids))
        for tree, uuid in enumerate(uuids):
            budget.check()
            numbers[tree] = _fraction(begin + uuid)
        return numbers

    return forest.cache.get(("shuffle", seed), made)


def _fraction(text: bytes) -> float:
    digest = hashlib.sha256(text).digest()[:_HASH_BYTES]
    return float(int.from_bytes(digest, "big") / _HASHES)


def tree_ranks(forest: Forest) -> Rows:
    """Return how many trees have a root with a smaller uuid than each."""

    def made() -> Rows:
        uuids = forest.uuid.values[forest.order.row[forest.order.roots]]
        ranks = np.empty(len(uuids), dtype=np.int64)
        ranks[np.argsort(uuids)] = np.arange(len(uuids))
        return ranks

    return forest.cache.get("ranks of trees", made)
