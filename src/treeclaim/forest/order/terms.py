# SPDX-License-Identifier: Apache-2.0
"""What each term of a score is worth, for complete candidates, and at most for what may become one.

Contract page 98, section 2. Every term is in [0, 1]. A term has three faces: its value for complete
candidates; a ceiling for all candidates of each anchor; and a ceiling for what partial candidates
can become. Ceilings may be too high, never too low.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from treeclaim.forest.bounds.cache import ByteCache
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.relatives import Relatives
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.solve.blocks import Choices
from treeclaim.forest.table.columns import Mask, Rows


@dataclass(frozen=True, slots=True)
class Taken:
    """What a slot takes of a class.

    Attributes:
        slot: The slot.
        amount: Units.
    """

    slot: int
    amount: int


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial candidates.

    Attributes:
        anchor: Number of the anchor of each, int64, shape (n,).
        chosen: Places, int64, shape (n, slots).
        filled: Slots whose columns mean something.
    """

    anchor: Rows
    chosen: Choices
    filled: frozenset[int]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.anchor)


class TermValue(ABC):
    """A term or a part of one, ready to be asked for candidates of one search."""

    @abstractmethod
    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""

    @cached_property
    @abstractmethod
    def ceiling(self) -> Floats:
        """Return the greatest value under each root, by number; of no meaning where none is."""

    @cached_property
    def floor(self) -> Floats:
        """Return the least value under each root, by number."""
        raise NotImplementedError

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest value of what each partial candidate may become."""
        return self.ceiling[partial.anchor]

    def least(self, partial: Partial) -> Floats:
        """Return the least value of what each partial candidate may become."""
        return self.floor[partial.anchor]


class Inverse(TermValue):
    """One minus a value, which must know its least values too."""

    def __init__(self, value: TermValue) -> None:
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
        self._parts = parts

    def exact(self, chosen: Choices) -> Floats:
        """Return the sum for each complete candidate."""
        return _summed(factor * part.exact(chosen) for factor, part in self._parts)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the sum of the greatest values."""
        return _summed(factor * part.ceiling for factor, part in self._parts)

    @cached_property
    def floor(self) -> Floats:
        """Return the sum of the least values."""
        return _summed(factor * part.floor for factor, part in self._parts)

    def bound(self, partial: Partial) -> Floats:
        """Return the sum of the greatest values."""
        return _summed(factor * part.bound(partial) for factor, part in self._parts)

    def least(self, partial: Partial) -> Floats:
        """Return the sum of the least values."""
        return _summed(factor * part.least(partial) for factor, part in self._parts)


def _summed(parts: Iterable[Floats]) -> Floats:
    total: Floats = reduce(operator.add, parts)
    return total


# -- values of options, and the greatest and least of them under each root -----------------------


def greatest(relation: Relation, values: Floats) -> Floats:
    """Return the greatest value of the options under each root; -inf where there is none.

    Args:
        relation: Who may take a slot.
        values: One for each of its pairs, those that are not meant included.
    """
    if relation.fits is not None:
        values = np.where(relation.fits, values, -np.inf)
    starts = relation.pairs.starts
    found = np.full(len(starts) - 1, -np.inf)
    if len(values):
        has = relation.pairs.reached
        found[has] = np.maximum.reduceat(values, starts[:-1][has])
    return found


def least(relation: Relation, values: Floats) -> Floats:
    """Return the least value of the options under each root; inf where there is none."""
    return -greatest(relation, -values)


# -- pack ----------------------------------------------------------------------------------------


class CountedTrees:
    """Which trees each candidate is said to use: those of sharing providers only if all are."""

    def __init__(
        self, tree: Rows, sharing: Mask, giving: Sequence[int], relations: Sequence[Relation]
    ) -> None:
        """Take what a search has.

        Args:
            tree: Number of the tree by place.
            sharing: Who is a sharing provider, by place.
            giving: Slots whose provider gives something.
            relations: Who may take each of them.
        """
        self.tree = tree
        self._sharing = sharing
        self._giving = list(giving)
        self.may_be_shared = all(one.has_sharing for one in relations)
        """Whether a candidate may consist of sharing providers alone."""
        self.are_own = all(one.pairs.is_local for one in relations)
        """Whether every provider is of its anchor's tree."""

    def counted(self, chosen: Choices) -> tuple[Rows, Mask]:
        """Return the trees of each candidate.

        Returns:
            Numbers of trees, shape (candidates, k), and which of them are meant; none is twice.
        """
        if self.are_own:
            trees = self.tree[chosen[:, self._giving[:1]]]
            return trees, np.ones(trees.shape, dtype=np.bool_)
        places = chosen[:, self._giving]
        trees = self.tree[places]
        shares = self._sharing[places]
        is_shared = np.logical_and.reduce(shares, axis=1, keepdims=True)
        meant = ~shares | is_shared
        return trees, _first_of_each(trees, meant)


def _first_of_each(numbers: Choices, meant: Mask) -> Mask:
    """Tell which of the numbers meant in a row stand there for the first time."""
    first = meant.copy()
    for column in range(1, numbers.shape[1]):
        again = (numbers[:, :column] == numbers[:, [column]]) & meant[:, :column]
        first[:, column] &= ~again.any(axis=1)
    return first


class PackOfClass(TermValue):
    """How full the trees of a candidate are of a class, with what it takes: `pack`."""

    def __init__(
        self,
        trees: CountedTrees,
        totals: ClassTotals,
        taken: Sequence[Taken],
        relations: Sequence[Relation],
    ) -> None:
        self._trees = trees
        self._totals = totals
        self._slots = [one.slot for one in taken]
        self._amount = float(sum(one.amount for one in taken))
        self._relations = [relations[slot] for slot in self._slots]

    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""
        totals = self._totals
        trees, meant = self._trees.counted(chosen)
        used = np.where(meant, totals.tree_used[trees], 0).sum(axis=1)
        capacity = np.where(meant, totals.tree_capacity[trees], 0).sum(axis=1)
        if not self._trees.are_own:
            places = chosen[:, self._slots]
            own = self._trees.tree[places]
            is_in = ((own[:, :, None] == trees[:, None, :]) & meant[:, None, :]).any(axis=2)
            lent = _first_of_each(places, ~is_in)
            used += np.where(lent, totals.used[places], 0).sum(axis=1)
            capacity += np.where(lent, totals.capacity[places], 0).sum(axis=1)
        filled: Floats = np.minimum((used + self._amount) / capacity, 1)
        return filled

    def _options(self) -> tuple[Relation, Floats] | None:
        """Return the value by option where one slot alone takes the class, else None."""
        if len(self._slots) > 1:
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
        if all(one.pairs.is_local for one in self._relations):
            return self._of_trees()
        options = self._options()
        return np.ones(len(self._totals.tree_used)) if options is None else greatest(*options)

    @cached_property
    def floor(self) -> Floats:
        """Return the least value under each root."""
        if self._trees.may_be_shared:
            return np.zeros(len(self._totals.tree_used))
        if all(one.pairs.is_local for one in self._relations):
            return self._of_trees()
        options = self._options()
        return np.zeros(len(self._totals.tree_used)) if options is None else least(*options)

    def _of_trees(self) -> Floats:
        totals = self._totals
        capacity = np.maximum(totals.tree_capacity, 1)
        filled: Floats = np.minimum((totals.tree_used + self._amount) / capacity, 1)
        return filled


# -- pack_providers ------------------------------------------------------------------------------


class PackProvidersOfClass(TermValue):
    """The sum over the slots of a class of how full their providers are: `pack_providers`."""

    def __init__(
        self, totals: ClassTotals, taken: Sequence[Taken], relations: Sequence[Relation]
    ) -> None:
        self._totals = totals
        self._taken = taken
        self._all = float(sum(one.amount for one in taken))
        self._relations = relations

    def exact(self, chosen: Choices) -> Floats:
        """Return the sum for each complete candidate."""
        total = np.zeros(len(chosen))
        for one in self._taken:
            place = chosen[:, one.slot]
            amount = np.zeros(len(chosen))
            for other in self._taken:
                amount += np.where(chosen[:, other.slot] == place, other.amount, 0)
            total += self._filled(place, amount)
        return total

    def _filled(self, place: Rows, amount: "Floats | float") -> Floats:
        capacity = np.maximum(self._totals.capacity[place], 1)
        filled: Floats = np.minimum((self._totals.used[place] + amount) / capacity, 1)
        return filled

    @cached_property
    def _most(self) -> list[Floats]:
        """Return for each slot the greatest value of its options under each root."""
        return [greatest(*self._of_options(one, self._all)) for one in self._taken]

    @cached_property
    def _fewest(self) -> list[Floats]:
        """Return for each slot the least value of its options under each root."""
        return [least(*self._of_options(one, float(one.amount))) for one in self._taken]

    def _of_options(self, taken: Taken, amount: float) -> tuple[Relation, Floats]:
        relation = self._relations[taken.slot]
        return relation, self._filled(relation.pairs.provider, amount)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest sum under each root."""
        return _summed(self._most)

    @cached_property
    def floor(self) -> Floats:
        """Return the least sum under each root."""
        return _summed(self._fewest)

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest sum: filled slots as they are, others at their best."""
        return _summed(
            self._filled(partial.chosen[:, one.slot], self._all)
            if one.slot in partial.filled
            else most[partial.anchor]
            for one, most in zip(self._taken, self._most, strict=True)
        )

    def least(self, partial: Partial) -> Floats:
        """Return the least sum."""
        return _summed(
            self._filled(partial.chosen[:, one.slot], float(one.amount))
            if one.slot in partial.filled
            else fewest[partial.anchor]
            for one, fewest in zip(self._taken, self._fewest, strict=True)
        )


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of all trees, as they are cached."""

    values: Floats

    @property
    def nbytes(self) -> int:
        return self.values.nbytes


# -- near ----------------------------------------------------------------------------------------


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
        """Take what a search has, and the cache of what depends on the shape of the Forest."""
        self._cache = cache
        self._relatives = relatives
        self._slots = list(slots)
        self._relations = [relations[slot] for slot in slots]
        self._roots = roots
        self._is_local = all(one.pairs.is_local for one in self._relations)

    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""
        return self._near(chosen[:, self._slots])

    def _near(self, places: Choices) -> Floats:
        relatives = self._relatives
        first, last = places.min(axis=1), places.max(axis=1)
        near = np.zeros(len(places))
        same = np.flatnonzero(relatives.same_tree(first, last))
        common = relatives.common(first[same], last[same])
        deepest = relatives.depth[places[same]].max(axis=1, initial=0)
        near[same] = (relatives.depth[common] + 1) / (deepest + 1)
        return near

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest value under each root.

        At best all meet in some provider, and are as high below it as they can be.
        """
        if not self._is_local:
            return np.ones(len(self._roots))
        related = {id(one): one for one in self._relations}.values()
        # Amounts count only as far as they decide who has room.
        key = tuple(
            (one.pairs.serial, None if one.fits is None else np.packbits(one.fits).tobytes())
            for one in related
        )
        return self._cache.get(("near", key), lambda: _Values(self._nearest())).values

    def _nearest(self) -> Floats:
        """Work out the greatest value under each root."""
        relatives = self._relatives
        highest = np.zeros(len(relatives.depth), dtype=np.int64)
        for relation in {id(one): one for one in self._relations}.values():
            np.maximum(highest, self._highest_below(relation.providers), out=highest)
        values = (relatives.depth + 1) / (highest + 1)
        return np.maximum.reduceat(values, self._roots) if len(self._roots) else values

    def _highest_below(self, providers: Rows) -> Rows:
        """Return the least depth of some providers in the subtree of each place."""
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
        known = [slot for slot in self._slots if slot in partial.filled]
        ceiling = self.ceiling[partial.anchor]
        if not known:
            return ceiling
        return np.minimum(self._near(partial.chosen[:, known]), ceiling)

    def least(self, partial: Partial) -> Floats:
        """Return a value that none is below."""
        if all(slot in partial.filled for slot in self._slots):
            return self._near(partial.chosen[:, self._slots])
        return np.full(len(partial), self._least())


# -- preferred -----------------------------------------------------------------------------------


class PreferredOfSlot(TermValue):
    """Weights of the preferences of a group with one slot, as one number for each place."""

    def __init__(self, slot: int, relation: Relation, worth: Floats) -> None:
        """Take the weights that hold, by place of the provider."""
        self._slot = slot
        self._relation = relation
        self._worth = worth

    def exact(self, chosen: Choices) -> Floats:
        """Return the weight that holds for each complete candidate."""
        return self._worth[chosen[:, self._slot]]

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest weight under each root."""
        return greatest(self._relation, self._worth[self._relation.pairs.provider])

    def bound(self, partial: Partial) -> Floats:
        """Return the greatest weight."""
        if self._slot in partial.filled:
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


# -- shuffle -------------------------------------------------------------------------------------


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
        """Return the number of each tree, unless others may serve alone."""
        return np.ones(len(self._numbers)) if self._trees.may_be_shared else self._numbers
