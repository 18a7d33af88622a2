# SPDX-License-Identifier: Apache-2.0
"""Counts of the consumers of a request that fit into each tree, where no placing is needed, and past counts.

Of one consumer's options alone follows how many fit into a tree, or a bound of that, whatever the order in
which they come (contract page 98, section 5).

Where trees do not concern each other, a claim changes the numbers of the trees that it touches and
no others. So what was counted is kept, with a mark in the log of each class that the request wants;
next time only the trees written since are counted anew, in a small Forest of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import classes_with_consumed
from treeclaim.forest.domains.filters import armed_heads
from treeclaim.forest.domains.relation import Relation, counts_before
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.question.slots import Slot
from treeclaim.forest.solve.combine import matching_anchors
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.class_inventories import Mark, marks_of, written_since
from treeclaim.forest.table.columns import NO_ROW, Integers, Rows, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST, sums_by
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True, eq=False)
class TreeCounts:
    """Consumers of one request by tree.

    Attributes:
        numbers: How many fit now, how many any order could place, and how many would fit if nothing were
            allocated; int64, shape (3, roots).
        is_complete: Whether there was time to count all.
        marks: The moment at which the counts were right, for each class of the request.
    """

    numbers: Integers
    is_complete: bool
    marks: Sequence[Mark] = ()

    @property
    def nbytes(self) -> int:
        """Return the memory that the counts take."""
        return self.numbers.nbytes


Count = Callable[[Trees], TreeCounts | None]
"""Counts in some trees (numbers, ascending), in their order; None where trees concern each other."""


def remembered(forest: Forest, request: CandidateRequest, count: Count) -> TreeCounts | None:
    """Return the counts of a request as things are now; not to be changed.

    Args:
        forest: Where to count. If it has amounts of its own of some class, nothing is kept, and what
            is kept does not count.
        request: What the consumers want.
        count: Counts for this request.
    """
    marks = _marks(forest, request)
    every = np.arange(len(forest.order.roots))
    if any(mark.columns.written is None for mark in marks):
        return count(every)
    kept = forest.counts.find(request)
    counts = _follow(forest, kept, count) if isinstance(kept, TreeCounts) else None
    if counts is None:
        counts = count(every)
    if counts is not None and counts.is_complete:
        forest.counts.take(request)
        forest.counts.keep(request, replace(counts, marks=marks))
    return counts


def _follow(forest: Forest, kept: TreeCounts, count: Count) -> TreeCounts | None:
    """Return what has become of some counts; None if everything has to be counted again."""
    trees = written_since(forest.order, kept.marks)
    if trees is None or not len(trees):
        return None if trees is None else kept
    new_counts = count(trees)
    if new_counts is None or not new_counts.is_complete:
        return None
    numbers = kept.numbers.copy()
    numbers[:, trees] = new_counts.numbers
    return TreeCounts(numbers, is_complete=True)


def _marks(forest: Forest, request: CandidateRequest) -> Sequence[Mark]:
    names = classes_with_consumed(forest, request.classes)
    return marks_of(map(forest.class_inventories, sorted(names)))


def at_most(scratch: Scratch, request: CandidateRequest, budget: Budget) -> int:
    """Return a number of consumers that no order of candidates exceeds.

    A slot is served as often as its providers together can serve it, and all that is free of a
    class is enough for so many consumers.
    """
    problem = _relate(scratch, request, budget)
    part = np.zeros(len(scratch.forest.order.roots), dtype=np.int64)
    return int(_bounds(problem, part, 1)[0])


def at_most_by_tree(scratch: Scratch, request: CandidateRequest, budget: Budget) -> Rows:
    """Return the same for each root, where trees do not concern each other."""
    roots = len(scratch.forest.order.roots)
    return _bounds(_relate(scratch, request, budget), np.arange(roots), roots)


def _relate(scratch: Scratch, request: CandidateRequest, budget: Budget) -> Problem:
    return relate_request(scratch.forest, replace(request, order=None), budget)


def _bounds(problem: Problem, part: Rows, parts: int) -> Rows:
    """Return a bound for each part of the Forest.

    Args:
        problem: A search.
        part: The part that each root belongs to.
        parts: How many there are.
    """
    bounds = np.full(parts, GREATEST)
    for want, relation in zip(problem.plan.slots, problem.relations, strict=True):
        if want.resources:
            times = times_of_pairs(problem.forest, relation, want)
            positions, first = np.unique(relation.pairs.provider, return_index=True)
            times = _once_where_armed(problem.forest, positions, times[first])
            bounds = np.minimum(bounds, _sums(problem, positions, times, part, parts))
    relations: dict[str, list[Relation]] = {
        name: [] for want in problem.plan.slots for name in want.resources
    }
    totals: dict[str, int] = dict(problem.plan.split)
    for want, relation in zip(problem.plan.slots, problem.relations, strict=True):
        for name, amount in want.resources.items():
            relations[name].append(relation)
            totals[name] = totals.get(name, 0) + amount
    for name, relation in zip(problem.plan.split, problem.split_relations, strict=True):
        relations.setdefault(name, []).append(relation)
    for name, class_relations in relations.items():
        positions = np.unique(np.concatenate([relation.providers for relation in class_relations]))
        columns = problem.forest.class_inventories(name)
        _, slots = columns.indices_of(np.sort(positions))
        rows = columns.row.values[slots]
        free = np.maximum(columns.free.values[slots], 0)
        free_of = _sums(problem, rows, free, part, parts)
        # A sum that is cut off bounds nothing.
        times = np.where(free_of < GREATEST, free_of // totals[name], GREATEST)
        bounds = np.minimum(bounds, times)
    return bounds


def _once_where_armed(forest: Forest, positions: Rows, times: Rows) -> Rows:
    """Return how often providers serve a slot where a first use begins an `on_use` condition.

    Such a condition lets one consumer into its subtree.
    """
    heads = armed_heads(forest)
    if heads is None:
        return times
    armed = np.flatnonzero((heads[positions] != NO_ROW) & (times > 0))
    _, first = np.unique(heads[positions[armed]], return_index=True)
    once = times.copy()
    once[armed] = 0
    once[armed[first]] = 1
    return once


def _sums(problem: Problem, positions: Rows, values: Rows, part: Rows, parts: int) -> Rows:
    """Return sums over the parts in which providers are, each provider counted once."""
    distinct, first = np.unique(positions, return_index=True)
    return sums_by(part[problem.forest.order.tree[distinct]], values[first], parts)


def counts_at_once(
    scratch: Scratch, request: CandidateRequest, trees: Trees, budget: Budget
) -> tuple[Rows, Rows] | None:
    """Return how many consumers fit into each of some trees.

    Returns:
        One number for each root, 0 for other trees, and the numbers of the trees in which consumers must
        be placed to find out. None where trees share something, or an amount is split.
    """
    forest = scratch.forest
    problem = _relate(scratch, request, budget)
    if problem.plan.split or not all(relation.pairs.is_local for relation in problem.relations):
        return None
    counts = np.zeros(len(forest.order.roots), dtype=np.int64)
    matching = forest.order.tree[matching_anchors(problem, trees)]
    if problem.consumes:
        # Providers that consume of the same inventory are not independent of each other.
        return counts, matching
    if len(problem.plan.slots) == 1 and problem.plan.slots[0].resources:
        counts[matching] = _of_one_slot(problem, problem.plan.slots[0])[matching]
        return counts, matching[:0]
    options = [_options_of(relation)[matching] == 1 for relation in problem.relations]
    single = np.logical_and.reduce(options)
    single_anchors = matching[single]
    counts[single_anchors] = _of_single_options(problem, single_anchors)
    return counts, matching[~single]


def _options_of(relation: Relation) -> Integers:
    """Return for each root how many providers of a local relation have room; more never will."""
    starts = relation.pairs.starts
    if relation.fits is None:
        return np.diff(starts)
    return np.diff(counts_before(relation.fits)[starts])


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
    times = _once_where_armed(problem.forest, relation.pairs.provider, times)
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
            for rival_slot, rival in enumerate(problem.plan.slots):
                rival_amount = rival.resources.get(name, 0)
                total += np.where(positions[rival_slot] == positions[slot], rival_amount, 0)
            slots = problem.relations[slot].pairs.indices[name]
            slots = np.arange(slots.start, slots.stop) if isinstance(slots, slice) else slots
            free = problem.forest.class_inventories(name).free.values[slots[numbers[slot]]]
            times = np.minimum(times, free // total)
        heads = armed_heads(problem.forest)
        if want.resources and heads is not None:
            # The first consumer begins the conditions, which let no other one in.
            is_armed = heads[positions[slot]] != NO_ROW
            times = np.where(is_armed, np.minimum(times, 1), times)
    at_least_none: Rows = np.maximum(times, 0)
    return at_least_none


def _only_pairs(relation: Relation, anchors: Rows) -> Integers:
    """Return the number of the only pair with room under each of some anchors."""
    starts = relation.pairs.starts[anchors]
    if relation.fits is None:
        return starts
    only: Integers = np.flatnonzero(relation.fits)[counts_before(relation.fits)[starts]]
    return only
