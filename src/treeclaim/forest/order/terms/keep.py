# SPDX-License-Identifier: Apache-2.0
"""`keep`: how little room a candidate costs the requests of a mix (contract page 101, section 3)."""

from functools import cached_property

import numpy as np

from treeclaim.forest.order.mixes.choices import Choosing
from treeclaim.forest.order.mixes.parts import Take
from treeclaim.forest.order.mixes.room import MixRoom, States
from treeclaim.forest.order.terms.counted import CountedTrees
from treeclaim.forest.order.terms.term import TermValue
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.model.extension.order import Order


class Keep(TermValue):
    """One minus the share of the mix's room that a candidate costs."""

    def __init__(self, problem: Problem, order: Order, trees: CountedTrees, room: MixRoom) -> None:
        """Take a search, its order, the trees of its candidates, and the room of the mix."""
        self._order = order
        self._problem = problem
        self._trees = trees
        self._room = room

    def exact(self, chosen: Choices) -> Floats:
        """Return the value of each complete candidate."""
        every = np.arange(len(chosen))
        if self._trees.are_own:
            states = States(every, self._trees.own(chosen), are_own=True)
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

        Where a tree's candidates differ in one choice only, that is the value of the best of them.
        """
        roots = len(self._problem.forest.order.roots)
        choosing = Choosing.of(self._problem, self._order)
        if choosing is None:
            return np.ones(roots)
        some = choosing.some(np.arange(roots))
        ceiling = np.zeros(roots)
        ceiling[some.undecided] = 1.0
        np.maximum.at(ceiling, some.tree, self.exact(some.chosen))
        return ceiling
