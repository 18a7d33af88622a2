# SPDX-License-Identifier: Apache-2.0
"""`keep`: how little room a candidate costs the requests of a mix (contract page 101, section 3)."""

import numpy as np

from treeclaim.forest.order.candidate_table import CandidateTable, Share
from treeclaim.forest.order.mixes.room import MixRoom, States
from treeclaim.forest.order.mixes.tree_counter import Take
from treeclaim.forest.order.term import SlotOptions, Term, Units, to_units
from treeclaim.forest.table.columns import Integers


class KeepTerm(Term):
    """1 minus the share of the mix's room that a candidate costs."""

    def __init__(self, options: SlotOptions, room: MixRoom) -> None:
        super().__init__(options)
        self.room = room

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        every = np.arange(table.count)
        if self.options.are_own:
            states = States(every, table.own_trees)
        else:
            trees, counts = table.trees
            candidate, column = np.nonzero(counts)
            states = States(candidate, trees[candidate, column])
        takes = [_take(share, every) for share in table.shares]
        return to_units(self.room.values(table.count, states, takes))

    def ceiling(self) -> Units:
        """Return for each root a value that no candidate under it exceeds.

        A candidate costs at least as much as any one of its slots alone.
        """
        ceiling = super().ceiling()
        options = self.options
        if options.problem.plan.split or not options.are_own:
            return ceiling
        for slot in options.problem.giving:
            pairs = options.relations[slot].pairs
            every = np.arange(len(pairs.provider))
            trees = np.repeat(np.arange(len(ceiling)), np.diff(pairs.starts))
            takes = [
                Take(every, pairs.provider, name, amount)
                for name, amount in options.problem.plan.slots[slot].resources.items()
            ]
            values = self.room.values(len(every), States(every, trees), takes)
            ceiling = np.minimum(ceiling, to_units(options.greatest(slot, values)))
        return ceiling


def _take(share: Share, every: Integers) -> Take:
    if isinstance(share.amount, int):
        return Take(every, share.position, share.name, share.amount)
    is_present = share.amount > 0
    return Take(
        every[is_present], share.position[is_present], share.name, share.amount[is_present]
    )
