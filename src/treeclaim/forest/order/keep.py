# SPDX-License-Identifier: Apache-2.0
"""`keep`: how little room a candidate costs the requests of a mix (contract page 101, section 3)."""

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.candidate_table import CandidateTable, CandidateTables, Share
from treeclaim.forest.order.mixes.choices import Choosing
from treeclaim.forest.order.mixes.room import MixRoom, States
from treeclaim.forest.order.mixes.tree_counter import Take
from treeclaim.forest.order.term import SlotOptions, Term, Units, to_units
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import combined_under
from treeclaim.forest.solve.tree_kinds import kinds_of_trees
from treeclaim.forest.table.columns import Integers, Rows
from treeclaim.model.extension.order import Order


class KeepTerm(Term):
    """One minus the share of the mix's room that a candidate costs."""

    def __init__(
        self, options: SlotOptions, order: Order, tables: CandidateTables, room: MixRoom
    ) -> None:
        super().__init__(options)
        self._order = order
        self._tables = tables
        self.room = room

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        return to_units(self._values(table))

    def _values(self, table: CandidateTable) -> Floats:
        every = np.arange(table.count)
        if self.options.are_own:
            states = States(every, table.own_trees, are_own=True)
        else:
            trees, counts = table.trees
            candidate, column = np.nonzero(counts)
            states = States(candidate, trees[candidate, column])
        return self.room.values(
            table.count, states, [_take(share, every) for share in table.shares]
        )

    def ceiling(self) -> Units:
        """Return the greatest value under each root, where few candidates decide it.

        Where a tree's candidates differ in one choice only, that is the value of the best of them.
        Otherwise one tree of each kind is judged, if it has few candidates.
        """
        problem = self.options.problem
        ceiling = np.zeros(len(problem.order.roots))
        if problem.plan.split:
            return super().ceiling()
        choosing = Choosing.of(problem, self._order)
        undecided = all_anchors(problem)
        if choosing is not None:
            choices = choosing.some(np.arange(len(ceiling)))
            undecided = choices.undecided
            values = self._values(self._tables.of_choices(choices.chosen))
            np.maximum.at(ceiling, choices.tree, values)
        if len(undecided):
            ceiling[undecided] = self._by_kind(undecided)
        return to_units(ceiling)

    def _by_kind(self, trees: Rows) -> Floats:
        """Return the greatest value in each of some trees."""
        problem = self.options.problem
        problems = self.room.related()
        is_local = all(relation.pairs.is_local for relation in self.options.relations)
        if problems is None or not is_local:
            return np.ones(len(trees))
        kinds = kinds_of_trees([problem, *problems], trees)
        _, first, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
        greatest = [self._greatest(tree) for tree in trees[first].tolist()]
        return np.array(greatest, dtype=np.float64)[kind_of]

    def _greatest(self, tree: int) -> float:
        """Return the greatest value of the candidates of a tree, 1 if they are many."""
        problem = self.options.problem
        greatest, count = 0.0, 0
        with problem.budget.scope():
            for block in combined_under(problem, np.array([tree], dtype=np.int64)):
                problem.budget.check()
                count += len(block.chosen)
                if count > thresholds.MOST_CANDIDATES_JUDGED:
                    return 1.0
                values = self._values(self._tables.of_choices(block.chosen))
                greatest = max(greatest, float(values.max(initial=0)))
        return greatest


def _take(share: Share, every: Integers) -> Take:
    if isinstance(share.amount, int):
        return Take(every, share.position, share.name, share.amount)
    is_present = share.amount > 0
    return Take(
        every[is_present], share.position[is_present], share.name, share.amount[is_present]
    )
