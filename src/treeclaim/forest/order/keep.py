# SPDX-License-Identifier: Apache-2.0
"""`keep`: how little room a candidate costs the requests of a mix (contract page 101, section 3)."""

import numpy as np

from treeclaim.forest.order.mixes.room import MixRoom, States
from treeclaim.forest.order.mixes.tree_counter import Take
from treeclaim.forest.order.term import (
    CandidateTable,
    Share,
    SlotOptions,
    TermScorer,
    Units,
    to_units,
)
from treeclaim.forest.table.columns import Integers, Rows


class KeepTerm(TermScorer):
    """1 minus the share of the mix's room that a candidate costs."""

    def __init__(self, options: SlotOptions, room: MixRoom) -> None:
        super().__init__(options)
        self.room = room

    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""
        first, alike = _distinct(table)
        trees, counts = table.trees
        candidate, column = np.nonzero(counts[first])
        states = States(candidate, trees[first][candidate, column])
        takes = [_take(share, first) for share in table.shares]
        return to_units(self.room.values(len(first), states, takes))[alike]

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return for each root a value that no candidate under it exceeds.

        A candidate costs at least as much as any one of its slots alone.
        """
        ceiling = super().bound(is_ceiling=is_ceiling)
        options = self.options
        if options.problem.plan.split or not options.are_own:
            return ceiling
        slots = options.problem.plan.slots
        # Equal groups have equal options.
        for slot in {
            (slots[slot].group, slots[slot].part): slot for slot in options.problem.giving
        }.values():
            pairs = options.relations[slot].pairs
            every = np.arange(len(pairs.provider))
            trees = np.repeat(np.arange(len(ceiling)), np.diff(pairs.starts))
            takes = [
                Take(name, pairs.provider, amount)
                for name, amount in options.problem.plan.slots[slot].resources.items()
            ]
            values = self.room.values(len(every), States(every, trees), takes)
            ceiling = np.minimum(ceiling, to_units(options.extreme(slot, values, is_ceiling=True)))
        return ceiling


def _take(share: Share, candidates: Integers) -> Take:
    """Return what a share takes from some candidates, given by their numbers."""
    amount = share.amount if isinstance(share.amount, int) else share.amount[candidates]
    return Take(share.name, share.position[candidates], amount)


def _distinct(table: CandidateTable) -> tuple[Integers, Integers]:
    """Return candidates of which no two take the same, and for each candidate which of them is alike.

    Groups with equal amounts may exchange their providers: eight devices for eight groups are one
    candidate in 40,320 orders.
    """
    columns: dict[tuple[str, int], list[Rows]] = {}
    for share in table.shares:
        if not isinstance(share.amount, int):
            every = np.arange(table.count)
            return every, every
        columns.setdefault((share.name, share.amount), []).append(share.position)
    keys = [np.sort(np.stack(positions, axis=1), axis=1) for positions in columns.values()]
    key = np.ascontiguousarray(np.concatenate(keys, axis=1))
    whole = key.view(np.dtype((np.void, key.dtype.itemsize * key.shape[1]))).ravel()
    _, first, alike = np.unique(whole, return_index=True, return_inverse=True)
    return first, alike
