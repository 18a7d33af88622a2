# SPDX-License-Identifier: Apache-2.0
"""Anchors: the trees in which every slot has some provider."""

from collections.abc import Iterator

import numpy as np

from treeclaim.forest.solve.pace import Pace
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Trees


def anchors(problem: Problem, pace: Pace) -> Iterator[Trees]:
    """Yield the anchors (numbers of trees, ascending) range by range.

    So a few candidates need not wait for all. Where everything is wanted, it is one range.
    """
    first, count = 0, len(problem.forest.order.roots)
    while first < count:
        end = min(first + pace.reach, count)
        yield anchors_among(problem, first, end)
        first = end
        pace.reach_further()


def all_anchors(problem: Problem) -> Trees:
    """Return all anchors: numbers of trees, ascending, int64."""
    return anchors_among(problem, 0, len(problem.forest.order.roots))


def anchors_among(problem: Problem, first: int, end: int) -> Trees:
    """Return the anchors among a range of trees: their numbers, ascending, int64."""
    reached = np.ones(end - first, dtype=np.bool_)
    if problem.allowed is not None:
        reached &= problem.allowed[first:end]
    for relation in (*problem.relations, *problem.split_relations):
        reached &= relation.reached(first, end)
    return np.flatnonzero(reached) + first
