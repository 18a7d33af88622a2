# SPDX-License-Identifier: Apache-2.0
"""Whether a tree or a provider has any candidate, without drawing all of them."""

from collections.abc import Iterator
from dataclasses import replace

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.question.steps import steps_of
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.partial.blocks import Block, Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import Stage, stage_of
from treeclaim.forest.table.columns import Mask, Positions


def matching_anchors(problem: Problem) -> Positions:
    """Return the anchors that have some candidate: positions of roots, ascending, int64."""
    anchors = all_anchors(problem)
    if len(anchors) and problem.plan.slots:
        stage = stage_of(problem, anchors)
        with problem.budget.held(stage.nbytes):
            anchors = anchors[stage.combiner.matching(stage.live, _few_rows(stage))]
    return problem.forest.order.roots[anchors]


def witnesses(problem: Problem, slot: int, relation: Relation, known: Mask) -> Iterator[Choices]:
    """Yield candidates in which the providers of a slot are some that are not known yet.

    Args:
        problem: What is asked.
        slot: The slot.
        relation: Its providers, instead of those of the problem.
        known: Whose candidates are not asked for, shape (positions,). The caller may add to them
            whoever is in a candidate that it was given.
    """
    relations = (*problem.relations[:slot], relation, *problem.relations[slot + 1 :])
    # The slot is filled first, so that what is known is dropped at once.
    rules = replace(problem.rules, steps=steps_of(problem.plan, first=slot))
    narrowed = replace(problem, relations=relations, rules=rules)
    stage = stage_of(narrowed, all_anchors(narrowed))

    def is_known(block: Block) -> Mask:
        filled = block.chosen[:, slot]
        return (filled >= 0) & known[filled]

    with problem.budget.held(stage.nbytes):
        for found in stage.combiner.until(stage.live, _few_rows(stage), is_known):
            yield found.chosen


def _few_rows(stage: Stage) -> int:
    """Return how many partial candidates to extend together: small blocks get to the first sooner."""
    return max(2 * len(stage.live), thresholds.SMALLEST_BLOCK)
