# SPDX-License-Identifier: Apache-2.0
"""`keep`: how little room a candidate costs the requests of a mix (contract page 101, section 3)."""

from functools import cached_property

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.mixes.choices import Choosing
from treeclaim.forest.order.mixes.part_counts import Take
from treeclaim.forest.order.mixes.room import MixRoom, States
from treeclaim.forest.order.terms.counted import CountedTrees
from treeclaim.forest.order.terms.term import TermValue
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.order.trees import kinds_of_trees
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import combined_under
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Rows
from treeclaim.model.extension.order import Order


class Keep(TermValue):
    """One minus the share of the mix's room that a candidate costs."""

    def __init__(self, problem: Problem, order: Order, trees: CountedTrees, room: MixRoom) -> None:
        self._order = order
        self._problem = problem
        self._trees = trees
        self._room = room

    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""
        every = np.arange(len(chosen))
        if self._trees.are_own:
            states = States(every, self._trees.own_trees(chosen), are_own=True)
        else:
            trees, meant = self._trees.counted(chosen)
            candidate, column = np.nonzero(meant)
            states = States(candidate, trees[candidate, column])
        takes = [
            Take(every, chosen[:, slot], name, amount)
            for slot, want in enumerate(self._problem.plan.slots)
            for name, amount in want.resources.items()
        ]
        return self._room.values(len(chosen), states, takes)

    @cached_property
    def ceiling(self) -> Floats:
        """Return the greatest value under each root.

        Where a tree's candidates differ in one choice only, that is the value of the best of them. Else
        all candidates of one tree of each kind are judged, if they are not too many.
        """
        roots = len(self._problem.forest.order.roots)
        ceiling = np.zeros(roots)
        choosing = Choosing.of(self._problem, self._order)
        undecided = all_anchors(self._problem)
        if choosing is not None:
            some = choosing.some(np.arange(roots))
            undecided = some.undecided
            np.maximum.at(ceiling, some.tree, self.exact(some.chosen))
        if len(undecided):
            ceiling[undecided] = self._by_kind(undecided)
        return ceiling

    def _by_kind(self, trees: Rows) -> Floats:
        """Return the greatest value in each of some trees."""
        problems = self._room.related()
        if problems is None or self._problem.plan.split or not self._trees.are_local:
            return np.ones(len(trees))
        kinds = kinds_of_trees([self._problem, *problems], trees)
        _, first, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
        greatest = [self._greatest(tree) for tree in trees[first].tolist()]
        return np.array(greatest, dtype=np.float64)[kind_of]

    def _greatest(self, tree: int) -> float:
        """Return the greatest value of the candidates of a tree, 1 if they are many."""
        greatest, count = 0.0, 0
        with self._problem.budget.scope():
            for block in combined_under(self._problem, np.array([tree], dtype=np.int64)):
                self._problem.budget.check()
                count += len(block.chosen)
                if count > thresholds.MOST_CANDIDATES_JUDGED:
                    return 1.0
                greatest = max(greatest, float(self.exact(block.chosen).max(initial=0)))
        return greatest
