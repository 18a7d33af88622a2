# SPDX-License-Identifier: Apache-2.0
"""The first candidates of a whole ordered list (contract page 98, section 2)."""

from collections.abc import Iterator

from treeclaim.forest.order.best_first import BestFirst
from treeclaim.forest.order.scoring import scoring_of
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.model.extension.order import DEFAULT_CANDIDATES, MOST_CANDIDATES, Order


def most_wanted(problem: Problem) -> int:
    """Return how many candidates an ordered search is to give at most."""
    limit = problem.plan.request.limit
    wanted = min(DEFAULT_CANDIDATES if limit is None else limit, MOST_CANDIDATES)
    maximum = problem.options.maximum
    return wanted if maximum is None else min(wanted, maximum)


def in_order(problem: Problem, order: Order, scores: list[float]) -> Iterator[Choices]:
    """Yield the first candidates of the whole ordered list; note their scores.

    Args:
        problem: What is asked; it splits nothing.
        order: What the candidates are ordered by.
        scores: Where the scores of the candidates yielded are written, in order.
    """
    wanted = most_wanted(problem)
    if wanted:
        for candidates in BestFirst(problem, scoring_of(problem, order)):
            left = wanted - len(scores)
            scores += candidates.score[:left].tolist()
            yield candidates.chosen[:left]
            if len(scores) >= wanted:
                return
