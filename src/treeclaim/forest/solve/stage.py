# SPDX-License-Identifier: Apache-2.0
"""Some anchors made ready together, so that their candidates can be combined."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.slots import Options, options_of
from treeclaim.forest.feasibility.competition import Competition
from treeclaim.forest.feasibility.subtrees import Heads, heads_of
from treeclaim.forest.solve.combiner import Combiner
from treeclaim.forest.solve.pace import Pace
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Rows


@dataclass(frozen=True, slots=True)
class Stage:
    """Some anchors made ready.

    Attributes:
        trees: The anchors: numbers of trees, ascending, int64, shape (anchors,).
        live: Which of them may have candidates: indices into `trees`, ascending, int64.
        combiner: Combines their candidates.
        nbytes: Memory that their domains take.
    """

    trees: Rows
    live: Rows
    combiner: Combiner
    nbytes: int


def staged(problem: Problem, anchors: Iterator[Rows], pace: Pace) -> Iterator[Stage]:
    """Make anchors (numbers of trees, ascending) ready, as many at a time as the pace says."""
    waiting = np.empty(0, dtype=np.int64)
    while True:
        while len(waiting) < pace.anchors and (more := next(anchors, None)) is not None:
            waiting = np.concatenate([waiting, more])
        if not len(waiting):
            return
        trees, waiting = waiting[: pace.anchors], waiting[pace.anchors :]
        yield stage_of(problem, trees)


def stage_of(problem: Problem, trees: Rows) -> Stage:
    """Make some anchors ready; the costs grow with their domains alone.

    Args:
        problem: What is asked.
        trees: The anchors: numbers of trees, ascending, int64, shape (anchors,).
    """
    plan, order, budget = problem.plan, problem.forest.order, problem.budget
    options = _options(problem, trees)
    competition = Competition(
        plan.wants, options, plan.contests, plan.lists, len(order.row), budget=budget
    )
    budget.check()
    live = competition.promising(len(trees))
    heads: list[Heads] = []
    for members, contests in zip(plan.lists, plan.inner_contests, strict=True):
        budget.check()
        found = heads_of(options, members, contests, len(trees), order)
        heads.append(found)
        live = live[np.diff(found.starts)[live] > 0]
    combiner = Combiner(options, heads, problem.rules, competition, budget)
    distinct = {id(domain): domain for domain in options}.values()
    return Stage(trees, live, combiner, sum(domain.nbytes for domain in distinct))


def _options(problem: Problem, trees: Rows) -> list[Options]:
    """Return the domain of each slot under some anchors; equal slots have the same one."""
    contested = {contest.resource_class for contest in problem.plan.contests}
    made: dict[int, Options] = {}
    options = []
    for want, relation in zip(problem.plan.wants, problem.relations, strict=True):
        problem.budget.check()
        if id(relation) not in made:
            names = [name for name in want.resources if name in contested]
            made[id(relation)] = options_of(problem.forest, relation, trees, names)
        options.append(made[id(relation)])
    return options
