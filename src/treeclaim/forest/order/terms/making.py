# SPDX-License-Identifier: Apache-2.0
"""Makes the terms of an order for one search."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.order.mixes.room import CountsNow, MixRoom
from treeclaim.forest.order.terms.counted import CountedTrees, Taken
from treeclaim.forest.order.terms.fixed import (
    PreferredOfGroup,
    PreferredOfSlot,
    Shuffle,
    tree_numbers,
    tree_ranks,
    worth_of_attribute,
)
from treeclaim.forest.order.terms.keep import Keep
from treeclaim.forest.order.terms.lending import PackedClass
from treeclaim.forest.order.terms.near import Near
from treeclaim.forest.order.terms.pack import PackOfClass, PackProvidersOfSlot
from treeclaim.forest.order.terms.term import Sum, TermValue, Weighted
from treeclaim.forest.order.totals import ClassTotals
from treeclaim.forest.order.trees import relatives_of
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask
from treeclaim.model.extension.order import Order, Preference, TermName
from treeclaim.model.request import NO_GROUP

_NOISE = 1e-14
"""Added to ceilings of what is divided, whose scores are summed up in another way."""

_OPPOSITE = {
    TermName.SPREAD: TermName.PACK,
    TermName.SPREAD_PROVIDERS: TermName.PACK_PROVIDERS,
    TermName.FAR: TermName.NEAR,
}
"""Terms that are one minus another."""

_OF_UNLIKE = frozenset({TermName.KEEP, TermName.MOST, TermName.LEAST})
"""Terms whose arguments are not of one kind: a mix may have the name of a class."""


def value_of(
    problem: Problem,
    order: Order,
    totals: Callable[[str], ClassTotals],
    counts: CountsNow | None = None,
) -> Sum:
    """Return the weighted mean of the terms of an order.

    Args:
        problem: The problem whose candidates they are. What it divides is never filled: only bounds exist.
        order: The terms, with their weights.
        totals: Tells what is used of a class.
        counts: Tells what fits of a mix, where somebody keeps count of it.
    """
    return _Maker(problem, order, totals, counts).value()


class _Maker:
    """Makes the terms of an order."""

    def __init__(
        self,
        problem: Problem,
        order: Order,
        totals: Callable[[str], ClassTotals],
        counts: CountsNow | None,
    ) -> None:
        self._counts = counts
        plan = problem.plan
        self._problem = problem
        self._forest = problem.forest
        self._relations = (*problem.relations, *problem.split_relations)
        self._divided = frozenset(range(len(problem.relations), len(self._relations)))
        self._suffixes = [slot.suffix for slot in plan.slots] + [NO_GROUP] * len(plan.split)
        self._read_totals = totals
        self._order = order
        self._taken: dict[str, list[Taken]] = {}
        for slot, want in enumerate(plan.slots):
            for name, amount in want.resources.items():
                self._taken.setdefault(name, []).append(Taken(slot, amount))
        for slot, (name, amount) in enumerate(plan.split.items(), len(plan.slots)):
            self._taken.setdefault(name, []).append(Taken(slot, amount, is_divided=True))
        self._apart = {
            frozenset((step.slot, other))
            for step in problem.rules.steps
            for other in step.differs
            if step.slot is not None
        }
        self._trees = CountedTrees(problem)
        self._budget = problem.budget
        self._totals: dict[str, ClassTotals] = {}

    def value(self) -> Sum:
        """Return the weighted mean of all."""
        total = sum(term.weight for term in self._order.terms)
        constant = _NOISE if self._divided else 0.0
        weights: dict[tuple[TermName, tuple[str, ...]], int] = {}
        for term in self._order.terms:
            name = _OPPOSITE.get(term.name, term.name)
            is_opposite = name is not term.name
            if is_opposite:
                constant += term.weight / total
            # What is wanted and unwanted at once is worth the difference.
            arguments = tuple(term.arguments)
            key = name, arguments if name in _OF_UNLIKE else tuple(dict.fromkeys(arguments))
            weights[key] = weights.get(key, 0) + (-term.weight if is_opposite else term.weight)
        parts: list[Weighted] = []
        for (name, arguments), weight in weights.items():
            values = self._values(name, arguments)
            parts += [Weighted(weight / total * share, value) for share, value in values]
        return Sum(parts, constant, self._budget)

    def _values(
        self, name: TermName, arguments: Sequence[str]
    ) -> Sequence[tuple[float, TermValue]]:
        """Return the values whose sum a term is, each with its share of it."""
        makers: Mapping[TermName, Callable[[Sequence[str]], Sequence[tuple[float, TermValue]]]] = {
            TermName.PACK: self._pack,
            TermName.PACK_PROVIDERS: self._pack_providers,
            TermName.NEAR: self._near,
            TermName.PREFERRED: lambda _: self._preferred(),
            TermName.SHUFFLE: self._shuffle,
            TermName.KEEP: self._keep,
            TermName.MOST: lambda some: self._of_attribute(*some, is_most=True),
            TermName.LEAST: lambda some: self._of_attribute(*some, is_most=False),
        }
        return makers[name](arguments)

    def _totals_of(self, name: str) -> ClassTotals:
        if name not in self._totals:
            self._totals[name] = self._read_totals(name)
        return self._totals[name]

    def _pack(self, classes: Sequence[str]) -> Sequence[tuple[float, TermValue]]:
        named = list(dict.fromkeys(classes)) or list(self._taken)
        return [
            (
                1 / len(named),
                PackOfClass(
                    PackedClass(
                        self._trees,
                        self._totals_of(name),
                        self._taken[name],
                        self._relations,
                        self._are_apart([part.slot for part in self._taken[name]]),
                    )
                ),
            )
            for name in named
        ]

    def _are_apart(self, slots: Sequence[int]) -> bool:
        """Tell whether each of some slots has another provider than the others."""
        return all(frozenset(pair) in self._apart for pair in combinations(slots, 2))

    def _pack_providers(self, classes: Sequence[str]) -> Sequence[tuple[float, TermValue]]:
        named = list(dict.fromkeys(classes)) or list(self._taken)
        slots = [(name, part) for name in named for part in self._taken[name]]
        return [
            (
                1 / len(slots),
                PackProvidersOfSlot(
                    name, self._totals_of(name), part, self._beside(name, part), self._relations
                ),
            )
            for name, part in slots
        ]

    def _beside(self, name: str, part: Taken) -> list[Taken]:
        """Return what other slots take of a class that may have the same provider as one."""
        return [
            other
            for other in self._taken[name]
            if other is not part and frozenset((part.slot, other.slot)) not in self._apart
        ]

    def _near(self, suffixes: Sequence[str]) -> Sequence[tuple[float, TermValue]]:
        slots = [slot for slot, suffix in enumerate(self._suffixes) if suffix in suffixes]
        near = Near(
            relatives_of(self._forest),
            slots,
            self._relations,
            self._forest.order.roots,
            self._forest.cache,
        )
        return [(1.0, near)]

    def _preferred(self) -> Sequence[tuple[float, TermValue]]:
        preferences = self._order.preferences
        total = sum(preference.weight for preference in preferences)
        parts: list[tuple[float, TermValue]] = []
        suffixes = dict.fromkeys(preference.suffix for preference in preferences)
        for suffix in suffixes:
            mine = [preference for preference in preferences if preference.suffix == suffix]
            parts += [(1 / total, part) for part in self._preferred_of(suffix, mine)]
        return parts

    def _preferred_of(self, suffix: str, mine: Sequence[Preference]) -> list[TermValue]:
        slots = [slot for slot, other in enumerate(self._suffixes) if other == suffix]
        has = [self._having(preference.trait) for preference in mine]
        if len(slots) > 1 or slots[0] in self._divided:
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

    def _having(self, trait: str) -> Mask:
        self._budget.check()
        return with_any_trait_by_position(self._forest, (trait,))

    def _shuffle(self, arguments: Sequence[str]) -> Sequence[tuple[float, TermValue]]:
        numbers = tree_numbers(self._forest, arguments[0], self._budget)
        return [(1.0, Shuffle(self._trees, numbers, tree_ranks(self._forest)))]

    def _keep(self, arguments: Sequence[str]) -> Sequence[tuple[float, TermValue]]:
        name, resource_class = arguments
        mix = next(mix for mix in self._order.mixes if mix.name == name)
        room = MixRoom(self._forest, mix, resource_class, self._budget, self._counts)
        return [(1.0, Keep(self._problem, self._order, self._trees, room))]

    def _of_attribute(
        self, name: str, suffix: str, *, is_most: bool
    ) -> Sequence[tuple[float, TermValue]]:
        slot = self._suffixes.index(suffix)
        worth = worth_of_attribute(self._forest, name, is_most=is_most)
        return [(1.0, PreferredOfSlot(slot, self._relations[slot], worth))]
