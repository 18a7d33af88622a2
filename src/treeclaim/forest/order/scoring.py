# SPDX-License-Identifier: Apache-2.0
"""Scores: the weighted mean of the terms of a request's order (contract page 98, section 2)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from treeclaim.forest.order.competing.bounds import NOTHING, RivalBounds
from treeclaim.forest.order.mixes.room import CountsNow
from treeclaim.forest.order.terms.making import value_of
from treeclaim.forest.order.terms.term import ONE, Partial, Sum, Units
from treeclaim.forest.order.totals import ClassTotals, Floats, totals_of
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Rows
from treeclaim.model.extension.order import DECIMALS, Order


def score_of(value: Units) -> Floats:
    """Return scores as they are shown and compared."""
    scores: Floats = np.round(value / ONE, DECIMALS)
    return scores


class Scoring:
    """Scores of the candidates of one search.

    No bound is below what it bounds, and one that is attained is equal to it: see `Sum`.
    """

    def __init__(self, value: Sum, rivals: RivalBounds) -> None:
        """Take the weighted mean of all terms, and its bounds where slots compete."""
        self._value = value
        self._rivals = rivals

    def scores(self, chosen: Choices) -> Floats:
        """Return the score of each complete candidate."""
        return score_of(self._value.exact(chosen))

    def of_whole(self, partial: Partial) -> Floats:
        """Return the score of candidates in which all slots are filled, given with their anchors."""
        return self.scores(partial.chosen)

    def ceilings(self, anchors: Rows) -> Floats:
        """Return for some anchors, by number, a score that no candidate of theirs exceeds."""
        return score_of(self._value.ceiling[anchors])

    def bounds(self, partial: Partial) -> Floats:
        """Return for partial candidates a score that nothing they may become exceeds."""
        return score_of(self._value.bound(partial))

    @property
    def has_closer_bounds(self) -> bool:
        """Tell whether there are other bounds than the quick ones."""
        return self._rivals.are_any

    def closer_bounds(self, partial: Partial) -> Floats:
        """Return the same, at more expense, as if no provider served everybody; -inf for none."""
        bound = self._rivals.bound(partial)
        return np.where(bound == NOTHING, -np.inf, score_of(bound))

    def are_closest_worth(self, made: int) -> bool:
        """Tell whether the closest bounds are worth it, after this many partial candidates were made."""
        return self._rivals.are_closest_worth(made)

    def closest_bounds(self, partial: Partial, bounds: Floats) -> Floats:
        """Return the same, at still more expense, and only until that of the first is below what it was."""
        closer = bounds.copy()
        for which, values in self._rivals.closest(partial):
            scores = np.where(values == NOTHING, -np.inf, score_of(values))
            closer[which] = np.minimum(closer[which], scores)
            if closer[0] < bounds[0]:
                break
        return closer


class CeilingsOfDivided(Scoring):
    """Bounds candidates that are still to be divided: a score that no division of theirs exceeds."""

    def of_whole(self, partial: Partial) -> Floats:
        """Return it for candidates in which all slots but the divided ones are filled."""
        return self.bounds(partial)


def scoring_of(
    problem: Problem,
    order: Order,
    totals: Callable[[str], ClassTotals] | None = None,
    counts: CountsNow | None = None,
) -> Scoring:
    """Return the scoring of a search.

    Args:
        problem: The problem whose candidates they are; where it divides something, they are only bounded.
        order: How they are ordered.
        totals: What is used of a class, where somebody keeps count of it.
        counts: What fits of a mix, where somebody keeps count of it.
    """
    read = totals or partial(totals_of, problem.forest)
    value = value_of(problem, order, read, counts)
    kind = CeilingsOfDivided if problem.plan.split else Scoring
    return kind(value, RivalBounds(problem, value, read))
