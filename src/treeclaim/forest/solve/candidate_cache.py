# SPDX-License-Identifier: Apache-2.0
"""A cache of candidates, for questions that must find what an earlier one found.

Which candidates there are depends on the shape of the Forest and on who has room for what, not on
the amounts themselves. A scheduler asks for the same flavor again and again, and a claim in between
rarely fills a provider up; other flavors often fit the same hosts. So what was found is kept with
all that it depends on, until the shape of the Forest changes. Where slots share what there is of a
class, it depends on more, and nothing is kept.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.model.request import NO_GROUP

_MOST_BYTES = 2_000_000
"""The longest list of candidates that is kept."""


@dataclass(frozen=True, slots=True)
class _Found:
    blocks: tuple[Choices, ...]

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)


def cached(problem: Problem, candidates: Callable[[], Iterator[Choices]]) -> Iterator[Choices]:
    """Yield the candidates of a problem, in blocks: those of an earlier one, or drawn now."""
    key = _dependencies(problem)
    known = None if key is None else problem.forest.cache.find(key)
    if isinstance(known, _Found):
        yield from known.blocks
        return
    blocks = []
    size = 0
    for block in candidates():
        size += block.nbytes
        if size <= _MOST_BYTES:
            blocks.append(block)
        yield block
    if key is not None and size <= _MOST_BYTES:
        problem.forest.cache.keep(key, _Found(tuple(blocks)))


def _dependencies(problem: Problem) -> Hashable | None:
    """Return what the candidates depend on besides the shape; None if they are not to be kept."""
    plan, options = problem.plan, problem.options
    request = plan.request
    is_shared = any(constraint.resource_class is not None for constraint in plan.joint_constraints)
    if is_shared or options.randomize or not request.nested:
        return None
    outcast = [
        group.conditions.forbidden_aggregates
        for group in request.groups
        if group.suffix == NO_GROUP
    ]
    return (
        "candidates",
        problem.rules.steps,
        problem.rules.lists,
        plan.unsuffixed,
        plan.required,
        tuple(
            (
                relation.pairs.serial,
                None if relation.fits is None else np.packbits(relation.fits).tobytes(),
            )
            for relation in problem.relations
        ),
        request.root,
        tuple(outcast),
        request.limit,
        options.maximum,
        options.breadth_first,
    )
