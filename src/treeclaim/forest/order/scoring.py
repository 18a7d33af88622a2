# SPDX-License-Identifier: Apache-2.0
"""Scores: weighted means of the terms of an order (contract page 98, section 2; page 101, section 3)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from treeclaim.forest.order.candidate_table import (
    FULL_SCORE,
    CandidateRows,
    CandidateTable,
    SlotOptions,
    Units,
    to_units,
)
from treeclaim.forest.order.mixes.mix_room import MixRoom
from treeclaim.forest.order.mixes.tree_counter import TakenAmounts
from treeclaim.forest.order.terms import (
    AttributeTerm,
    NearTerm,
    PackProvidersTerm,
    PackTerm,
    PreferredTerm,
    ShuffleTerm,
    TermScorer,
)
from treeclaim.forest.order.totals import ClassTotals, Floats, get_totals
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Rows
from treeclaim.model.request import DECIMALS, Order, TermName


class KeepTerm(TermScorer):
    """`keep`: 1 minus the share of the mix's room that a candidate costs."""

    def __init__(self, options: SlotOptions, room: MixRoom) -> None:
        super().__init__(options)
        self.room = room

    def score(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        distinct, inverse = _find_distinct(table)
        trees, is_counted = table.trees
        candidate, column = np.nonzero(is_counted[distinct])
        takes = [
            TakenAmounts(share.name, share.rows, share.amount).select(distinct)
            for share in table.shares
        ]
        tree = trees[distinct][candidate, column]
        return to_units(self.room.compute_values(len(distinct), candidate, tree, takes))[inverse]

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return ceilings: a candidate costs at least as much as each single slot of it."""
        ceiling = super().bound(is_ceiling=is_ceiling)
        options = self.options
        if options.problem.plan.split or not options.is_local:
            return ceiling
        slots = options.problem.plan.slots
        # Equal groups have equal options.
        for slot in {
            (slots[slot].group, slots[slot].part): slot for slot in options.problem.giving
        }.values():
            pairs = options.relations[slot].pairs
            every = np.arange(len(pairs.provider))
            trees = np.repeat(np.arange(len(ceiling)), np.diff(pairs.starts))
            takes = [
                TakenAmounts(name, pairs.provider, amount)
                for name, amount in options.problem.plan.slots[slot].resources.items()
            ]
            values = self.room.compute_values(len(every), every, trees, takes)
            ceiling = np.minimum(
                ceiling, to_units(options.find_extremes(slot, values, is_ceiling=True))
            )
        return ceiling


def _find_distinct(table: CandidateTable) -> tuple[Integers, Integers]:
    """Return the candidates that take different amounts, and for each candidate its number among them.

    Groups with equal amounts may exchange their providers. Eight devices for eight groups have 40,320
    candidates that all take the same amounts.
    """
    columns: dict[tuple[str, int], list[Rows]] = {}
    for share in table.shares:
        if not isinstance(share.amount, int):
            every = np.arange(table.count)
            return every, every
        columns.setdefault((share.name, share.amount), []).append(share.rows)
    keys = [np.sort(np.stack(rows, axis=1), axis=1) for rows in columns.values()]
    key = np.ascontiguousarray(np.concatenate(keys, axis=1))
    void_key = key.view(np.dtype((np.void, key.dtype.itemsize * key.shape[1]))).ravel()
    _, distinct, inverse = np.unique(void_key, return_index=True, return_inverse=True)
    return distinct, inverse


_OPPOSITE = {
    TermName.SPREAD: TermName.PACK,
    TermName.SPREAD_PROVIDERS: TermName.PACK_PROVIDERS,
    TermName.FAR: TermName.NEAR,
}
"""Terms that are 1 minus another term."""

_NOISE = int(2.0**60 * 1e-15)
"""Added to ceilings, because each term of an exact score is rounded."""


class Scoring:
    """The scores of the candidates of one search."""

    def __init__(
        self,
        problem: Problem,
        order: Order,
        totals: Callable[[str], ClassTotals] | None = None,
    ) -> None:
        """Create the terms of an order; `totals` returns the used amounts of a class, by default the Forest's."""
        self.order = order
        self.rooms: list[MixRoom] = []
        self._options = SlotOptions(problem)
        self._budget = problem.budget
        self._totals = totals or partial(get_totals, problem.forest)
        total = sum(term.weight for term in order.terms)
        opposites = sum(term.weight for term in order.terms if term.name in _OPPOSITE)
        self._constant = int(opposites / total * FULL_SCORE)
        self._terms = [
            (
                -term.weight / total if term.name in _OPPOSITE else term.weight / total,
                self._make_scorer(_OPPOSITE.get(term.name, term.name), term.arguments),
            )
            for term in order.terms
        ]

    def _make_scorer(self, name: TermName, arguments: Sequence[str]) -> TermScorer:
        options = self._options
        classes = arguments or tuple(options.amounts)
        makers: Mapping[TermName, Callable[[], TermScorer]] = {
            TermName.PACK: lambda: PackTerm(options, classes, self._totals),
            TermName.PACK_PROVIDERS: lambda: PackProvidersTerm(options, classes, self._totals),
            TermName.NEAR: lambda: NearTerm(options, arguments),
            TermName.PREFERRED: lambda: PreferredTerm(options, self.order.preferences),
            TermName.SHUFFLE: lambda: ShuffleTerm(options, arguments[0]),
            TermName.KEEP: lambda: self._make_keep(*arguments),
            TermName.MOST: lambda: AttributeTerm(options, arguments, is_most=True),
            TermName.LEAST: lambda: AttributeTerm(options, arguments, is_most=False),
        }
        return makers[name]()

    def _make_keep(self, mix_name: str, resource_class: str) -> TermScorer:
        mix = next(mix for mix in self.order.mixes if mix.name == mix_name)
        options = self._options
        room = MixRoom(options.forest, mix, resource_class, self._budget)
        self.rooms.append(room)
        return KeepTerm(options, room)

    def compute_scores(self, rows: CandidateRows) -> Floats:
        """Return the rounded scores of candidates."""
        return round_scores(self.compute_units(rows))

    def compute_units(self, rows: CandidateRows) -> Units:
        """Return the scores of candidates before they are rounded."""
        table = self._options.make_table(rows)
        return self._sum(table.count, lambda _, term: term.score(table))

    def estimate_partial(self, chosen_rows: Choices, filled: Collection[int]) -> Units:
        """Return heuristic scores of partial candidates, by their filled slots."""
        table = self._options.make_partial_table(chosen_rows, filled)
        if not table.shares:
            return np.zeros(table.count, dtype=np.int64)
        return self._sum(table.count, lambda _, term: term.score(table))

    @cached_property
    def by_tree(self) -> Units:
        """Return the part of a score that depends on the tree alone; all giving providers must be in one tree."""
        units = np.zeros(len(self._options.forest.order.roots), dtype=np.int64)
        for factor, term in self._terms:
            if isinstance(term, ShuffleTerm):
                units += np.rint(term.bound(is_ceiling=True) * factor).astype(np.int64)
        return units

    def compute_ceilings(self, anchors: Rows) -> Floats:
        """Return upper bounds of the scores of the candidates of anchors (numbers of trees)."""
        roots = len(self._options.forest.order.roots)
        units = self._sum(roots, lambda factor, term: term.bound(is_ceiling=factor > 0))
        return round_scores(units[anchors] + _NOISE)

    def _sum(self, count: int, value: Callable[[float, TermScorer], Units]) -> Units:
        units = np.full(count, self._constant, dtype=np.int64)
        for factor, term in self._terms:
            self._budget.check()
            units += np.rint(value(factor, term) * factor).astype(np.int64)
        return units


def round_scores(units: Units) -> Floats:
    """Return scores as the response shows them, which is also how they are compared."""
    scores: Floats = np.round(units / FULL_SCORE, DECIMALS)
    return scores
