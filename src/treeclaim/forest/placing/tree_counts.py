# SPDX-License-Identifier: Apache-2.0
"""Counts of the consumers of one request in many independent trees at once (contract page 98, section 5)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import armed_heads
from treeclaim.forest.domains.pairs import Window
from treeclaim.forest.domains.relation import Relation, counts_before
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.order.mixes.tree_counter import TakenAmounts, TreeCounter, add_consumption
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.question.slots import Slot
from treeclaim.forest.solve.combine import find_matching_anchors
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import (
    GREATEST,
    NO_ROW,
    Integers,
    Mask,
    Rows,
    Trees,
    sum_by_part,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest

ClassUses = dict[int, tuple[Rows, Integers, Integers]]
"""By class id: indices of inventories, the number of the candidate that uses each of them, and its units."""


def bound_by_tree(
    forest: Forest, request: CandidateRequest, budget: Budget, *, are_joined: bool = False
) -> Rows:
    """Return upper bounds of the consumers that fit into each tree: the counts of page 101.

    If trees depend on each other, `are_joined` must be true. The only bound is then the count of the whole cloud.
    """
    counts = RequestCounts(forest, replace(request, order=None), budget)
    counter = TreeCounter(forest, [counts], are_joined=are_joined)
    bounds: Rows = counter.count_in_trees(forest)[:, 0]
    return bounds


def count_at_once(problem: Problem, trees: Trees) -> tuple[Rows, Trees]:
    """Count the consumers that fit into trees where any order of consumers gives the same count.

    Args:
        problem: A request for which trees are independent.
        trees: Numbers of trees, ascending.

    Returns:
        A count for each root, 0 outside `trees`; and the numbers of the trees that must be counted by placing.
    """
    forest = problem.forest
    counts = np.zeros(len(forest.order.roots), dtype=np.int64)
    matching = forest.order.tree[find_matching_anchors(problem, trees)]
    if problem.consumes:
        # Providers that consume from the same inventory depend on each other.
        return counts, matching
    if len(problem.plan.slots) == 1 and armed_heads(forest) is None:
        numbers = _find_pairs(problem.relations[0], matching)
        providers = problem.relations[0].pairs.provider[numbers]
        uses = _sum_uses(forest, problem.plan, providers[:, None])
        times = _count_times(forest, uses, len(providers))
        return sum_by_part(forest.order.tree[providers], times, len(counts)), matching[:0]
    is_single = np.logical_and.reduce(
        [_count_options(relation)[matching] == 1 for relation in problem.relations]
    )
    numbers_by_slot = [_find_pairs(each, matching[is_single]) for each in problem.relations]
    only = [
        relation.pairs.provider[numbers]
        for relation, numbers in zip(problem.relations, numbers_by_slot, strict=True)
    ]
    chosen_rows = np.stack(only, axis=1)
    times = _count_times(forest, _sum_uses(forest, problem.plan, chosen_rows), len(chosen_rows))
    times[_find_first_uses(forest, problem.plan, chosen_rows)] = 1
    counts[matching[is_single]] = times
    return counts, matching[~is_single]


def _count_options(relation: Relation) -> Integers:
    """Return for each root the number of providers of a local relation that have room."""
    starts = relation.pairs.starts
    if relation.fits is None:
        return np.diff(starts)
    return np.diff(counts_before(relation.fits)[starts])


def _find_pairs(relation: Relation, trees: Trees) -> Integers:
    """Return the numbers of the pairs with room in some trees of a local relation."""
    starts = relation.pairs.starts
    _, numbers = Window(starts[trees], starts[trees + 1] - starts[trees]).pairs()
    return numbers if relation.fits is None else numbers[relation.fits[numbers]]


def fill_trees(query: Query, trees: Trees) -> Iterator[tuple[Trees, Integers]]:
    """Place consumers in independent trees (ascending numbers) until nothing fits.

    Without an order, the first candidate of a tree stays the first while it fits.

    Yields:
        Trees, and the number of consumers newly placed in each.
    """
    is_ordered = query.request.order is not None
    while len(trees):
        query.budget.check()
        with query.budget.scope():
            trees, chosen_rows = query.find_first_of_each(trees)
        yield trees, _take(query.scratch, query.plan, chosen_rows, is_once=is_ordered)


def _take(scratch: ScratchForest, plan: Plan, chosen_rows: Choices, *, is_once: bool) -> Integers:
    """Take candidates of different trees, once or as often as each fits; return the number of times."""
    uses = _sum_uses(scratch.forest, plan, chosen_rows)
    is_first_use = _find_first_uses(scratch.forest, plan, chosen_rows)
    times = _count_times(scratch.forest, uses, len(chosen_rows))
    times[is_first_use | is_once] = 1
    for class_id, (indices, candidates, units) in uses.items():
        scratch.take_of_class(class_id, indices, units * times[candidates])
    for candidate in chosen_rows[is_first_use].tolist():
        scratch.begin_conditions(
            (candidate[number], name, amount)
            for number, slot in _find_giving_slots(plan)
            for name, amount in slot.resources.items()
        )
    return times


def _count_times(forest: Forest, uses: ClassUses, count: int) -> Integers:
    """Return how often each of `count` candidates fits, int64; candidates must not share an inventory."""
    times = np.full(count, GREATEST)
    for class_id, (indices, candidates, units) in uses.items():
        free_units = np.maximum(forest.classes[class_id].free.values[indices], 0)
        np.minimum.at(times, candidates, free_units // units)
    return times


def _find_first_uses(forest: Forest, plan: Plan, chosen_rows: Choices) -> Mask:
    """Return a mask of the candidates that begin an `on_use` condition and so admit no further consumer."""
    heads = armed_heads(forest)
    if heads is None:
        return np.zeros(len(chosen_rows), dtype=np.bool_)
    used_rows = chosen_rows[:, [number for number, _ in _find_giving_slots(plan)]]
    is_first_use: Mask = (heads[used_rows] != NO_ROW).any(axis=1)
    return is_first_use


def _find_giving_slots(plan: Plan) -> list[tuple[int, Slot]]:
    return [(number, slot) for number, slot in enumerate(plan.slots) if slot.resources]


def _sum_uses(forest: Forest, plan: Plan, chosen_rows: Choices) -> ClassUses:
    """Return the amounts that candidates use and consume; candidates must not share an inventory."""
    if not len(chosen_rows):
        return {}
    takes = [
        TakenAmounts(name, chosen_rows[:, number], amount)
        for number, slot in _find_giving_slots(plan)
        for name, amount in slot.resources.items()
    ]
    uses: defaultdict[int, list[tuple[Rows, Integers, Integers]]] = defaultdict(list)
    for take in add_consumption(forest, takes):
        amounts = np.broadcast_to(take.amount, len(chosen_rows))
        users = np.flatnonzero(amounts)
        _, indices = forest.class_inventories(take.name).indices_of(take.rows[users])
        class_id = forest.catalogue.resource_classes[take.name].id
        uses[class_id].append((indices, users, amounts[users]))
    return {class_id: _merge_uses(class_uses) for class_id, class_uses in uses.items()}


def _merge_uses(
    uses: Sequence[tuple[Rows, Integers, Integers]],
) -> tuple[Rows, Integers, Integers]:
    """Concatenate the uses of a class, and add up those of the same inventory."""
    indices, candidates, amounts = map(np.concatenate, zip(*uses, strict=True))
    if len(uses) == 1:
        return indices, candidates, amounts
    distinct, first, inverse = np.unique(indices, return_index=True, return_inverse=True)
    units = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(units, inverse, amounts)
    return distinct, candidates[first], units
