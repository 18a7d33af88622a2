# SPDX-License-Identifier: Apache-2.0
"""Anchors made ready together, so that their candidates can be combined."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.domain import Domain, domain_of
from treeclaim.forest.feasibility.compared import narrow_by_values, with_enough_values
from treeclaim.forest.feasibility.joint_feasibility import JointFeasibility
from treeclaim.forest.feasibility.subtrees import Heads, heads_of
from treeclaim.forest.solve.anchors import Pace
from treeclaim.forest.solve.partial.combiner import Combiner
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Trees


@dataclass(frozen=True, slots=True)
class Stage:
    """Anchors made ready.

    Attributes:
        trees: The anchors: numbers of trees, ascending, int64, shape (anchors,).
        live: Which of them may have candidates: indices into `trees`, ascending, int64.
        combiner: Combines their candidates.
        nbytes: Memory that their domains take.
    """

    trees: Trees
    live: Integers
    combiner: Combiner
    nbytes: int


def prepare_stages(problem: Problem, anchors: Iterator[Trees], pace: Pace) -> Iterator[Stage]:
    """Make anchors (numbers of trees, ascending) ready, as many at a time as the pace says."""
    waiting = np.empty(0, dtype=np.int64)
    while True:
        while len(waiting) < pace.anchors and (next_anchors := next(anchors, None)) is not None:
            waiting = np.concatenate([waiting, next_anchors])
        if not len(waiting):
            return
        trees, waiting = waiting[: pace.anchors], waiting[pace.anchors :]
        yield stage_of(problem, trees)


def stage_of(problem: Problem, trees: Trees) -> Stage:
    """Make some anchors ready; the cost grows only with their domains.

    Args:
        problem: What is asked.
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
