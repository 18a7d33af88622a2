# SPDX-License-Identifier: Apache-2.0
"""Anchors, the trees in which every slot has some provider, made ready together so that candidates can be combined."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.domain import Domain, domain_of
from treeclaim.forest.feasibility.joint_feasibility import JointFeasibility
from treeclaim.forest.feasibility.narrowing import (
    Heads,
    heads_of,
    narrow_by_values,
    with_enough_values,
)
from treeclaim.forest.solve.partial.blocks import most_rows
from treeclaim.forest.solve.partial.combiner import Combiner
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Trees

FIRST_REACH = 1024
"""Trees that are looked at together at first, to find those in which every slot has a provider."""

FRUITLESS_STRIDE = 8
"""Factor by which a block grows after anchors without a candidate. Small steps would make
the way through a full cloud long."""

LARGEST_BLOCK = 8192
"""Partial candidates that are extended together at most: about what fits a processor's cache."""

SMALLEST_BLOCK = 64
"""Partial candidates that are extended together at least: fewer cost as much."""


class Pace:
    """The pace of a search: little at a time if little is wanted, more if little is found.

    Attributes:
        reach: Trees that are compared together, to find anchors.
        anchors: Anchors that are staged together.
        rows: Partial candidates that are extended together.
    """

    def __init__(self, problem: Problem, count: int | None = None) -> None:
        """Begin with the number that the limit requires, or with another number instead."""
        takes_turns = problem.takes_turns and count is None
        self._largest = most_rows(len(problem.relations), LARGEST_BLOCK)
        most_candidates = problem.wanted if count is None else count
        trees = len(problem.order.roots)
        self.rows = (
            self._largest
            if most_candidates is None
            else min(max(most_candidates, SMALLEST_BLOCK), self._largest)
        )
        self.reach = trees if takes_turns else FIRST_REACH
        self.anchors = trees if takes_turns else self.rows

    def note_stage(self, *, is_fruitless: bool) -> None:
        """Take more the next time, and much more where nothing was found."""
        self.anchors *= FRUITLESS_STRIDE if is_fruitless else 2
        if is_fruitless:
            self.rows = min(self.rows * FRUITLESS_STRIDE, self._largest)


def find_anchors(problem: Problem, pace: Pace, first: int = 0) -> Iterator[Trees]:
    """Yield the anchors (numbers of trees, ascending) range by range, from a tree on.

    A few candidates need not wait for all ranges.
    """
    count = len(problem.order.roots)
    while first < count:
        end = min(first + pace.reach, count)
        yield anchors_among(problem, first, end)
        first = end
        pace.reach *= 2


def all_anchors(problem: Problem) -> Trees:
    """Return all anchors: numbers of trees, ascending, int64."""
    return anchors_among(problem, 0, len(problem.order.roots))


def anchors_among(problem: Problem, first: int, end: int) -> Trees:
    """Return the anchors among a range of trees: their numbers, ascending, int64."""
    reached = np.ones(end - first, dtype=np.bool_)
    if problem.allowed is not None:
        reached &= problem.allowed[first:end]
    for relation in (*problem.relations, *problem.split_relations):
        reached &= relation.reached(first, end)
    return np.flatnonzero(reached) + first


@dataclass(frozen=True, slots=True)
class Stage:
    """Anchors that are ready to be combined.

    Attributes:
        trees: The anchors: numbers of trees, ascending, int64, shape (anchors,).
        live: Anchors that may have candidates: indices into `trees`, ascending, int64.
        combiner: Combines their candidates.
        nbytes: Memory of their domains.
    """

    trees: Trees
    live: Integers
    combiner: Combiner
    nbytes: int


def prepare_stages(problem: Problem, anchors: Iterator[Trees], pace: Pace) -> Iterator[Stage]:
    """Prepare anchors (numbers of trees, ascending), as many at a time as the pace allows."""
    waiting = np.empty(0, dtype=np.int64)
    while True:
        while len(waiting) < pace.anchors and (next_anchors := next(anchors, None)) is not None:
            waiting = np.concatenate([waiting, next_anchors])
        if not len(waiting):
            return
        trees, waiting = waiting[: pace.anchors], waiting[pace.anchors :]
        yield stage_of(problem, trees)


def stage_of(problem: Problem, trees: Trees) -> Stage:
    """Prepare some anchors; the cost grows only with their domains.

    Args:
        problem: The request, related to the Forest.
        trees: The anchors: numbers of trees, ascending, int64, shape (anchors,).
    """
    plan, order, budget = problem.plan, problem.order, problem.budget
    domains = _domains(problem, trees)
    possible = None
    if plan.values:
        values, constraints = problem.rules.values, plan.joint_constraints
        domains = narrow_by_values(domains, plan.values, constraints, values, budget)
        possible = with_enough_values(domains, plan.values, values, len(trees), budget)
    joint_feasibility = JointFeasibility(
        plan.slots,
        domains,
        plan.joint_constraints,
        plan.lists,
        order,
        possible=possible,
        budget=budget,
    )
    budget.check()
    live = joint_feasibility.possible_anchors(len(trees))
    heads: list[Heads] = []
    for members, joint_constraints in zip(plan.lists, plan.subtree_constraints, strict=True):
        budget.check()
        heads_of_list = heads_of(domains, members, joint_constraints, len(trees), order)
        heads.append(heads_of_list)
        live = live[np.diff(heads_of_list.starts)[live] > 0]
    combiner = Combiner(domains, heads, problem.rules, joint_feasibility, budget)
    distinct = {id(domain): domain for domain in domains}.values()
    return Stage(trees, live, combiner, sum(domain.nbytes for domain in distinct))


def _domains(problem: Problem, trees: Trees) -> list[Domain]:
    """Return the domain of each slot under some anchors; equal slots have the same one."""
    joint_classes = {constraint.resource_class for constraint in problem.plan.joint_constraints}
    made: dict[int, Domain] = {}
    domains = []
    for number, (slot, relation) in enumerate(
        zip(problem.plan.slots, problem.relations, strict=True)
    ):
        problem.budget.check()
        if id(relation) not in made:
            names = [name for name in slot.resources if name in joint_classes]
            uses = None
            if number in problem.rules.consuming:
                uses = {
                    name: amount
                    for name, amount in slot.resources.items()
                    if name not in slot.lenient
                }
            made[id(relation)] = domain_of(problem.forest, relation, trees, names, uses)
        domains.append(made[id(relation)])
    return domains
