# SPDX-License-Identifier: Apache-2.0
"""Fills many trees at once with consumers of one request (contract page 98, section 5).

Trees that share nothing are independent. One search finds the first candidate of each tree. A candidate
stays the first of its tree while it fits, so it is taken as often as it fits. The next search is of the trees
that had a candidate, until no tree has one.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import armed_heads
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.question.slots import Slot
from treeclaim.forest.solve.combine import first_of_each
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import NO_ROW, Integers, Mask, Rows, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST
from treeclaim.model.request import CandidateRequest

ClassUses = dict[int, tuple[Rows, Integers, Integers]]
"""By class id: indices of inventories, the number of the candidate that uses each, and the units that it uses."""


def fill_trees(
    scratch: Scratch, request: CandidateRequest, trees: Trees, budget: Budget
) -> Iterator[tuple[Trees, Integers]]:
    """Place consumers in some trees until nothing fits.

    Args:
        scratch: Where; no query may be in use there.
        request: A request that splits nothing, without an order, for which trees are independent.
        trees: Numbers of trees, ascending.
        budget: What it may cost.

    Yields:
        Trees, and how many more consumers were placed in each.
    """
    while len(trees):
        budget.check()
        with budget.scope():
            problem = relate_request(scratch.forest, request, budget)
            blocks = list(first_of_each(problem, trees))
        for block in blocks:
            yield block.tree, _take(scratch, problem.plan, block.chosen)
        trees = np.sort(np.concatenate([trees[:0], *(block.tree for block in blocks)]))


def _take(scratch: Scratch, plan: Plan, chosen: Choices) -> Integers:
    """Take each candidate, all of different trees, as often as it fits; return how often."""
    scratch.copy_used(plan.request.classes)
    uses = class_uses(scratch.forest, plan, chosen)
    beginning = find_first_uses(scratch.forest, plan, chosen)
    times = times_of(scratch.forest, uses, len(chosen))
    times[beginning] = 1
    for class_id, (indices, candidates, units) in uses.items():
        scratch.take_of_class(class_id, indices, units * times[candidates])
    for candidate in chosen[beginning].tolist():
        scratch.begin_conditions(
            (candidate[slot], name, amount)
            for slot, want in _supplying(plan)
            for name, amount in want.resources.items()
        )
    return times


def times_of(forest: Forest, uses: ClassUses, count: int) -> Integers:
    """Return how often each of some candidates fits, int64, shape (count,)."""
    times = np.full(count, GREATEST)
    for class_id, (indices, candidates, units) in uses.items():
        free = np.maximum(forest.classes[class_id].free.values[indices], 0)
        np.minimum.at(times, candidates, free // units)
    return times


def find_first_uses(forest: Forest, plan: Plan, chosen: Choices) -> Mask:
    """Return which candidates begin an `on_use` condition, which lets no other consumer in."""
    heads = armed_heads(forest)
    if heads is None:
        return np.zeros(len(chosen), dtype=np.bool_)
    used = chosen[:, [slot for slot, _ in _supplying(plan)]]
    beginning: Mask = (heads[used] != NO_ROW).any(axis=1)
    return beginning


def _supplying(plan: Plan) -> list[tuple[int, Slot]]:
    """Return the numbers of the slots with resources, and the slots."""
    return [(number, slot) for number, slot in enumerate(plan.slots) if slot.resources]


def class_uses(forest: Forest, plan: Plan, chosen: Choices) -> ClassUses:
    """Return what candidates use, with what they consume; no two may use an inventory in common."""
    if not len(chosen):
        return {}
    parts: defaultdict[int, list[tuple[Rows, Integers, int]]] = defaultdict(list)
    every = np.arange(len(chosen))
    for slot, want in _supplying(plan):
        rows = chosen[:, slot]
        for name, amount in want.resources.items():
            columns = forest.class_inventories(name)
            _, indices = columns.indices_of(rows)
            parts[forest.catalogue.resource_classes[name].id].append((indices, every, amount))
            patterns = columns.pattern.values[indices]
            for pattern, is_user in forest.holdings.patterns.among(patterns):
                for use in pattern:
                    consumed = forest.classes[use.class_id]
                    _, indices = consumed.indices_of(rows[is_user] + use.offset)
                    parts[use.class_id].append((indices, every[is_user], amount * use.amount))
    return {class_id: _add_up(of_class) for class_id, of_class in parts.items()}


def _add_up(parts: Sequence[tuple[Rows, Integers, int]]) -> tuple[Rows, Integers, Integers]:
    """Join the parts of a class, each inventory once."""
    indices, candidates = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    amounts = np.repeat([part[2] for part in parts], [len(part[0]) for part in parts])
    if len(parts) == 1:
        return indices, candidates, amounts
    distinct, first, which = np.unique(indices, return_index=True, return_inverse=True)
    units = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(units, which, amounts)
    return distinct, candidates[first], units
