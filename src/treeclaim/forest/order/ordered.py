# SPDX-License-Identifier: Apache-2.0
"""The first candidates of an ordered list (contract page 98, section 2).

Where several providers give one amount, what takes one provider each is combined best first, by what it
may become at best when it is divided. Only what can come before all that was divided already is divided
next (`divisions.py`).
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from treeclaim.forest.order.best_first import BestFirst, Scored
from treeclaim.forest.order.divisions import FirstDivisions
from treeclaim.forest.order.scoring import Scoring, scoring_of
from treeclaim.forest.order.split_scores import SplitScores
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.candidate import SplitCandidate
from treeclaim.forest.split.splitting import Splitter
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
    scoring = scoring_of(problem, order)
    for scored in islice(splits_in_order(problem, order, scoring, wanted), wanted):
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


def splits_in_order(
    problem: Problem, order: Order, scoring: Scoring, most: int | None = None
) -> Iterator[ScoredSplit]:
    """Yield all candidates by descending score, equal ones in the usual order.

    Args:
        problem: What is asked; it splits something.
        order: What the candidates are ordered by.
        scoring: Ceilings of what is to be divided yet.
        most: So many of the first ones are enough.
    """
    with problem.budget.scope():
        divisions = FirstDivisions(Splitter(problem), SplitScores(problem, order), order, most)
        yield from _merged(problem, divisions, BestFirst(problem, scoring))


def _merged(
    problem: Problem, divisions: FirstDivisions, wholes: Iterable[Scored]
) -> Iterator[ScoredSplit]:
    """Divide one combination after the other; yield what comes before the next one's ceiling."""
    waiting: list[ScoredSplit] = []
    for whole in wholes:
        rows = (whole.anchor, whole.key, whole.chosen, whole.score)
        for anchor, key, chosen, ceiling in zip(*(part.tolist() for part in rows), strict=True):
            while waiting and waiting[0][:2] < (-ceiling, tuple(key)):
                yield _taken(problem, waiting)
            for number, (candidate, score) in enumerate(divisions.divided(anchor, tuple(chosen))):
                scored = ScoredSplit(-score, (*key, number), candidate)
                problem.budget.hold(candidate.nbytes)
                heapq.heappush(waiting, scored)
    while waiting:
        yield _taken(problem, waiting)


def _taken(problem: Problem, waiting: list[ScoredSplit]) -> ScoredSplit:
    first = heapq.heappop(waiting)
    problem.budget.hold(-first.candidate.nbytes)
    return first
