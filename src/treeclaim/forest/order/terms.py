# SPDX-License-Identifier: Apache-2.0
"""The terms of a score (contract page 98, section 2.1; page 101, section 3; page 102, section 1).

Each term computes its exact value for all candidates of a table at once. It may also return bounds for each
tree: a ceiling that no candidate of the tree exceeds, and a floor. Bounds may be loose, never wrong.
"""

import hashlib
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.filters import with_any_trait
from treeclaim.forest.domains.relation import have_common_provider
from treeclaim.forest.order.term import (
    ONE,
    CandidateTable,
    Share,
    SlotOptions,
    TermScorer,
    Units,
    first_of_each,
    to_units,
)
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.solve.tree_kinds import relatives_of
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.provider import AttributeKind
from treeclaim.model.request import Preference


class _FilledTerm(TermScorer):
    """A term that depends on used amounts and capacities of some classes."""

    def __init__(
        self, options: SlotOptions, classes: Sequence[str], totals: Callable[[str], ClassTotals]
    ) -> None:
        super().__init__(options)
        self._totals = {name: totals(name) for name in classes}


class PackTerm(_FilledTerm):
    """`pack`: how full the trees of a candidate are, and the providers that share with them."""

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        return self._mean(lambda name: self._filled_shares(table, name))

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return a bound of the values under each root."""
        return self._mean(lambda name: self._extreme_share(name, is_ceiling=is_ceiling))

    def _mean(self, value: Callable[[str], Floats]) -> Units:
        share = 1 / len(self._totals)
        units: Units = np.add.reduce([to_units(value(name), share) for name in self._totals])
        return units

    def _amount(self, name: str) -> int:
        return sum(self.options.amounts[name].values())

    def _filled_shares(self, table: CandidateTable, name: str) -> Floats:
        if self.options.are_own:
            return self._own_values(name)[table.own_trees]
        totals, (trees, counts) = self._totals[name], table.trees
        used = np.where(counts, totals.tree_used[trees], 0).sum(axis=1)
        capacity = np.where(counts, totals.tree_capacity[trees], 0).sum(axis=1)
        shares = table.of_class(name)
        if shares:
            positions = np.stack([share.position for share in shares], axis=1)
            inside = table.tree[positions][:, :, None] == trees[:, None, :]
            lent = first_of_each(positions, ~(inside & counts[:, None, :]).any(axis=2))
            used += np.where(lent, totals.used[positions], 0).sum(axis=1)
            capacity += np.where(lent, totals.capacity[positions], 0).sum(axis=1)
        return _share(used + self._amount(name), capacity)

    def _own_values(self, name: str) -> Floats:
        totals = self._totals[name]
        return _share(totals.tree_used + self._amount(name), totals.tree_capacity)

    def _extreme_share(self, name: str, *, is_ceiling: bool) -> Floats:
        """Return the greatest or the least value of one class under each root.

        The total usage of a tree and the providers that share with it, divided by their total capacity, lies between the
        least and the greatest of the single quotients, wherever the amount is added.
        """
        relations = {slot: self.options.relations[slot] for slot in self.options.amounts[name]}
        if self.options.problem.may_leave_anchors:
            return np.full(self._roots, float(is_ceiling))
        if all(relation.pairs.is_local for relation in relations.values()):
            return self._own_values(name)
        totals = self._totals[name]
        units = self._amount(name) if is_ceiling else 0
        tree_share = _share(totals.tree_used + units, totals.tree_capacity)
        bounds = [np.where(totals.tree_capacity > 0, tree_share, 1 - is_ceiling)]
        for slot, relation in relations.items():
            provider = relation.pairs.provider
            tree = np.arange(self._roots).repeat(np.diff(relation.pairs.starts))
            is_lent = self.options.forest.order.tree[provider] != tree
            lent_share = _share(totals.used[provider] + units, totals.capacity[provider])
            shares = np.where(is_lent, lent_share, tree_share[tree])
            bounds.append(self.options.extreme(slot, shares, is_ceiling=is_ceiling))
        bound: Floats = (np.maximum if is_ceiling else np.minimum).reduce(bounds)
        return bound


def _share(used: Floats, capacity: Floats) -> Floats:
    share: Floats = np.minimum(used / np.maximum(capacity, 1), 1)
    return share


class PackProvidersTerm(_FilledTerm):
    """`pack_providers`: how full the providers of a candidate are, with all that it takes there."""

    @property
    def _weight(self) -> float:
        return 1 / sum(len(self.options.amounts[name]) for name in self._totals)

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        units: Units = np.zeros(table.count, dtype=np.int64)
        for name in self._totals:
            of_class = table.of_class(name)
            for share in of_class:
                part = share.amount / self.options.amounts[name][share.slot]
                value = self._filled_shares(name, share, of_class) * part
                units += to_units(value, self._weight)
        return units

    def _filled_shares(self, name: str, share: Share, of_class: Sequence[Share]) -> Floats:
        totals = self._totals[name]
        used_units = totals.used[share.position] + share.amount
        for other in of_class:
            if other is not share and not self.options.are_apart(share.slot, other.slot):
                used_units += np.where(other.position == share.position, other.amount, 0)
        return _share(used_units, totals.capacity[share.position])

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return a bound: all slots that may take from a provider do, or no other slot does."""
        units: Units = np.zeros(self._roots, dtype=np.int64)
        options = self.options
        for name, totals in self._totals.items():
            for slot, amount in options.amounts[name].items():
                added_units = 1 if options.is_divided(slot) else amount
                if is_ceiling:
                    added_units = sum(
                        other_amount
                        for other, other_amount in options.amounts[name].items()
                        if not options.are_apart(slot, other)
                    )
                position = options.relations[slot].pairs.provider
                shares = _share(totals.used[position] + added_units, totals.capacity[position])
                extreme = options.extreme(slot, shares, is_ceiling=is_ceiling)
                units += to_units(extreme, self._weight)
        return units


class NearTerm(TermScorer):
    """`near`: how near the providers of some suffixed groups are to each other."""

    def __init__(self, options: SlotOptions, suffixes: Sequence[str]) -> None:
        super().__init__(options)
        self._suffixes = frozenset(suffixes)
        self._slots = options.of_groups(suffixes)
        self._relations = [options.relations[slot] for slot in self._slots]
        self._is_local = all(relation.pairs.is_local for relation in self._relations)
        self._relatives = relatives_of(options.forest)

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        columns = [position for suffix, position in table.served if suffix in self._suffixes]
        if not columns:
            return np.full(table.count, int(ONE), dtype=np.int64)
        positions, relatives = np.stack(columns, axis=1), self._relatives
        first, last = positions.min(axis=1), positions.max(axis=1)
        near = np.zeros(table.count)
        same = np.flatnonzero(relatives.root[first] == relatives.root[last])
        common = relatives.common(first[same], last[same])
        deepest = relatives.depth[positions[same]].max(axis=1, initial=0)
        near[same] = (relatives.depth[common] + 1) / (deepest + 1)
        return to_units(near)

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return the value of providers as deep as the deepest one of any group that meet as low as they can.

        Different providers meet at least one level above the deepest one. The floor is the value of
        providers that meet in the root, and lie as deep as any.
        """
        if not self._is_local:
            return super().bound(is_ceiling=is_ceiling)
        if not is_ceiling:
            return to_units(np.full(self._roots, 1 / (self._relatives.deepest + 1)))
        forest, met = self.options.forest, not self._must_differ()
        pairs = {relation.pairs.serial: relation.pairs for relation in self._relations}

        def made() -> Units:
            deepest = np.zeros(self._roots)
            for each in pairs.values():
                depths = self._relatives.depth[each.provider]
                np.maximum.at(deepest, forest.order.tree[each.provider], depths)
            return to_units((deepest + met) / (deepest + 1))

        return forest.cache.get(("near", met, tuple(pairs)), made)

    def _must_differ(self) -> bool:
        """Return whether any two of the slots never have the same provider."""
        pairs = [relation.pairs for relation in self._relations]
        return any(
            self.options.are_apart(self._slots[first], self._slots[other])
            or not have_common_provider(self.options.forest, pairs[first], pairs[other])
            for first, other in combinations(range(len(pairs)), 2)
        )


class PreferredTerm(TermScorer):
    """`preferred`: the weights of the preferences that hold."""

    def __init__(self, options: SlotOptions, preferences: Sequence[Preference]) -> None:
        super().__init__(options)
        self._total = sum(preference.weight for preference in preferences)
        self._having: list[tuple[Preference, Mask]] = []
        for preference in preferences:
            options.problem.budget.check()
            has = with_any_trait(options.forest, (preference.trait,))
            self._having.append((preference, has))

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        worth = np.zeros(table.count)
        for preference, has in self._having:
            self.options.problem.budget.check()
            is_served = np.zeros(table.count, dtype=np.bool_)
            for suffix, position in table.served:
                if suffix == preference.suffix:
                    is_served |= has[position]
            worth += (is_served == preference.is_wanted) * float(preference.weight)
        return to_units(worth, 1 / self._total)

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return the weights of the preferences that hold for some options."""
        worth = np.zeros(self._roots)
        for preference, has in self._having:
            self.options.problem.budget.check()
            holds = [
                self.options.extreme(
                    slot,
                    (has[provider] == preference.is_wanted).astype(np.float64),
                    is_ceiling=is_ceiling,
                )
                for slot in self.options.of_groups([preference.suffix])
                for provider in [self.options.relations[slot].pairs.provider]
            ]
            limit = np.maximum if preference.is_wanted else np.minimum
            worth += limit.reduce(holds) * float(preference.weight)
        return to_units(worth, 1 / self._total)


class AttributeTerm(TermScorer):
    """`most` and `least`: how great or small an attribute of a group's provider is."""

    def __init__(self, options: SlotOptions, arguments: Sequence[str], *, is_most: bool) -> None:
        super().__init__(options)
        name, self._suffix = arguments
        self._worth = worth_of_attribute(options.forest, name, is_most=is_most)

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        for suffix, position in table.served:
            if suffix == self._suffix:
                return to_units(self._worth[position])
        return np.full(table.count, int(ONE), dtype=np.int64)

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return the value of the best option."""
        (slot,) = self.options.of_groups([self._suffix])
        position = self.options.relations[slot].pairs.provider
        worth = self._worth[position]
        return to_units(self.options.extreme(slot, worth, is_ceiling=is_ceiling))


class ShuffleTerm(TermScorer):
    """`shuffle`: a number that depends on a seed and the root of the tree."""

    def __init__(self, options: SlotOptions, seed: str) -> None:
        super().__init__(options)
        self._numbers = tree_numbers(options.forest, seed, options.problem.budget)
        self._rank = tree_ranks(options.forest)

    def exact(self, table: CandidateTable) -> Units:
        """Return the number of the tree, of several trees that whose root has the smallest UUID."""
        if self.options.are_own:
            return to_units(self._numbers[table.own_trees])
        trees, counts = table.trees
        ranks = np.where(counts, self._rank[trees], len(self._rank))
        return to_units(self._numbers[trees[np.arange(len(trees)), ranks.argmin(axis=1)]])

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return the number of each tree, unless only sharing providers may serve."""
        if self.options.problem.may_leave_anchors:
            return super().bound(is_ceiling=is_ceiling)
        return to_units(self._numbers)


def worth_of_attribute(forest: Forest, name: str, *, is_most: bool) -> Floats:
    """Return the value of `most` or `least` for each provider, by row.

    Args:
        forest: All providers.
        name: The attribute; a provider without an integer there has the value 0.
        is_most: Whether a greater attribute is worth more, or less.
    """
    worth = np.zeros(forest.row_count)
    ends = forest.attributes.range_of(name, forest.alive.values)
    if ends is None:
        return worth
    least, greatest = ends
    kinds, values = forest.attributes.at(name, np.arange(forest.row_count))
    is_integer = kinds == AttributeKind.INTEGER
    if least == greatest:
        worth[is_integer] = 1.0
        return worth
    distance = values[is_integer] - least if is_most else greatest - values[is_integer]
    worth[is_integer] = distance / (greatest - least)
    return worth


def tree_numbers(forest: Forest, seed: str, budget: Budget = UNBOUNDED) -> Floats:
    """Return the number in [0, 1) that `shuffle` with a seed gives each tree."""

    def compute() -> Floats:
        uuids = forest.uuid.values[forest.order.roots].tolist()
        prefix = f"{seed}/".encode()
        numbers = np.empty(len(uuids))
        for tree, uuid in enumerate(uuids):
            budget.check()
            numbers[tree] = (
                int.from_bytes(hashlib.sha256(prefix + uuid).digest()[:8], "big") / 2**64
            )
        return numbers

    return forest.cache.get(("shuffle", seed), compute)


def tree_ranks(forest: Forest) -> Rows:
    """Return for each tree how many trees have a root with a smaller UUID."""

    def compute() -> Rows:
        uuids = forest.uuid.values[forest.order.roots]
        ranks = np.empty(len(uuids), dtype=np.int64)
        ranks[np.argsort(uuids)] = np.arange(len(uuids))
        return ranks

    return forest.cache.get("ranks of trees", compute)
