# SPDX-License-Identifier: Apache-2.0
"""Scores: the weighted mean of the terms of a request's order (contract page 98, section 2)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from treeclaim.forest.order.terms.making import value_of
from treeclaim.forest.order.terms.term import Partial, TermValue
from treeclaim.forest.order.totals import ClassTotals, Floats, totals_of
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Rows
from treeclaim.model.extension.order import DECIMALS, Order

_NOISE = 2e-15
"""Added to ceilings before they are rounded: sums of sixteen terms differ by less when they are
added in another order, and a ceiling must not be below a score."""


def rounded(scores: Floats) -> Floats:
    """Return scores as they are shown and compared."""
    found: Floats = np.round(scores, DECIMALS)
    return found


class Scoring:
    """Scores of the candidates of one search, which splits nothing."""

    def __init__(self, value: TermValue) -> None:
        """Take the weighted mean of all terms."""
        self._value = value

    def scores(self, chosen: Choices) -> Floats:
        """Return the score of each complete candidate."""
        return rounded(self._value.exact(chosen))

    def ceilings(self, anchors: Rows) -> Floats:
        """Return for some anchors, by number, a score that no candidate of theirs exceeds."""
        return rounded(self._value.ceiling[anchors] + _NOISE)

    def bounds(self, partial: Partial) -> Floats:
        """Return for partial candidates a score that nothing they may become exceeds."""
        return rounded(self._value.bound(partial) + _NOISE)


def scoring_of(
    problem: Problem, order: Order, totals: Callable[[str], ClassTotals] | None = None
) -> Scoring:
    """Return the scoring of a search that splits nothing.

    Args:
        problem: Of whose candidates.
        order: How they are ordered.
        totals: What is used of a class, where somebody keeps count of it.
    """
    return Scoring(value_of(problem, order, totals or partial(totals_of, problem.forest)))
