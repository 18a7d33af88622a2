# SPDX-License-Identifier: Apache-2.0
"""How consumers of a request are counted in a tree: part by part, or by placing them.

Slots may fall into parts that do not compete: a part is one slot, or several that want the same from
different providers. So many consumers fit as the part allows that allows fewest. One slot is served as often
as all its providers together serve it. Of several, the first providers with room are taken, again and again,
as placing does.

Where nothing else tells how many fit, they are placed. Trees that are alike to a request are looked at once,
as long as the number is remembered: all that it depends on is what it is remembered by.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Taken, times_together, with_consumed
from treeclaim.forest.domains.pairs import Pairs
from treeclaim.forest.domains.relation import have_common_provider
from treeclaim.forest.order.candidate_table import sharing_by_position
from treeclaim.forest.order.trees import alone, likenesses
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import distinct_blocks
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.split.splitting import splits
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import shown
from treeclaim.model.request import CandidateRequest, SearchOptions


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Slots that compete with no others.

    Attributes:
        slots: One slot, or several that want the same of different providers.
        amounts: What each wants, by class; may be empty.
        pairs: Who may serve each.
    """

    slots: tuple[int, ...]
    amounts: Mapping[str, int]
    pairs: Pairs


def parts_of(problem: Problem) -> list[Part] | None:
    """Return the parts of a request; None if it is not of this kind."""
    plan = problem.plan
    relations = problem.relations
    is_bound = plan.split or plan.lists or plan.required or plan.values or problem.consumes
    is_simple = not is_bound and plan.request.nested
    if not is_simple or not all(relation.pairs.is_local for relation in relations):
        return None
    parts: list[Part] = []
    left = list(range(len(plan.slots)))
    while left:
        first = left.pop(0)
        mine = relations[first].pairs
        rivals = [
            slot
            for slot in left
            if _may_compete(problem, first, slot)
            and have_common_provider(problem.forest, mine, relations[slot].pairs)
        ]
        are_alike = all(
            relations[slot].pairs is mine
            and plan.slots[slot].resources == plan.slots[first].resources
            and _are_apart(problem, first, slot)
            for slot in rivals
        )
        if not are_alike or (rivals and not plan.slots[first].resources):
            return None
        left = [slot for slot in left if slot not in rivals]
        parts.append(Part((first, *rivals), plan.slots[first].resources, mine))
    # Whoever competes with one of a part's slots must be in the part.
    for number, part in enumerate(parts):
        for other in parts[number + 1 :]:
            if any(
                _may_compete(problem, slot, rival) for slot in part.slots for rival in other.slots
            ) and have_common_provider(problem.forest, part.pairs, other.pairs):
                return None
    return parts


def _are_apart(problem: Problem, first: int, other: int) -> bool:
    isolated = problem.plan.request.isolated
    slots = problem.plan.slots
    return slots[first].suffix in isolated and slots[other].suffix in isolated


def _may_compete(problem: Problem, first: int, other: int) -> bool:
    slots = problem.plan.slots
    shared = slots[first].resources.keys() & slots[other].resources.keys()
    return bool(shared) or _are_apart(problem, first, other)


class Given(NamedTuple):
    """What a provider gives.

    Attributes:
        position: The provider.
        name: Of the class.
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
    """Relate a request to a Forest for all of its candidates, whatever its limit."""
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
        allocation._replace(position=allocation.position - first)
        for allocation in taken
        if int(forest.order.tree[allocation.position]) == tree
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
            allocations = _first(related(forest, request, budget), tree, sharing)
        if allocations is None:
            return count
        times = 1 if request.can_split else _times(forest, allocations)
        _use(forest, with_consumed(forest, allocations), times)
        if count + times != shown(count + times):
            return shown(count + times)
        count += times


def _times(forest: Forest, allocations: Sequence[Given]) -> int:
    """Return how often a candidate fits before another one comes first."""
    return times_together(forest, allocations)


def _first(problem: Problem, tree: int, sharing: Mask) -> list[Given] | None:
    """Return what the first candidate takes that has a tree among its trees."""
    order = problem.forest.order

    def is_of_tree(allocations: Sequence[Given]) -> bool:
        positions = [
            allocation.position for allocation in allocations if not sharing[allocation.position]
        ]
        return tree in order.tree[positions or [allocation.position for allocation in allocations]]

    if problem.plan.split:
        for candidate in splits(problem):
            problem.budget.check()
            allocations = _allocations(problem, candidate.chosen)
            allocations += [
                Given(position, name, amount) for name, position, amount in candidate.parts
            ]
            if is_of_tree(allocations):
                return allocations
        return None
    anchors = None
    if not problem.may_leave_anchors:
        anchors = all_anchors(problem)
        anchors = anchors[anchors == tree]
    for block in distinct_blocks(problem, anchors):
        for chosen in block.chosen.tolist():
            problem.budget.check()
            allocations = _allocations(problem, chosen)
            if is_of_tree(allocations):
                return allocations
    return None


def _allocations(problem: Problem, chosen: Sequence[int]) -> list[Given]:
    return [
        Given(position, name, amount)
        for want, position in zip(problem.plan.slots, chosen, strict=True)
        for name, amount in want.resources.items()
    ]
