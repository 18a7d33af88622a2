# SPDX-License-Identifier: Apache-2.0
"""Makes the terms of an order for one search."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.order.relatives import relatives_of
from treeclaim.forest.order.terms.combination import Inverse, Sum
from treeclaim.forest.order.terms.counted import CountedTrees, Taken
from treeclaim.forest.order.terms.near import Near
from treeclaim.forest.order.terms.pack import PackOfClass
from treeclaim.forest.order.terms.pack_providers import PackProvidersOfClass
from treeclaim.forest.order.terms.preferred import PreferredOfGroup, PreferredOfSlot
from treeclaim.forest.order.terms.shuffle import Shuffle, tree_numbers, tree_ranks
from treeclaim.forest.order.terms.term import TermValue
from treeclaim.forest.order.totals import ClassTotals
from treeclaim.forest.solve.problem import Problem
from treeclaim.model.extension.order import Order, Preference, Term, TermName


def value_of(problem: Problem, order: Order, totals: Callable[[str], ClassTotals]) -> TermValue:
    """Return the weighted mean of the terms of an order.

    Args:
        problem: Of whose candidates; it splits nothing.
        order: The terms, with their weights.
        totals: Tells what is used of a class.
    """
    return _Maker(problem, order, totals).value()


class _Maker:
    """Makes the terms of an order."""

    def __init__(
        self, problem: Problem, order: Order, totals: Callable[[str], ClassTotals]
    ) -> None:
        forest, plan, relations = problem.forest, problem.plan, problem.relations
        self._forest = forest
        self._plan = plan
        self._relations = relations
        self._read_totals = totals
        self._order = order
        self._taken: dict[str, list[Taken]] = {}
        for slot, want in enumerate(plan.slots):
            for name, amount in want.resources.items():
                self._taken.setdefault(name, []).append(Taken(slot, amount))
        self._trees = CountedTrees(problem)
        self._totals: dict[str, ClassTotals] = {}

    def value(self) -> TermValue:
        """Return the weighted mean of all."""
        total = sum(term.weight for term in self._order.terms)
        return Sum([(term.weight / total, self._term(term)) for term in self._order.terms])

    def _term(self, term: Term) -> TermValue:
        makers: Mapping[TermName, Callable[[Sequence[str]], TermValue]] = {
            TermName.PACK: self._pack,
            TermName.SPREAD: lambda classes: Inverse(self._pack(classes)),
            TermName.PACK_PROVIDERS: self._pack_providers,
            TermName.SPREAD_PROVIDERS: lambda classes: Inverse(self._pack_providers(classes)),
            TermName.NEAR: self._near,
            TermName.FAR: lambda suffixes: Inverse(self._near(suffixes)),
            TermName.PREFERRED: lambda _: self._preferred(),
            TermName.SHUFFLE: lambda seed: self._shuffle(seed[0]),
        }
        return makers[term.name](term.arguments)

    def _totals_of(self, name: str) -> ClassTotals:
        if name not in self._totals:
            self._totals[name] = self._read_totals(name)
        return self._totals[name]

    def _pack(self, classes: Sequence[str]) -> TermValue:
        named = list(dict.fromkeys(classes)) or list(self._taken)
        return Sum(
            [
                (
                    1 / len(named),
                    PackOfClass(
                        self._trees, self._totals_of(name), self._taken[name], self._relations
                    ),
                )
                for name in named
            ]
        )

    def _pack_providers(self, classes: Sequence[str]) -> TermValue:
        named = list(dict.fromkeys(classes)) or list(self._taken)
        slots = sum(len(self._taken[name]) for name in named)
        return Sum(
            [
                (
                    1 / slots,
                    PackProvidersOfClass(
                        self._totals_of(name), self._taken[name], self._relations
                    ),
                )
                for name in named
            ]
        )

    def _near(self, suffixes: Sequence[str]) -> TermValue:
        slots = [slot for slot, want in enumerate(self._plan.slots) if want.suffix in suffixes]
        return Near(
            relatives_of(self._forest),
            slots,
            self._relations,
            self._forest.order.roots,
            self._forest.cache,
        )

    def _preferred(self) -> TermValue:
        preferences = self._order.preferences
        total = sum(preference.weight for preference in preferences)
        parts: list[tuple[float, TermValue]] = []
        suffixes = dict.fromkeys(preference.suffix for preference in preferences)
        for suffix in suffixes:
            mine = [preference for preference in preferences if preference.suffix == suffix]
            parts += [(1 / total, part) for part in self._preferred_of(suffix, mine)]
        return Sum(parts)

    def _preferred_of(self, suffix: str, mine: Sequence[Preference]) -> list[TermValue]:
        slots = [slot for slot, want in enumerate(self._plan.slots) if want.suffix == suffix]
        has = [
            with_any_trait_by_position(self._forest, (preference.trait,)) for preference in mine
        ]
        if len(slots) > 1:
            return [
                PreferredOfGroup(
                    slots,
                    self._relations,
                    mask,
                    is_wanted=preference.is_wanted,
                    weight=preference.weight,
                )
                for preference, mask in zip(mine, has, strict=True)
            ]
        worth = np.zeros(len(self._forest.order.row))
        for preference, mask in zip(mine, has, strict=True):
            worth += np.where(mask == preference.is_wanted, float(preference.weight), 0.0)
        return [PreferredOfSlot(slots[0], self._relations[slots[0]], worth)]

    def _shuffle(self, seed: str) -> TermValue:
        return Shuffle(self._trees, tree_numbers(self._forest, seed), tree_ranks(self._forest))
