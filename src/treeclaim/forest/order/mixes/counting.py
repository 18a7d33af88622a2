# SPDX-License-Identifier: Apache-2.0
"""Splits a request into parts that do not compete, whose counts need no test of sums.

A part is one slot, or several that want the same from different providers. The count of the request
(contract page 101, definitions) is then the least count of its parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.pairs import Pairs
from treeclaim.forest.domains.relation import have_common_provider
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.table.forest import Forest
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


def related(forest: Forest, request: CandidateRequest, budget: Budget) -> Problem:
    """Relate a request to a Forest for all of its candidates, whatever its limit."""
    return relate(forest, replace(request, limit=None), SearchOptions(), budget)
