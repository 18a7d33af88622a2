# SPDX-License-Identifier: Apache-2.0
"""The terms of a score (contract page 98, section 2.1; page 101, section 3; page 102, section 1)."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import have_any_trait
from treeclaim.forest.domains.relation import have_common_provider
from treeclaim.forest.order.candidate_table import (
    FULL_SCORE,
    CandidateTable,
    Share,
    SlotOptions,
    Units,
    mask_repetitions,
    to_units,
)
from treeclaim.forest.order.totals import ClassTotals, Floats
from treeclaim.forest.solve.tree_kinds import find_relatives
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.provider import AttributeKind
from treeclaim.model.request import Preference


class TermScorer(ABC):
    """A term of a score; all values are in [0, 1], in units."""

    def __init__(self, options: SlotOptions) -> None:
        self.options = options

    @abstractmethod
    def score(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return an upper (ceiling) or lower bound of the values of the candidates under each root.

        Only the terms with an opposite (`spread`, `far`) need a lower bound.
        """
        return np.full(self._root_count, int(FULL_SCORE) * is_ceiling, dtype=np.int64)

    @property
    def _root_count(self) -> int:
        return len(self.options.forest.order.roots)


class _FilledTerm(TermScorer):
    def __init__(
        self, options: SlotOptions, classes: Sequence[str], totals: Callable[[str], ClassTotals]
    ) -> None:
        super().__init__(options)
        self._totals = {name: totals(name) for name in classes}


class PackTerm(_FilledTerm):
    """`pack`: the filled share of a candidate's trees, and of the providers that share with them."""

    def score(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        return self._mean(lambda name: self._compute_shares(table, name))

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return bounds of the values."""
        return self._mean(lambda name: self._bound_share(name, is_ceiling=is_ceiling))

    def _mean(self, value: Callable[[str], Floats]) -> Units:
        weight = 1 / len(self._totals)
        units: Units = np.add.reduce([to_units(value(name), weight) for name in self._totals])
        return units

    def _sum_amounts(self, name: str) -> int:
        return sum(self.options.amounts[name].values())

    def _compute_shares(self, table: CandidateTable, name: str) -> Floats:
        if self.options.is_local:
            return self._compute_tree_shares(name)[table.single_trees]
        totals, (trees, is_counted) = self._totals[name], table.trees
        used_units = np.where(is_counted, totals.tree_used[trees], 0).sum(axis=1)
        capacity = np.where(is_counted, totals.tree_capacity[trees], 0).sum(axis=1)
        shares = table.find_shares(name)
        if shares:
            rows = np.stack([share.rows for share in shares], axis=1)
            is_inside = table.tree[rows][:, :, None] == trees[:, None, :]
            is_lent = mask_repetitions(rows, ~(is_inside & is_counted[:, None, :]).any(axis=2))
            used_units += np.where(is_lent, totals.used[rows], 0).sum(axis=1)
            capacity += np.where(is_lent, totals.capacity[rows], 0).sum(axis=1)
        return _compute_share(used_units + self._sum_amounts(name), capacity)

    def _compute_tree_shares(self, name: str) -> Floats:
        totals = self._totals[name]
        return _compute_share(totals.tree_used + self._sum_amounts(name), totals.tree_capacity)

    def _bound_share(self, name: str, *, is_ceiling: bool) -> Floats:
        """Return the greatest or the least value of one class under each root."""
        relations = {slot: self.options.relations[slot] for slot in self.options.amounts[name]}
        if self.options.problem.may_leave_anchors:
            return np.full(self._root_count, float(is_ceiling))
        if all(relation.pairs.is_local for relation in relations.values()):
            return self._compute_tree_shares(name)
        # The total share of a tree and its sharing providers lies between the least and the greatest single share.
        totals = self._totals[name]
        units = self._sum_amounts(name) if is_ceiling else 0
        tree_share = _compute_share(totals.tree_used + units, totals.tree_capacity)
        bounds = [np.where(totals.tree_capacity > 0, tree_share, 1 - is_ceiling)]
        for slot, relation in relations.items():
            provider = relation.pairs.provider
            tree = np.arange(self._root_count).repeat(np.diff(relation.pairs.starts))
            is_lent = self.options.forest.order.tree[provider] != tree
            lent_share = _compute_share(totals.used[provider] + units, totals.capacity[provider])
            shares = np.where(is_lent, lent_share, tree_share[tree])
            bounds.append(self.options.find_extremes(slot, shares, is_ceiling=is_ceiling))
        bound: Floats = (np.maximum if is_ceiling else np.minimum).reduce(bounds)
        return bound


def _compute_share(used_units: Floats, capacity: Floats) -> Floats:
    share: Floats = np.minimum(used_units / np.maximum(capacity, 1), 1)
    return share


class PackProvidersTerm(_FilledTerm):
    """`pack_providers`: the filled share of a candidate's providers, with the amounts that it takes."""

    @property
    def _weight(self) -> float:
        return 1 / sum(len(self.options.amounts[name]) for name in self._totals)

    def score(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        units: Units = np.zeros(table.count, dtype=np.int64)
        for name in self._totals:
            class_shares = table.find_shares(name)
            for share in class_shares:
                part = share.amount / self.options.amounts[name][share.slot]
                value = self._compute_shares(name, share, class_shares) * part
                units += to_units(value, self._weight)
        return units

    def _compute_shares(self, name: str, share: Share, class_shares: Sequence[Share]) -> Floats:
        totals = self._totals[name]
        used_units = totals.used[share.rows] + share.amount
        for added in class_shares:
            if added is not share and not self.options.are_apart(share.slot, added.slot):
                used_units += np.where(added.rows == share.rows, added.amount, 0)
        return _compute_share(used_units, totals.capacity[share.rows])

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return bounds: either all slots that may take from a provider do, or only one slot does."""
        units: Units = np.zeros(self._root_count, dtype=np.int64)
        options = self.options
        for name, totals in self._totals.items():
            for slot, amount in options.amounts[name].items():
                added_units = 1 if options.is_divided(slot) else amount
                if is_ceiling:
                    added_units = sum(
                        units_of_slot
                        for second_slot, units_of_slot in options.amounts[name].items()
                        if not options.are_apart(slot, second_slot)
                    )
                rows = options.relations[slot].pairs.provider
                shares = _compute_share(totals.used[rows] + added_units, totals.capacity[rows])
                extreme = options.find_extremes(slot, shares, is_ceiling=is_ceiling)
                units += to_units(extreme, self._weight)
        return units


class NearTerm(TermScorer):
    """`near`: the closeness in the tree of the providers of some suffixed groups."""

    def __init__(self, options: SlotOptions, suffixes: Sequence[str]) -> None:
        super().__init__(options)
        self._suffixes = frozenset(suffixes)
        self._slots = options.find_slots(suffixes)
        self._relations = [options.relations[slot] for slot in self._slots]
        self._is_local = all(relation.pairs.is_local for relation in self._relations)
        self._relatives = find_relatives(options.forest)

    def score(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        columns = [rows for suffix, rows in table.served if suffix in self._suffixes]
        if not columns:
            return np.full(table.count, int(FULL_SCORE), dtype=np.int64)
        rows, relatives = np.stack(columns, axis=1), self._relatives
        first, last = rows.min(axis=1), rows.max(axis=1)
        closeness = np.zeros(table.count)
        in_one_tree = np.flatnonzero(relatives.root[first] == relatives.root[last])
        common = relatives.common(first[in_one_tree], last[in_one_tree])
        deepest = relatives.depth[rows[in_one_tree]].max(axis=1, initial=0)
        closeness[in_one_tree] = (relatives.depth[common] + 1) / (deepest + 1)
        return to_units(closeness)

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return bounds of the values.

        The ceiling assumes that the common ancestor is the deepest possible provider, or its parent if two providers
        must differ. The floor assumes that it is the root, and that a provider is as deep as any of the Forest.
        """
        if not self._is_local:
            return super().bound(is_ceiling=is_ceiling)
        if not is_ceiling:
            return to_units(np.full(self._root_count, 1 / (self._relatives.deepest + 1)))
        forest, may_coincide = self.options.forest, not self._must_differ()
        pairs = {relation.pairs.serial: relation.pairs for relation in self._relations}

        def compute() -> Units:
            deepest = np.zeros(self._root_count)
            for slot_pairs in pairs.values():
                depths = self._relatives.depth[slot_pairs.provider]
                np.maximum.at(deepest, forest.order.tree[slot_pairs.provider], depths)
            return to_units((deepest + may_coincide) / (deepest + 1))

        return forest.cache.get(("near", may_coincide, tuple(pairs)), compute)

    def _must_differ(self) -> bool:
        """Return whether two of the slots always have different providers."""
        pairs = [relation.pairs for relation in self._relations]
        return any(
            self.options.are_apart(self._slots[first], self._slots[second])
            or not have_common_provider(self.options.forest, pairs[first], pairs[second])
            for first, second in combinations(range(len(pairs)), 2)
        )


class PreferredTerm(TermScorer):
    """`preferred`: the share of the weights of met preferences."""

    def __init__(self, options: SlotOptions, preferences: Sequence[Preference]) -> None:
        super().__init__(options)
        self._total = sum(preference.weight for preference in preferences)
        self._has_trait: list[tuple[Preference, Mask]] = []
        """Preferences with masks of the rows that have their trait."""
        for preference in preferences:
            options.problem.budget.check()
            has_trait = have_any_trait(options.forest, (preference.trait,))
            self._has_trait.append((preference, has_trait))

    def score(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        met_weight = np.zeros(table.count)
        for preference, has_trait in self._has_trait:
            self.options.problem.budget.check()
            is_served = np.zeros(table.count, dtype=np.bool_)
            for suffix, rows in table.served:
                if suffix == preference.suffix:
                    is_served |= has_trait[rows]
            met_weight += (is_served == preference.is_wanted) * float(preference.weight)
        return to_units(met_weight, 1 / self._total)

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return the weights of the preferences that some options, or all, meet."""
        met_weight = np.zeros(self._root_count)
        for preference, has_trait in self._has_trait:
            self.options.problem.budget.check()
            is_met = [
                self.options.find_extremes(
                    slot,
                    (has_trait[rows] == preference.is_wanted).astype(np.float64),
                    is_ceiling=is_ceiling,
                )
                for slot in self.options.find_slots([preference.suffix])
                for rows in [self.options.relations[slot].pairs.provider]
            ]
            limit = np.maximum if preference.is_wanted else np.minimum
            met_weight += limit.reduce(is_met) * float(preference.weight)
        return to_units(met_weight, 1 / self._total)


class AttributeTerm(TermScorer):
    """`most` and `least`: the relative size of an attribute of a group's provider."""

    def __init__(self, options: SlotOptions, arguments: Sequence[str], *, is_most: bool) -> None:
        super().__init__(options)
        name, self._suffix = arguments
        self._values = scale_attribute(options.forest, name, is_most=is_most)

    def score(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        for suffix, rows in table.served:
            if suffix == self._suffix:
                return to_units(self._values[rows])
        return np.full(table.count, int(FULL_SCORE), dtype=np.int64)

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return the value of the best or the worst option."""
        (slot,) = self.options.find_slots([self._suffix])
        values = self._values[self.options.relations[slot].pairs.provider]
        return to_units(self.options.find_extremes(slot, values, is_ceiling=is_ceiling))


class ShuffleTerm(TermScorer):
    """`shuffle`: a pseudorandom number by seed and tree."""

    def __init__(self, options: SlotOptions, seed: str) -> None:
        super().__init__(options)
        self._numbers = compute_tree_numbers(options.forest, seed, options.problem.budget)
        self._rank = rank_trees(options.forest)

    def score(self, table: CandidateTable) -> Units:
        """Return the number of each candidate's tree; of several trees, the root with the smallest UUID decides."""
        if self.options.is_local:
            return to_units(self._numbers[table.single_trees])
        trees, is_counted = table.trees
        ranks = np.where(is_counted, self._rank[trees], len(self._rank))
        return to_units(self._numbers[trees[np.arange(len(trees)), ranks.argmin(axis=1)]])

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return the number of each tree, unless a candidate may leave its anchor's tree."""
        if self.options.problem.may_leave_anchors:
            return super().bound(is_ceiling=is_ceiling)
        return to_units(self._numbers)


def scale_attribute(forest: Forest, name: str, *, is_most: bool) -> Floats:
    """Return the value of `most` or `least` by row; 0 for a provider whose attribute is not an integer."""
    scaled = np.zeros(forest.row_count)
    ends = forest.attributes.range_of(name, forest.alive.values)
    if ends is None:
        return scaled
    least, greatest = ends
    kinds, values = forest.attributes.at(name, np.arange(forest.row_count))
    is_integer = kinds == AttributeKind.INTEGER
    if least == greatest:
        scaled[is_integer] = 1.0
        return scaled
    distance = values[is_integer] - least if is_most else greatest - values[is_integer]
    scaled[is_integer] = distance / (greatest - least)
    return scaled


def compute_tree_numbers(forest: Forest, seed: str, budget: Budget) -> Floats:
    """Return the number in [0, 1) of each tree for `shuffle` with a seed."""

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


def rank_trees(forest: Forest) -> Rows:
    """Return the rank of each tree by the UUID of its root."""

    def compute() -> Rows:
        uuids = forest.uuid.values[forest.order.roots]
        ranks = np.empty(len(uuids), dtype=np.int64)
        ranks[np.argsort(uuids)] = np.arange(len(uuids))
        return ranks

    return forest.cache.get("ranks of trees", compute)
