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
from treeclaim.forest.domains.pairs import Window
from treeclaim.forest.domains.relation import Relation, counts_before
from treeclaim.forest.order.mixes.request_counts import RequestCounts, relate_request
from treeclaim.forest.placing.filling import class_uses, find_first_uses, times_of
from treeclaim.forest.solve.combine import matching_anchors
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.class_inventories import Mark, marks_of, written_since
from treeclaim.forest.table.columns import NO_ROW, Integers, Rows, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST, sums_by
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True, eq=False)
class TreeCounts:
    """Kept counts of the consumers of one request by tree.

    Attributes:
        numbers: How many fit now, how many any order could place, and how many would fit if nothing were
            allocated; int64, shape (3, roots).
        marks: The moment at which the counts were right, for each class of the request.
    """

    numbers: Integers
    marks: Sequence[Mark]

    @property
    def nbytes(self) -> int:
        """Return the memory that the counts take."""
        return self.numbers.nbytes


Count = Callable[[Trees], Integers | None]
"""Counts in some trees (numbers, ascending), in their order; None where trees concern each other."""


def remembered(forest: Forest, request: CandidateRequest, count: Count) -> Integers | None:
    """Return the numbers of a request as things are now, see `TreeCounts`; not to be changed.

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
    numbers = _follow(forest, kept, count) if isinstance(kept, TreeCounts) else None
    if numbers is None:
        numbers = count(every)
    if numbers is not None:
        forest.counts.take(request)
        forest.counts.keep(request, TreeCounts(numbers, marks))
    return numbers


def _follow(forest: Forest, kept: TreeCounts, count: Count) -> Integers | None:
    """Return what has become of some counts; None if everything has to be counted again."""
    trees = written_since(forest.order, kept.marks)
    if trees is None or not len(trees):
        return None if trees is None else kept.numbers
    new_numbers = count(trees)
    if new_numbers is None:
        return None
    numbers = kept.numbers.copy()
    numbers[:, trees] = new_numbers
    return numbers


def _marks(forest: Forest, request: CandidateRequest) -> Sequence[Mark]:
    names = classes_with_consumed(forest, request.classes)
    return marks_of(map(forest.class_inventories, sorted(names)))


def at_most(forest: Forest, request: CandidateRequest, budget: Budget) -> int:
    """Return a number of consumers that no order of candidates exceeds.

    The whole cloud is counted like a tree (contract page 101, definitions).
    """
    counts = RequestCounts(forest, replace(request, order=None), budget)
    part = np.zeros(len(counts.possible), dtype=np.int64)
    return int(_bounds(forest, counts, part, 1)[0]) if counts.possible.any() else 0


def at_most_by_tree(forest: Forest, request: CandidateRequest, budget: Budget) -> Rows:
    """Return the same bound for each root, where trees do not concern each other."""
    counts = RequestCounts(forest, replace(request, order=None), budget)
    roots = len(counts.possible)
    return np.where(counts.possible, _bounds(forest, counts, np.arange(roots), roots), 0)


def _bounds(forest: Forest, counts: RequestCounts, part: Rows, parts: int) -> Rows:
    """Return a bound for each part of the Forest, from the number of the part that each root belongs to."""
    bounds = np.full(parts, GREATEST)
    tests = [
        (each.served, each.amounts, each.copies) for each in counts.parts if not each.is_divided
    ]
    tests += [(counts.serving(name), {name: 1}, units) for name, units in counts.amounts.items()]
    for served, amounts, copies in tests:
        # Where nothing is shared, no provider is in two trees.
        providers = served.providers if counts.are_apart else np.unique(served.providers)
        times = np.full(len(providers), GREATEST)
        for name, amount in amounts.items():
            columns = forest.class_inventories(name)
            free = columns.free.values[columns.indices_of(providers)[1]]
            times = np.minimum(times, free // amount)
        sums = sums_by(part[forest.order.tree[providers]], times, parts)
        # A sum that is cut off bounds nothing.
        bounds = np.minimum(bounds, np.where(sums < GREATEST, sums // copies, GREATEST))
    return bounds


def counts_at_once(
    forest: Forest, request: CandidateRequest, trees: Trees, budget: Budget
) -> tuple[Rows, Trees] | None:
    """Return how many consumers fit into each of some trees, whatever the order in which they come.

    Returns:
        One number for each root, 0 for other trees, and the numbers of the trees in which consumers must
        be placed to find out. None where trees share something, or an amount is split.
    """
    problem = relate_request(forest, replace(request, order=None), budget)
    if problem.plan.split or not all(relation.pairs.is_local for relation in problem.relations):
        return None
    counts = np.zeros(len(forest.order.roots), dtype=np.int64)
    matching = forest.order.tree[matching_anchors(problem, trees)]
    if problem.consumes:
        # Providers that consume of the same inventory are not independent of each other.
        return counts, matching
    if len(problem.plan.slots) == 1 and problem.plan.slots[0].resources:
        numbers = _pairs_of(problem.relations[0], matching)
        providers = problem.relations[0].pairs.provider[numbers]
        times = _once_where_armed(forest, providers, _times(problem, providers[:, None]))
        return sums_by(forest.order.tree[providers], times, len(counts)), matching[:0]
    is_single = np.logical_and.reduce(
        [_options_of(relation)[matching] == 1 for relation in problem.relations]
    )
    numbers_by_slot = [_pairs_of(each, matching[is_single]) for each in problem.relations]
    only = [
        relation.pairs.provider[numbers]
        for relation, numbers in zip(problem.relations, numbers_by_slot, strict=True)
    ]
    chosen = np.stack(only, axis=1)
    times = _times(problem, chosen)
    times[find_first_uses(forest, problem.plan, chosen)] = 1
    counts[matching[is_single]] = times
    return counts, matching[~is_single]


def _times(problem: Problem, chosen: Choices) -> Integers:
    """Return how often candidates fit that use nothing in common."""
    return times_of(problem.forest, class_uses(problem.forest, problem.plan, chosen), len(chosen))


def _options_of(relation: Relation) -> Integers:
    """Return for each root how many providers of a local relation have room; more never will."""
    starts = relation.pairs.starts
    if relation.fits is None:
        return np.diff(starts)
    return np.diff(counts_before(relation.fits)[starts])


def _pairs_of(relation: Relation, trees: Trees) -> Integers:
    """Return the numbers of the pairs with room in some trees of a local relation."""
    starts = relation.pairs.starts
    _, numbers = Window(starts[trees], starts[trees + 1] - starts[trees]).pairs()
    return numbers if relation.fits is None else numbers[relation.fits[numbers]]


def _once_where_armed(forest: Forest, providers: Rows, times: Rows) -> Rows:
    """Return how often providers serve a slot where a first use begins an `on_use` condition.

    Such a condition lets one consumer into its subtree.
    """
    heads = armed_heads(forest)
    if heads is None:
        return times
    armed = np.flatnonzero((heads[providers] != NO_ROW) & (times > 0))
    _, first = np.unique(heads[providers[armed]], return_index=True)
    once = times.copy()
    once[armed] = 0
    once[armed[first]] = 1
    return once
