# SPDX-License-Identifier: Apache-2.0
"""Finds anchors, the trees with a provider for every slot, and prepares them in stages for the combiner."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.domain import Domain, build_domain
from treeclaim.forest.feasibility.joint_feasibility import JointFeasibility
from treeclaim.forest.feasibility.narrowing import (
    Heads,
    find_anchors_with_values,
    find_heads,
    narrow_by_values,
)
from treeclaim.forest.solve.partial.blocks import most_rows
from treeclaim.forest.solve.partial.combiner import Combiner
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Trees

FIRST_REACH = 1024
"""Trees examined together in the first step of the search for anchors."""

FRUITLESS_STRIDE = 8
"""Factor by which blocks grow after anchors without a candidate. A search of a full cloud in small steps is slow."""

LARGEST_BLOCK = 8192
"""Most partial candidates to extend together: about the size of a processor's cache."""

SMALLEST_BLOCK = 64
"""Least partial candidates to extend together: fewer cost the same."""


class Pace:
    """Block sizes of a search: small if few candidates are wanted, larger after stages without candidates.

    Attributes:
        reach: Trees to examine together for anchors.
        anchors: Anchors in a stage.
        rows: Partial candidates to extend together.
    """

    def __init__(self, problem: Problem, count: int | None = None) -> None:
        """Begin with the sizes for the limit of the problem, or for `count` candidates."""
        takes_turns = problem.takes_turns and count is None
        self._largest = most_rows(len(problem.relations), LARGEST_BLOCK)
        most_candidates = problem.wanted_count if count is None else count
        trees = len(problem.order.roots)
        self.rows = (
            self._largest
            if most_candidates is None
            else min(max(most_candidates, SMALLEST_BLOCK), self._largest)
        )
        self.reach = trees if takes_turns else FIRST_REACH
        self.anchors = trees if takes_turns else self.rows

    def note_stage(self, *, is_fruitless: bool) -> None:
        """Enlarge the next stage, and more so after a stage without candidates."""
        self.anchors *= FRUITLESS_STRIDE if is_fruitless else 2
        if is_fruitless:
            self.rows = min(self.rows * FRUITLESS_STRIDE, self._largest)


def find_anchors(problem: Problem, pace: Pace, first: int = 0) -> Iterator[Trees]:
    """Yield the anchors (numbers of trees, ascending) lazily in growing ranges, from a tree on."""
    count = len(problem.order.roots)
    while first < count:
        end = min(first + pace.reach, count)
        yield find_anchors_between(problem, first, end)
        first = end
        pace.reach *= 2


def find_all_anchors(problem: Problem) -> Trees:
    """Return all anchors: numbers of trees, ascending, int64."""
    return find_anchors_between(problem, 0, len(problem.order.roots))


def find_anchors_between(problem: Problem, first: int, end: int) -> Trees:
    """Return the anchors among a range of trees: their numbers, ascending, int64."""
    reached = np.ones(end - first, dtype=np.bool_)
    if problem.allowed is not None:
        reached &= problem.allowed[first:end]
    for relation in (*problem.relations, *problem.split_relations):
        reached &= relation.reached(first, end)
    return np.flatnonzero(reached) + first


@dataclass(frozen=True, slots=True)
class Stage:
    """Anchors that are prepared for the combiner.

    Attributes:
        trees: Numbers of the anchors' trees, ascending, int64, shape (anchors,).
        live: Indices in `trees` of the anchors that may have candidates, ascending, int64.
        nbytes: Memory of the domains.
    """

    trees: Trees
    live: Integers
    combiner: Combiner
    nbytes: int


def prepare_stages(problem: Problem, anchors: Iterator[Trees], pace: Pace) -> Iterator[Stage]:
    """Prepare anchors (numbers of trees, ascending) in stages of the pace's size."""
    waiting = np.empty(0, dtype=np.int64)
    while True:
        while len(waiting) < pace.anchors and (next_anchors := next(anchors, None)) is not None:
            waiting = np.concatenate([waiting, next_anchors])
        if not len(waiting):
            return
        trees, waiting = waiting[: pace.anchors], waiting[pace.anchors :]
        yield prepare_stage(problem, trees)


def prepare_stage(problem: Problem, trees: Trees) -> Stage:
    """Prepare anchors (numbers of trees, ascending, int64); the cost grows only with their domains."""
    plan, order, budget = problem.plan, problem.order, problem.budget
    domains = _make_domains(problem, trees)
    possible = None
    if plan.values:
        values, constraints = problem.rules.values, plan.joint_constraints
        domains = narrow_by_values(domains, plan.values, constraints, values, budget)
        possible = find_anchors_with_values(domains, plan.values, values, len(trees), budget)
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
        heads_of_list = find_heads(domains, members, joint_constraints, len(trees), order)
        heads.append(heads_of_list)
        live = live[np.diff(heads_of_list.starts)[live] > 0]
    combiner = Combiner(domains, heads, problem.rules, joint_feasibility, budget)
    distinct = {id(domain): domain for domain in domains}.values()
    return Stage(trees, live, combiner, sum(domain.nbytes for domain in distinct))


def _make_domains(problem: Problem, trees: Trees) -> list[Domain]:
    """Return the domain of each slot under some anchors; equal slots share one."""
    joint_classes = {constraint.resource_class for constraint in problem.plan.joint_constraints}
    domains_by_relation: dict[int, Domain] = {}
    domains = []
    for number, (slot, relation) in enumerate(
        zip(problem.plan.slots, problem.relations, strict=True)
    ):
        problem.budget.check()
        if id(relation) not in domains_by_relation:
            names = [name for name in slot.resources if name in joint_classes]
            uses = slot.counted if number in problem.rules.consuming else None
            domains_by_relation[id(relation)] = build_domain(
                problem.forest, relation, trees, names, uses
            )
        domains.append(domains_by_relation[id(relation)])
    return domains
