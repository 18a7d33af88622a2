# SPDX-License-Identifier: Apache-2.0
"""How many consumers fit into each tree, where that can be worked out without placing them."""

from dataclasses import replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.relation import Relation, passed
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.question.slots import Slot
from treeclaim.forest.solve.existence import matching_anchors
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.table.columns import Integers, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST, sums_by
from treeclaim.model.request import CandidateRequest, SearchOptions


def counts_at_once(
    scratch: Scratch, request: CandidateRequest, budget: Budget
) -> tuple[Rows, Rows] | None:
    """Return how many consumers fit into each tree.

    Returns:
        One number for each root, and the numbers of the trees in which consumers must be placed to
        find out. None where trees share something, or an amount is split.
    """
    forest = scratch.forest
    problem = relate(forest, replace(request, limit=None, order=None), SearchOptions(), budget)
    if problem.plan.split or not all(relation.pairs.is_local for relation in problem.relations):
        return None
    counts = np.zeros(len(forest.order.roots), dtype=np.int64)
    matching = forest.order.tree[matching_anchors(problem)]
    if problem.consumes:
        # Providers that consume of the same inventory are not independent of each other.
        return counts, matching
    if len(problem.plan.slots) == 1 and problem.plan.slots[0].resources:
        counts[matching] = _of_one_slot(problem, problem.plan.slots[0])[matching]
        return counts, matching[:0]
    single = np.logical_and.reduce(
        [_options_of(relation)[matching] == 1 for relation in problem.relations]
    )
    some = matching[single]
    counts[some] = _of_single_options(problem, some)
    return counts, matching[~single]


def _options_of(relation: Relation) -> Integers:
    """Return for each root how many providers of a local relation have room; more never will."""
    starts = relation.pairs.starts
    if relation.fits is None:
        return np.diff(starts)
    return np.diff(passed(relation.fits)[starts])


def times_of_pairs(forest: Forest, relation: Relation, want: Slot) -> Rows:
    """Return for each pair how often its provider can give what a slot wants; 0 where it cannot."""
    times = np.full(len(relation.pairs.provider), GREATEST)
    for name, amount in want.resources.items():
        free = forest.class_inventories(name).free.values[relation.pairs.indices[name]]
        times = np.minimum(times, free // amount)
    if relation.fits is not None:
        times = np.where(relation.fits, times, 0)
    at_least_none: Rows = np.maximum(times, 0)
    return at_least_none


def _of_one_slot(problem: Problem, want: Slot) -> Rows:
    """Return for each root the sum over its providers."""
    (relation,) = problem.relations
    times = times_of_pairs(problem.forest, relation, want)
    trees = np.repeat(np.arange(len(problem.forest.order.roots)), np.diff(relation.pairs.starts))
    return sums_by(trees, times, len(problem.forest.order.roots))


def _of_single_options(problem: Problem, anchors: Rows) -> Rows:
    """Return how often the only candidate of each of some anchors fits."""
    times = np.full(len(anchors), GREATEST)
    numbers = [_only_pairs(relation, anchors) for relation in problem.relations]
    positions = [
        relation.pairs.provider[number]
        for relation, number in zip(problem.relations, numbers, strict=True)
    ]
    for slot, want in enumerate(problem.plan.slots):
        for name in want.resources:
            total = np.zeros(len(anchors), dtype=np.int64)
            for other, rival in enumerate(problem.plan.slots):
                taken = rival.resources.get(name, 0)
                total += np.where(positions[other] == positions[slot], taken, 0)
            slots = problem.relations[slot].pairs.indices[name]
            slots = np.arange(slots.start, slots.stop) if isinstance(slots, slice) else slots
            free = problem.forest.class_inventories(name).free.values[slots[numbers[slot]]]
            times = np.minimum(times, free // total)
    at_least_none: Rows = np.maximum(times, 0)
    return at_least_none


def _only_pairs(relation: Relation, anchors: Rows) -> Integers:
    """Return the number of the only pair with room under each of some anchors."""
    starts = relation.pairs.starts[anchors]
    if relation.fits is None:
        return starts
    only: Integers = np.flatnonzero(relation.fits)[passed(relation.fits)[starts]]
    return only
