# SPDX-License-Identifier: Apache-2.0
"""Counts of the consumers of one request in many trees at once (contract page 98, section 5).

In trees that share nothing, these counts are independent of each other. `counts_at_once` computes a count from the
options of one consumer, where any order of consumers gives the same count. `fill_trees` places consumers: one search
finds the first candidate of each tree. `bounds_by_tree` are upper bounds.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import armed_heads
from treeclaim.forest.domains.pairs import Window
from treeclaim.forest.domains.relation import Relation, counts_before
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.order.mixes.tree_counter import Take, TreeCounter, with_consumed
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.question.slots import Slot
from treeclaim.forest.solve.combine import matching_anchors
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import GREATEST, NO_ROW, Integers, Mask, Rows, Trees, sums_by
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest

ClassUses = dict[int, tuple[Rows, Integers, Integers]]
"""By class id: indices of inventories, the number of the candidate that uses each, and the units that it uses."""


def bounds_by_tree(
    forest: Forest, request: CandidateRequest, budget: Budget, *, are_joined: bool = False
) -> Rows:
    """Return upper bounds of the consumers that fit into each tree: the counts of page 101.

    Trees must share nothing; else `are_joined` must be true, and the only bound is that of the cloud as one tree.
    """
    counts = RequestCounts(forest, replace(request, order=None), budget)
    bounds: Rows = TreeCounter(forest, [counts], are_joined=are_joined).in_trees(forest)[:, 0]
    return bounds


def counts_at_once(problem: Problem, trees: Trees) -> tuple[Rows, Trees]:
    """Return how many consumers fit into each of some trees, whatever the order in which they come.

    Args:
        problem: A request for which trees do not affect each other.
        trees: Numbers of trees, ascending.

    Returns:
        One number for each root, 0 for other trees, and the numbers of the trees in which consumers must
        be placed to find out.
    """
    forest = problem.forest
    counts = np.zeros(len(forest.order.roots), dtype=np.int64)
    matching = forest.order.tree[matching_anchors(problem, trees)]
    if problem.consumes:
        # Providers that consume of the same inventory are not independent of each other.
        return counts, matching
    if len(problem.plan.slots) == 1 and armed_heads(forest) is None:
        numbers = _pairs_of(problem.relations[0], matching)
        providers = problem.relations[0].pairs.provider[numbers]
        times = _times(problem, providers[:, None])
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
    times[_find_first_uses(forest, problem.plan, chosen)] = 1
    counts[matching[is_single]] = times
    return counts, matching[~is_single]


def _times(problem: Problem, chosen: Choices) -> Integers:
    """Return how often candidates fit that use nothing in common."""
    uses = _class_uses(problem.forest, problem.plan, chosen)
    return _times_of(problem.forest, uses, len(chosen))


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


def fill_trees(query: Query, trees: Trees) -> Iterator[tuple[Trees, Integers]]:
    """Place consumers in some trees until nothing fits.

    Args:
        query: A query for which trees do not affect each other. Its candidate of a tree stays the first while it
            fits, unless an order makes scores of what is used.
        trees: Numbers of trees, ascending.

    Yields:
        Trees, and the number of consumers newly placed in each.
    """
    is_ordered = query.request.order is not None
    while len(trees):
        query.budget.check()
        with query.budget.scope():
            trees, chosen = query.search_each(trees)
        yield trees, _take(query.scratch, query.plan, chosen, is_once=is_ordered)


def _take(scratch: Scratch, plan: Plan, chosen: Choices, *, is_once: bool) -> Integers:
    """Take each candidate, all of different trees, once or as often as it fits; return how often."""
    uses = _class_uses(scratch.forest, plan, chosen)
    beginning = _find_first_uses(scratch.forest, plan, chosen)
    times = _times_of(scratch.forest, uses, len(chosen))
    times[beginning | is_once] = 1
    for class_id, (indices, candidates, units) in uses.items():
        scratch.take_of_class(class_id, indices, units * times[candidates])
    for candidate in chosen[beginning].tolist():
        scratch.begin_conditions(
            (candidate[slot], name, amount)
            for slot, want in _supplying(plan)
            for name, amount in want.resources.items()
        )
    return times


def _times_of(forest: Forest, uses: ClassUses, count: int) -> Integers:
    """Return how often each of some candidates fits, int64, shape (count,)."""
    times = np.full(count, GREATEST)
    for class_id, (indices, candidates, units) in uses.items():
        free = np.maximum(forest.classes[class_id].free.values[indices], 0)
        np.minimum.at(times, candidates, free // units)
    return times


def _find_first_uses(forest: Forest, plan: Plan, chosen: Choices) -> Mask:
    """Return which candidates begin an `on_use` condition, which admits no other consumer."""
    heads = armed_heads(forest)
    if heads is None:
        return np.zeros(len(chosen), dtype=np.bool_)
    used = chosen[:, [slot for slot, _ in _supplying(plan)]]
    beginning: Mask = (heads[used] != NO_ROW).any(axis=1)
    return beginning


def _supplying(plan: Plan) -> list[tuple[int, Slot]]:
    """Return the numbers of the slots with resources, and the slots."""
    return [(number, slot) for number, slot in enumerate(plan.slots) if slot.resources]


def _class_uses(forest: Forest, plan: Plan, chosen: Choices) -> ClassUses:
    """Return what candidates use, with what they consume; no two may use an inventory in common."""
    if not len(chosen):
        return {}
    takes = [
        Take(name, chosen[:, slot], amount)
        for slot, want in _supplying(plan)
        for name, amount in want.resources.items()
    ]
    parts: defaultdict[int, list[tuple[Rows, Integers, Integers]]] = defaultdict(list)
    for take in with_consumed(forest, takes):
        amounts = np.broadcast_to(take.amount, len(chosen))
        users = np.flatnonzero(amounts)
        _, indices = forest.class_inventories(take.name).indices_of(take.position[users])
        class_id = forest.catalogue.resource_classes[take.name].id
        parts[class_id].append((indices, users, amounts[users]))
    return {class_id: _add_up(of_class) for class_id, of_class in parts.items()}


def _add_up(parts: Sequence[tuple[Rows, Integers, Integers]]) -> tuple[Rows, Integers, Integers]:
    """Join the parts of a class, each inventory once."""
    indices, candidates, amounts = map(np.concatenate, zip(*parts, strict=True))
    if len(parts) == 1:
        return indices, candidates, amounts
    distinct, first, which = np.unique(indices, return_index=True, return_inverse=True)
    units = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(units, which, amounts)
    return distinct, candidates[first], units
