# SPDX-License-Identifier: Apache-2.0
"""Fills many trees at once with consumers of one request (contract page 98, section 5).

Trees that share nothing are independent. One search finds the first candidate of each tree. A candidate
stays the first of its tree while it fits, so it is taken as often as it fits. The next search is of the trees
that had a candidate, until no tree has one.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import armed_heads
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.question.slots import Slot
from treeclaim.forest.solve.combine import first_of_each
from treeclaim.forest.solve.partial.blocks import CandidateBlock, Choices
from treeclaim.forest.table.columns import NO_ROW, Integers, Rows, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST
from treeclaim.model.request import CandidateRequest

_Part = tuple[Integers, Rows, int]
"""Numbers of candidates, the index of an inventory for each, and the units that each uses."""


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
            yield block.tree, _take(scratch, problem.plan, block)
        trees = np.sort(np.concatenate([trees[:0], *(block.tree for block in blocks)]))


def _take(scratch: Scratch, plan: Plan, found_candidates: CandidateBlock) -> Integers:
    """Take each candidate, all of different trees, as often as it fits; return how often."""
    scratch.copy_used(plan.request.classes)
    forest = scratch.forest
    times = np.full(len(found_candidates.tree), GREATEST)
    sums: dict[int, tuple[Rows, Integers, Integers]] = {}
    for class_id, parts in _uses(forest, plan, found_candidates.chosen).items():
        candidates, indices = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
        amounts = np.repeat([part[2] for part in parts], [len(part[0]) for part in parts])
        distinct, first, which = np.unique(indices, return_index=True, return_inverse=True)
        total = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(total, which, amounts)
        sums[class_id] = distinct, candidates[first], total
        free = forest.classes[class_id].free.values[distinct]
        np.minimum.at(times, candidates[first], free // total)
    heads = armed_heads(forest)
    beginning = np.zeros(0, dtype=np.int64)
    if heads is not None:
        used = found_candidates.chosen[:, [slot for slot, _ in _supplying(plan)]]
        beginning = np.flatnonzero((heads[used] != NO_ROW).any(axis=1))
        times[beginning] = 1
    for class_id, (indices, candidates, total) in sums.items():
        scratch.take_of_class(class_id, indices, total * times[candidates])
    for chosen in found_candidates.chosen[beginning].tolist():
        scratch.begin_conditions(
            (chosen[slot], name, amount)
            for slot, want in _supplying(plan)
            for name, amount in want.resources.items()
        )
    return times


def _supplying(plan: Plan) -> list[tuple[int, Slot]]:
    """Return the numbers of the slots with resources, and the slots."""
    return [(number, slot) for number, slot in enumerate(plan.slots) if slot.resources]


def _uses(forest: Forest, plan: Plan, chosen: Choices) -> dict[int, list[_Part]]:
    """Return what candidates use of each class, with what they consume, by class id."""
    uses: defaultdict[int, list[_Part]] = defaultdict(list)
    every = np.arange(len(chosen))
    for slot, want in _supplying(plan):
        rows = chosen[:, slot]
        for name, amount in want.resources.items():
            columns = forest.class_inventories(name)
            _, indices = columns.indices_of(rows)
            uses[forest.catalogue.resource_classes[name].id].append((every, indices, amount))
            patterns = columns.pattern.values[indices]
            for pattern, is_user in forest.holdings.patterns.among(patterns):
                for use in pattern:
                    consumed = forest.classes[use.class_id]
                    _, indices = consumed.indices_of(rows[is_user] + use.offset)
                    uses[use.class_id].append((every[is_user], indices, amount * use.amount))
    return uses
