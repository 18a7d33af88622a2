# SPDX-License-Identifier: Apache-2.0
"""One candidate, taken out of a search: what it takes, from whom, and which trees that is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.placing.scratch import Gift
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import NO_GROUP


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate.

    Attributes:
        gifts: What it takes.
        served: Group and place of each provider that serves a group.
        trees: Numbers of its trees, ascending.
    """

    gifts: tuple[Gift, ...]
    served: tuple[tuple[str, int], ...]
    trees: tuple[int, ...]

    def allocations(self, forest: Forest) -> dict[str, dict[str, int]]:
        """Return amounts by provider uuid and resource class."""
        found: dict[int, dict[str, int]] = {}
        for place, name, amount in self.gifts:
            given = found.setdefault(place, {})
            given[name] = given.get(name, 0) + amount
        row = forest.order.row
        return {forest.uuid_of(int(row[place])): amounts for place, amounts in found.items()}

    def mappings(self, forest: Forest) -> dict[str, list[str]]:
        """Return provider uuids by suffix."""
        row = forest.order.row
        found: dict[str, dict[int, None]] = {}
        for suffix, place in self.served:
            found.setdefault(suffix, {})[place] = None
        return {
            suffix: [forest.uuid_of(int(row[place])) for place in places]
            for suffix, places in found.items()
        }


def trees_of(forest: Forest, sharing: Mask, places: Sequence[int]) -> tuple[int, ...]:
    """Return the trees of some givers: those of sharing providers only if all of them are."""
    tree = forest.order.tree
    own = {int(tree[place]) for place in places if not sharing[place]}
    return tuple(sorted(own or {int(tree[place]) for place in places}))


def candidate_of(
    forest: Forest,
    plan: Plan,
    sharing: Mask,
    chosen: Sequence[int],
    parts: Sequence[tuple[str, int, int]] = (),
) -> Candidate:
    """Make a candidate of the places chosen, and the parts of what is split."""
    gifts = [
        (place, name, amount)
        for want, place in zip(plan.slots, chosen, strict=True)
        for name, amount in want.resources.items()
    ]
    gifts += [(place, name, units) for name, place, units in parts]
    served = [(want.suffix, place) for want, place in zip(plan.slots, chosen, strict=True)]
    served += [(NO_GROUP, place) for _, place, _ in parts]
    trees = trees_of(forest, sharing, [place for place, _, _ in gifts])
    return Candidate(tuple(gifts), tuple(served), trees)


def no_trees(forest: Forest) -> Mask:
    """Return a mask over trees that allows none."""
    return np.zeros(len(forest.order.roots), dtype=np.bool_)
