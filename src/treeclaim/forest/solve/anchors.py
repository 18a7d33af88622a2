# SPDX-License-Identifier: Apache-2.0
"""Anchors: the trees in which every slot has some provider, and how many are looked at together."""

from collections.abc import Iterator

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.solve.partial.blocks import most_rows
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Trees


class Pace:
    """The pace of a search: little at a time if little is wanted, more if little is found.

    Attributes:
        reach: Trees that are compared together, to find anchors.
        anchors: Anchors that are staged together.
        rows: Partial candidates that are extended together.
    """

    def __init__(self, problem: Problem, count: int | None = None) -> None:
        """Begin with what the limit asks for, or with another number instead."""
        takes_turns = problem.takes_turns and count is None
        self._largest = most_rows(len(problem.relations), thresholds.LARGEST_BLOCK)
        most_candidates = problem.wanted if count is None else count
        trees = len(problem.order.roots)
        self.rows = (
            self._largest
            if most_candidates is None
            else min(max(most_candidates, thresholds.SMALLEST_BLOCK), self._largest)
        )
        self.reach = trees if takes_turns else thresholds.FIRST_REACH
        self.anchors = trees if takes_turns else self.rows

    def reach_further(self) -> None:
        """Compare more trees together the next time."""
        self.reach *= 2

    def note_stage(self, *, is_fruitless: bool) -> None:
        """Take more the next time, and much more where nothing was found."""
        self.anchors *= thresholds.FRUITLESS_STRIDE if is_fruitless else 2
        if is_fruitless:
            self.rows = min(self.rows * thresholds.FRUITLESS_STRIDE, self._largest)


def anchors(problem: Problem, pace: Pace, first: int = 0) -> Iterator[Trees]:
    """Yield the anchors (numbers of trees, ascending) range by range, from a tree on.

    So a few candidates need not wait for all.
    """
    count = len(problem.order.roots)
    while first < count:
        end = min(first + pace.reach, count)
        yield anchors_among(problem, first, end)
        first = end
        pace.reach_further()


def all_anchors(problem: Problem) -> Trees:
    """Return all anchors: numbers of trees, ascending, int64."""
    return anchors_among(problem, 0, len(problem.order.roots))


def anchors_among(problem: Problem, first: int, end: int) -> Trees:
    """Return the anchors among a range of trees: their numbers, ascending, int64."""
    reached = np.ones(end - first, dtype=np.bool_)
    if problem.allowed is not None:
        reached &= problem.allowed[first:end]
    for relation in (*problem.relations, *problem.split_relations):
        reached &= relation.reached(first, end)
    return np.flatnonzero(reached) + first
