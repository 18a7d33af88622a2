# SPDX-License-Identifier: Apache-2.0
"""Candidates by descending score in which several providers give one amount (page 98, section 2).

What takes one provider each is combined best first, by what it may become at best when it is divided.
Only what can come before all that was divided already is divided next; which divisions there are, and
what they score, is found out for one after the other.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.order.best_first import BestFirst, Scored
from treeclaim.forest.order.mixes.parts import Take
from treeclaim.forest.order.mixes.room import MixRoom, States
from treeclaim.forest.order.ordered import most_wanted
from treeclaim.forest.order.relatives import Relatives, relatives_of
from treeclaim.forest.order.scoring import Scoring, scoring_of
from treeclaim.forest.order.terms.counted import sharing_by_position
from treeclaim.forest.order.terms.shuffle import tree_numbers, tree_ranks
from treeclaim.forest.order.totals import ClassTotals, totals_of
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.candidate import SplitCandidate
from treeclaim.forest.split.splitting import Splitter
from treeclaim.model.extension.order import DECIMALS, Order, Term, TermName
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
    wanted = most_wanted(problem)
    for scored in islice(splits_in_order(problem, order, scoring_of(problem, order)), wanted):
        scores.append(scored.score)
        yield scored.candidate


class ScoredSplit(NamedTuple):
    """A candidate with divisions.

    Attributes:
        loss: Its score, negated.
        key: Where it stands in the usual order.
        candidate: The candidate.
    """

    loss: float
    key: tuple[int, ...]
    candidate: SplitCandidate

    @property
    def score(self) -> float:
        """Return its score."""
        return -self.loss


def splits_in_order(problem: Problem, order: Order, scoring: Scoring) -> Iterator[ScoredSplit]:
    """Yield all candidates by descending score, equal ones in the usual order.

    Args:
        problem: What is asked; it splits something.
        order: What the candidates are ordered by.
        scoring: Ceilings of what is to be divided yet.
    """
    with problem.budget.scope():
        yield from _merged(problem, SplitScores(problem, order), BestFirst(problem, scoring))


def _merged(
    problem: Problem, scores: "SplitScores", wholes: Iterable[Scored]
) -> Iterator[ScoredSplit]:
    """Divide one combination after the other; yield what comes before the next one's ceiling."""
    splitter = Splitter(problem)
    waiting: list[ScoredSplit] = []
    for whole in wholes:
        rows = (whole.anchor, whole.key, whole.chosen, whole.score)
        for anchor, key, chosen, ceiling in zip(*(part.tolist() for part in rows), strict=True):
            while waiting and waiting[0][:2] < (-ceiling, tuple(key)):
                yield _taken(problem, waiting)
            for number, candidate in enumerate(splitter.of_combination(anchor, tuple(chosen))):
                found = ScoredSplit(-scores.of(candidate), (*key, number), candidate)
                problem.budget.hold(candidate.nbytes)
                heapq.heappush(waiting, found)
    while waiting:
        yield _taken(problem, waiting)


def _taken(problem: Problem, waiting: list[ScoredSplit]) -> ScoredSplit:
    first = heapq.heappop(waiting)
    problem.budget.hold(-first.candidate.nbytes)
    return first


@dataclass(frozen=True, slots=True)
class _Gift:
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
    """Scores one candidate after the other."""

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
        self._budget = problem.budget
        self._weight = sum(term.weight for term in order.terms)

    def of(self, candidate: SplitCandidate) -> float:
        """Return the score of a candidate."""
        gifts = self._gifts(candidate)
        served: dict[str, set[int]] = {}
        for want, position in zip(self._plan.slots, candidate.chosen, strict=True):
            served.setdefault(want.suffix, set()).add(position)
        for _, position, _ in candidate.parts:
            served.setdefault(NO_GROUP, set()).add(position)
        total = sum(term.weight * self._value(term, gifts, served) for term in self._order.terms)
        return float(np.round(total / self._weight, DECIMALS))

    def trees(self, gifts: Sequence[_Gift]) -> set[int]:
        """Return the trees of a candidate."""
        own = {
            int(self._tree[gift.position]) for gift in gifts if not self._sharing[gift.position]
        }
        return own or {int(self._tree[gift.position]) for gift in gifts}

    def _gifts(self, candidate: SplitCandidate) -> list[_Gift]:
        gifts = [
            _Gift(want.suffix, name, position, amount)
            for want, position in zip(self._plan.slots, candidate.chosen, strict=True)
            for name, amount in want.resources.items()
        ]
        return gifts + [
            _Gift(NO_GROUP, name, position, n) for name, position, n in candidate.parts
        ]

    def _value(  # noqa: PLR0911 - one for each term
        self, term: Term, gifts: Sequence[_Gift], served: Mapping[str, set[int]]
    ) -> float:
        arguments = term.arguments
        if term.name in _OPPOSITE:
            opposite = Term(_OPPOSITE[term.name], arguments)
            return 1 - self._value(opposite, gifts, served)
        if term.name is TermName.PACK:
            return self._pack(arguments, gifts)
        if term.name is TermName.PACK_PROVIDERS:
            return self._pack_providers(arguments, gifts)
        if term.name is TermName.NEAR:
            return self._near([position for suffix in arguments for position in served[suffix]])
        if term.name is TermName.PREFERRED:
            return self._preferred(served)
        if term.name is TermName.SHUFFLE:
            return self._shuffle(arguments[0], gifts)
        return self._keep(arguments, gifts)

    def _totals_of(self, name: str) -> ClassTotals:
        if name not in self._totals:
            self._totals[name] = totals_of(self._forest, name)
        return self._totals[name]

    def _pack(self, classes: Sequence[str], gifts: Sequence[_Gift]) -> float:
        trees = sorted(self.trees(gifts))
        named = dict.fromkeys(classes or [gift.name for gift in gifts])
        values = []
        for name in named:
            totals = self._totals_of(name)
            mine = [gift for gift in gifts if gift.name == name]
            lent = sorted(
                {gift.position for gift in mine if int(self._tree[gift.position]) not in trees}
            )
            used = totals.tree_used[trees].sum() + totals.used[lent].sum()
            capacity = totals.tree_capacity[trees].sum() + totals.capacity[lent].sum()
            values.append(min((used + sum(gift.amount for gift in mine)) / capacity, 1))
        return float(sum(values)) / len(values)

    def _pack_providers(self, classes: Sequence[str], gifts: Sequence[_Gift]) -> float:
        slots: dict[tuple[str, str], list[tuple[float, int]]] = {}
        for gift in gifts:
            if classes and gift.name not in classes:
                continue
            totals = self._totals_of(gift.name)
            taken = sum(
                other.amount
                for other in gifts
                if other.name == gift.name and other.position == gift.position
            )
            value = min((totals.used[gift.position] + taken) / totals.capacity[gift.position], 1)
            slots.setdefault((gift.suffix, gift.name), []).append((float(value), gift.amount))
        means = [
            sum(value * amount for value, amount in parts) / sum(amount for _, amount in parts)
            for parts in slots.values()
        ]
        return sum(means) / len(means)

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

    def _shuffle(self, seed: str, gifts: Sequence[_Gift]) -> float:
        ranks = tree_ranks(self._forest)
        tree = min(self.trees(gifts), key=lambda number: int(ranks[number]))
        return float(tree_numbers(self._forest, seed)[tree])

    def _keep(self, arguments: Sequence[str], gifts: Sequence[_Gift]) -> float:
        key = tuple(arguments)
        if key not in self._rooms:
            mix = next(mix for mix in self._order.mixes if mix.name == key[0])
            self._rooms[key] = MixRoom(self._forest, mix, key[1], self._budget)
        trees = np.array(sorted(self.trees(gifts)), dtype=np.int64)
        only = np.zeros(1, dtype=np.int64)
        takes = [Take(only, np.array([gift.position]), gift.name, gift.amount) for gift in gifts]
        return float(self._rooms[key].values(1, States(np.zeros_like(trees), trees), takes)[0])
