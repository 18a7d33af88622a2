# SPDX-License-Identifier: Apache-2.0
"""Scores of candidates in which several providers give one amount (contract page 98, section 2).

One candidate after the other: which divisions there are is found out in the same way.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.order.ordered import most_wanted
from treeclaim.forest.order.relatives import Relatives, relatives_of
from treeclaim.forest.order.scoring import sharing_by_place, tree_numbers, tree_ranks
from treeclaim.forest.order.totals import ClassTotals, totals_of
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.candidate import SplitCandidate
from treeclaim.forest.split.splitting import Splitter
from treeclaim.model.order import DECIMALS, Order, Term, TermName
from treeclaim.model.request import NO_GROUP

_OPPOSITE = {
    TermName.SPREAD: TermName.PACK,
    TermName.SPREAD_PROVIDERS: TermName.PACK_PROVIDERS,
    TermName.FAR: TermName.NEAR,
}
"""Terms that are one minus another."""


def divided_in_order(
    problem: Problem, order: Order, scores: list[float]
) -> Iterator[SplitCandidate]:
    """Yield the first candidates of the whole ordered list; note their scores.

    Args:
        problem: What is asked; it splits something.
        order: What the candidates are ordered by.
        scores: Where the scores of the candidates yielded are written, in order.
    """
    found = heapq.nsmallest(
        most_wanted(problem), scored_splits(problem, order), key=lambda one: (-one[0], one[1])
    )
    for score, _, candidate in found:
        scores.append(score)
        yield candidate


def scored_splits(problem: Problem, order: Order) -> Iterator[tuple[float, int, SplitCandidate]]:
    """Yield score and number of all candidates, in the usual order."""
    scores = SplitScores(problem, order)
    for number, candidate in enumerate(splits(problem)):
        yield scores.of(candidate), number, candidate


def splits(problem: Problem) -> Iterator[SplitCandidate]:
    """Yield all candidates in the usual order, whatever the operator's options."""
    options = replace(problem.options, breadth_first=False, randomize=False, maximum=None)
    return Splitter(replace(problem, options=options)).distinct()


@dataclass(frozen=True, slots=True)
class _Gift:
    """What a provider gives to a group of a class.

    Attributes:
        suffix: The group.
        name: The class.
        place: The provider.
        amount: Units.
    """

    suffix: str
    name: str
    place: int
    amount: int


class SplitScores:
    """Scores one candidate after the other."""

    def __init__(self, problem: Problem, order: Order) -> None:
        self._forest = problem.forest
        self._plan: Plan = problem.plan
        self._order = order
        self._tree = problem.forest.order.tree
        self._relatives: Relatives = relatives_of(problem.forest)
        self._sharing = sharing_by_place(problem.forest)
        self._totals: dict[str, ClassTotals] = {}
        self._weight = sum(term.weight for term in order.terms)

    def of(self, candidate: SplitCandidate) -> float:
        """Return the score of a candidate."""
        gifts = self._gifts(candidate)
        served: dict[str, set[int]] = {}
        for want, place in zip(self._plan.slots, candidate.chosen, strict=True):
            served.setdefault(want.suffix, set()).add(place)
        for _, place, _ in candidate.parts:
            served.setdefault(NO_GROUP, set()).add(place)
        total = sum(term.weight * self._value(term, gifts, served) for term in self._order.terms)
        return float(np.round(total / self._weight, DECIMALS))

    def trees(self, gifts: Sequence[_Gift]) -> set[int]:
        """Return the trees of a candidate."""
        own = {int(self._tree[one.place]) for one in gifts if not self._sharing[one.place]}
        return own or {int(self._tree[one.place]) for one in gifts}

    def _gifts(self, candidate: SplitCandidate) -> list[_Gift]:
        gifts = [
            _Gift(want.suffix, name, place, amount)
            for want, place in zip(self._plan.slots, candidate.chosen, strict=True)
            for name, amount in want.resources.items()
        ]
        return gifts + [_Gift(NO_GROUP, name, place, n) for name, place, n in candidate.parts]

    def _value(self, term: Term, gifts: Sequence[_Gift], served: Mapping[str, set[int]]) -> float:
        arguments = term.arguments
        if term.name in _OPPOSITE:
            opposite = Term(_OPPOSITE[term.name], arguments)
            return 1 - self._value(opposite, gifts, served)
        if term.name is TermName.PACK:
            return self._pack(arguments, gifts)
        if term.name is TermName.PACK_PROVIDERS:
            return self._pack_providers(arguments, gifts)
        if term.name is TermName.NEAR:
            return self._near([place for suffix in arguments for place in served[suffix]])
        if term.name is TermName.PREFERRED:
            return self._preferred(served)
        return self._shuffle(arguments[0], gifts)

    def _totals_of(self, name: str) -> ClassTotals:
        if name not in self._totals:
            self._totals[name] = totals_of(self._forest, name)
        return self._totals[name]

    def _pack(self, classes: Sequence[str], gifts: Sequence[_Gift]) -> float:
        trees = sorted(self.trees(gifts))
        named = dict.fromkeys(classes or [one.name for one in gifts])
        values = []
        for name in named:
            totals = self._totals_of(name)
            mine = [one for one in gifts if one.name == name]
            lent = sorted({one.place for one in mine if int(self._tree[one.place]) not in trees})
            used = totals.tree_used[trees].sum() + totals.used[lent].sum()
            capacity = totals.tree_capacity[trees].sum() + totals.capacity[lent].sum()
            values.append(min((used + sum(one.amount for one in mine)) / capacity, 1))
        return float(sum(values)) / len(values)

    def _pack_providers(self, classes: Sequence[str], gifts: Sequence[_Gift]) -> float:
        slots: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for one in gifts:
            if classes and one.name not in classes:
                continue
            totals = self._totals_of(one.name)
            taken = sum(
                other.amount
                for other in gifts
                if other.name == one.name and other.place == one.place
            )
            value = min((totals.used[one.place] + taken) / totals.capacity[one.place], 1)
            slots.setdefault((one.suffix, one.name), []).append((float(value), one.amount))
        means = [
            sum(value * amount for value, amount in parts) / sum(amount for _, amount in parts)
            for parts in slots.values()
        ]
        return sum(means) / len(means)

    def _near(self, places: Sequence[int]) -> float:
        relatives = self._relatives
        first, last = np.array([min(places)]), np.array([max(places)])
        if not relatives.same_tree(first, last)[0]:
            return 0.0
        common = relatives.common(first, last)
        return float(relatives.depth[common][0] + 1) / float(relatives.depth[places].max() + 1)

    def _preferred(self, served: Mapping[str, set[int]]) -> float:
        held = total = 0
        for one in self._order.preferences:
            has = with_any_trait_by_position(self._forest, (one.trait,))
            total += one.weight
            if bool(has[sorted(served[one.suffix])].any()) == one.is_wanted:
                held += one.weight
        return held / total

    def _shuffle(self, seed: str, gifts: Sequence[_Gift]) -> float:
        ranks = tree_ranks(self._forest)
        tree = min(self.trees(gifts), key=lambda one: int(ranks[one]))
        return float(tree_numbers(self._forest, seed)[tree])
