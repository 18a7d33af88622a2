# SPDX-License-Identifier: Apache-2.0
"""Counts consumers in a tree by placing them, if nothing else shows how many fit.

Trees that are alike to a request are looked at once, as long as the number is remembered: all that
it depends on is what it is remembered by.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Taken, times_together, with_consumed
from treeclaim.forest.order.alike import alone, likenesses
from treeclaim.forest.order.terms.counted import sharing_by_position
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import distinct_blocks
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.split.splitting import splits
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import shown
from treeclaim.model.request import CandidateRequest, SearchOptions


class Given(NamedTuple):
    """What a provider gives.

    Attributes:
        position: The provider.
        name: The name of the class.
        amount: Units.
    """

    position: int
    name: str
    amount: int


@dataclass(frozen=True, slots=True)
class _Number:
    """How many consumers fit, in a cache."""

    value: int

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return 64


def related(forest: Forest, request: CandidateRequest, budget: Budget) -> Problem:
    """Relate a request of a mix to a Forest."""
    return relate(forest, replace(request, limit=None), SearchOptions(), budget)


def counted_by_placing(
    forest: Forest, request: CandidateRequest, tree: int, taken: Sequence[Given], budget: Budget
) -> int:
    """Return how many consumers of only one request fit into a tree, as `capacity` counts a domain.

    Args:
        forest: Where to count; sharing providers lend as they do.
        request: What the consumers want; its names exist.
        tree: Number of the tree.
        taken: What is taken before, and what is consumed by that.
        budget: What it may cost.
    """
    problem = related(forest, request, budget)
    relations = (*problem.relations, *problem.split_relations)
    if not all(relation.pairs.is_local for relation in relations):
        return _placed(_with_taken(forest, taken), request, tree, budget)
    first = int(forest.order.roots[tree])
    inside = [
        gift._replace(position=gift.position - first)
        for gift in taken
        if int(forest.order.tree[gift.position]) == tree
    ]
    small = _with_taken(alone(forest, np.array([tree])), inside)
    if problem.plan.split:
        return _placed(small, request, 0, budget)
    anchors = np.zeros(1, dtype=np.int64)
    (likeness,) = likenesses(related(small, request, budget), anchors)
    key = ("fits in a tree", request, likeness)
    return forest.counts.get(key, lambda: _Number(_placed(small, request, 0, budget))).value


def _with_taken(forest: Forest, taken: Sequence[Given]) -> Forest:
    """Return a Forest of which what is used may be written, where something is taken."""
    forest.prepare()
    other = copy.copy(forest)
    other.classes = {number: columns.changeable() for number, columns in forest.classes.items()}
    _use(other, taken, 1)
    return other


def _use(forest: Forest, used: Iterable[Taken], times: int) -> None:
    for position, name, amount in used:
        columns = forest.class_inventories(name)
        columns.use(columns.index_of(int(forest.order.row[position])), times * amount)


def _placed(forest: Forest, request: CandidateRequest, tree: int, budget: Budget) -> int:
    """Place consumers in a tree until nothing fits; the Forest's columns are changed."""
    sharing = sharing_by_position(forest)
    count = 0
    while True:
        budget.check()
        with budget.scope():
            gifts = _first(related(forest, request, budget), tree, sharing)
        if gifts is None:
            return count
        times = 1 if request.can_split else _times(forest, gifts)
        _use(forest, with_consumed(forest, gifts), times)
        if count + times != shown(count + times):
            return shown(count + times)
        count += times


def _times(forest: Forest, gifts: Sequence[Given]) -> int:
    """Return how often a candidate fits before another one comes first."""
    return times_together(forest, gifts)


def _first(problem: Problem, tree: int, sharing: Mask) -> list[Given] | None:
    """Return what the first candidate takes that has a tree among its trees."""
    order = problem.forest.order

    def is_of_tree(gifts: Sequence[Given]) -> bool:
        positions = [gift.position for gift in gifts if not sharing[gift.position]]
        return tree in order.tree[positions or [gift.position for gift in gifts]]

    if problem.plan.split:
        for candidate in splits(problem):
            problem.budget.check()
            gifts = _gifts(problem, candidate.chosen)
            gifts += [Given(position, name, amount) for name, position, amount in candidate.parts]
            if is_of_tree(gifts):
                return gifts
        return None
    anchors = None
    if not problem.may_leave_anchors:
        anchors = all_anchors(problem)
        anchors = anchors[anchors == tree]
    for block in distinct_blocks(problem, anchors):
        for chosen in block.chosen.tolist():
            problem.budget.check()
            gifts = _gifts(problem, chosen)
            if is_of_tree(gifts):
                return gifts
    return None


def _gifts(problem: Problem, chosen: Sequence[int]) -> list[Given]:
    return [
        Given(position, name, amount)
        for want, position in zip(problem.plan.slots, chosen, strict=True)
        for name, amount in want.resources.items()
    ]
