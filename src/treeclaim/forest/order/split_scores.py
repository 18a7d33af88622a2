# SPDX-License-Identifier: Apache-2.0
"""Scores of candidates in which several providers give one amount (page 98, section 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.order.mixes.part_counts import Take
from treeclaim.forest.order.mixes.room import MixRoom, States
from treeclaim.forest.order.terms.counted import sharing_by_position
from treeclaim.forest.order.terms.fixed import tree_numbers, tree_ranks, worth_of_attribute
from treeclaim.forest.order.totals import ClassTotals, Floats, totals_of
from treeclaim.forest.order.trees import Relatives, relatives_of
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.candidate import SplitCandidate
from treeclaim.model.extension.order import DECIMALS, Order, Term, TermName
from treeclaim.model.request import NO_GROUP

OPPOSITE = {
    TermName.SPREAD: TermName.PACK,
    TermName.SPREAD_PROVIDERS: TermName.PACK_PROVIDERS,
    TermName.FAR: TermName.NEAR,
}
"""Terms that are one minus another."""


@dataclass(frozen=True, slots=True)
class GroupAllocation:
    """What a provider gives to a group of a class.

    Attributes:
        suffix: The group.
        name: The class.
        position: The provider.
        amount: Units.
    """

    suffix: str
    name: str
    position: int
    amount: int


class SplitScores:
    """Scores one candidate after the other.

    Attributes:
        budget: The budget of the search.
    """

    def __init__(self, problem: Problem, order: Order) -> None:
        """Take a search that splits something, and how it is ordered."""
        self._forest = problem.forest
        self._plan: Plan = problem.plan
        self._order = order
        self._tree = problem.forest.order.tree
        self._relatives: Relatives = relatives_of(problem.forest)
        self._sharing = sharing_by_position(problem.forest)
        self._totals: dict[str, ClassTotals] = {}
        self._rooms: dict[tuple[str, ...], MixRoom] = {}
        self._worths: dict[Term, Floats] = {}
        self.budget = problem.budget
        self._weight = sum(term.weight for term in order.terms)

    def score(self, candidate: SplitCandidate) -> float:
        """Return the score of a candidate."""
        allocations, served = self.allocations(candidate), self.served(candidate)
        total = sum(
            term.weight * self.value(term, allocations, served) for term in self._order.terms
        )
        return float(np.round(total / self._weight, DECIMALS))

    def served(self, candidate: SplitCandidate) -> Mapping[str, set[int]]:
        """Return the positions of the providers of each group."""
        served: dict[str, set[int]] = {}
        for want, position in zip(self._plan.slots, candidate.chosen, strict=True):
            served.setdefault(want.suffix, set()).add(position)
        for _, position, _ in candidate.parts:
            served.setdefault(NO_GROUP, set()).add(position)
        return served

    def are_in_one_tree(self, positions: Sequence[int]) -> bool:
        """Tell whether providers are of one tree, none of which lends to others."""
        return not self._sharing[positions].any() and len(set(self._tree[positions].tolist())) == 1

    def trees(self, allocations: Sequence[GroupAllocation]) -> set[int]:
        """Return the trees of a candidate."""
        not_lent = {
            int(self._tree[allocation.position])
            for allocation in allocations
            if not self._sharing[allocation.position]
        }
        return not_lent or {int(self._tree[allocation.position]) for allocation in allocations}

    def allocations(self, candidate: SplitCandidate) -> list[GroupAllocation]:
        """Return what each provider gives to each group of each class."""
        allocations = [
            GroupAllocation(want.suffix, name, position, amount)
            for want, position in zip(self._plan.slots, candidate.chosen, strict=True)
            for name, amount in want.resources.items()
        ]
        return allocations + [
            GroupAllocation(NO_GROUP, name, position, n) for name, position, n in candidate.parts
        ]

    def value(  # noqa: PLR0911 - one for each term
        self, term: Term, allocations: Sequence[GroupAllocation], served: Mapping[str, set[int]]
    ) -> float:
        """Return what a term is worth for a candidate, given the amounts and the slots it serves."""
        arguments = term.arguments
        if term.name in OPPOSITE:
            opposite = Term(OPPOSITE[term.name], arguments)
            return 1 - self.value(opposite, allocations, served)
        if term.name is TermName.PACK:
            return self._pack(arguments, allocations)
        if term.name is TermName.PACK_PROVIDERS:
            return self._pack_providers(arguments, allocations)
        if term.name is TermName.NEAR:
            return self._near([position for suffix in arguments for position in served[suffix]])
        if term.name is TermName.PREFERRED:
            return self._preferred(served)
        if term.name is TermName.SHUFFLE:
            return self._shuffle(arguments[0], allocations)
        if term.name in (TermName.MOST, TermName.LEAST):
            return self._of_attribute(term, served)
        return self._keep(arguments, allocations)

    def totals_of(self, name: str) -> ClassTotals:
        """Return what is used of a class and what there is."""
        if name not in self._totals:
            self._totals[name] = totals_of(self._forest, name)
        return self._totals[name]

    def _pack(self, classes: Sequence[str], allocations: Sequence[GroupAllocation]) -> float:
        trees = sorted(self.trees(allocations))
        named = dict.fromkeys(classes or [allocation.name for allocation in allocations])
        values = []
        for name in named:
            totals = self.totals_of(name)
            mine = [allocation for allocation in allocations if allocation.name == name]
            lent = sorted(
                {
                    allocation.position
                    for allocation in mine
                    if int(self._tree[allocation.position]) not in trees
                }
            )
            used = totals.tree_used[trees].sum() + totals.used[lent].sum()
            capacity = totals.tree_capacity[trees].sum() + totals.capacity[lent].sum()
            values.append(
                min((used + sum(allocation.amount for allocation in mine)) / capacity, 1)
            )
        return float(sum(values)) / len(values)

    def _pack_providers(
        self, classes: Sequence[str], allocations: Sequence[GroupAllocation]
    ) -> float:
        shares = self.shares_of_slots(classes, allocations)
        return sum(shares.values()) / len(shares)

    def shares_of_slots(
        self, classes: Sequence[str], allocations: Sequence[GroupAllocation]
    ) -> dict[tuple[str, str], float]:
        """Return the mean share in use of each group and class, of some classes or all."""
        slots: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for allocation in allocations:
            if classes and allocation.name not in classes:
                continue
            totals = self.totals_of(allocation.name)
            taken = sum(
                other.amount
                for other in allocations
                if other.name == allocation.name and other.position == allocation.position
            )
            value = min(
                (totals.used[allocation.position] + taken) / totals.capacity[allocation.position],
                1,
            )
            slots.setdefault((allocation.suffix, allocation.name), []).append(
                (float(value), allocation.amount)
            )
        return {
            key: sum(value * amount for value, amount in parts) / sum(n for _, n in parts)
            for key, parts in slots.items()
        }

    def _near(self, positions: Sequence[int]) -> float:
        relatives = self._relatives
        first, last = np.array([min(positions)]), np.array([max(positions)])
        if not relatives.same_tree(first, last)[0]:
            return 0.0
        common = relatives.common(first, last)
        return float(relatives.depth[common][0] + 1) / float(relatives.depth[positions].max() + 1)

    def _preferred(self, served: Mapping[str, set[int]]) -> float:
        held = total = 0
        for preference in self._order.preferences:
            has = with_any_trait_by_position(self._forest, (preference.trait,))
            total += preference.weight
            if bool(has[sorted(served[preference.suffix])].any()) == preference.is_wanted:
                held += preference.weight
        return held / total

    def _shuffle(self, seed: str, allocations: Sequence[GroupAllocation]) -> float:
        ranks = tree_ranks(self._forest)
        tree = min(self.trees(allocations), key=lambda number: int(ranks[number]))
        return float(tree_numbers(self._forest, seed)[tree])

    def _of_attribute(self, term: Term, served: Mapping[str, set[int]]) -> float:
        if term not in self._worths:
            name, is_most = term.arguments[0], term.name is TermName.MOST
            self._worths[term] = worth_of_attribute(self._forest, name, is_most=is_most)
        # A suffixed group has one provider.
        return float(self._worths[term][min(served[term.arguments[1]])])

    def _keep(self, arguments: Sequence[str], allocations: Sequence[GroupAllocation]) -> float:
        key = tuple(arguments)
        if key not in self._rooms:
            mix = next(mix for mix in self._order.mixes if mix.name == key[0])
            self._rooms[key] = MixRoom(self._forest, mix, key[1], self.budget)
        trees = np.array(sorted(self.trees(allocations)), dtype=np.int64)
        only = np.zeros(1, dtype=np.int64)
        takes = [
            Take(only, np.array([allocation.position]), allocation.name, allocation.amount)
            for allocation in allocations
        ]
        return float(self._rooms[key].values(1, States(np.zeros_like(trees), trees), takes)[0])
