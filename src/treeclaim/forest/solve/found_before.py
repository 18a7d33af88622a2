# SPDX-License-Identifier: Apache-2.0
"""Candidates that an earlier question found, for one that must find the same.

Which candidates there are depends on the shape of the Forest and on who has room for what, not on
the amounts themselves. A scheduler asks for the same flavor again and again, and a claim in between
rarely fills a provider up; other flavors often fit the same hosts. So what was found is kept with
all that it depends on, until the shape of the Forest changes. Where slots share what there is of a
class, it depends on more, and nothing is kept.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.solve.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.model.request import NO_GROUP

_MOST_BYTES = 2_000_000
"""The longest list of candidates that is kept."""


@dataclass(frozen=True, slots=True)
class _Found:
    blocks: tuple[Choices, ...]

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.blocks)


def found_before(
    problem: Problem, candidates: Callable[[], Iterator[Choices]]
) -> Iterator[Choices]:
    """Yield the candidates of a problem, in blocks: those of an earlier one, or drawn now."""
    key = _dependencies(problem)
    known = None if key is None else problem.forest.memory.find(key)
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
        problem.forest.memory.keep(key, _Found(tuple(blocks)))


def _dependencies(problem: Problem) -> Hashable | None:
    """Return what the candidates depend on besides the shape; None if they are not to be kept."""
    plan, options = problem.plan, problem.options
    request = plan.request
    is_shared = any(one.resource_class is not None for one in plan.contests)
    if is_shared or options.randomize or not request.nested:
        return None
    outcast = [
        one.conditions.forbidden_aggregates for one in request.groups if one.suffix == NO_GROUP
    ]
    return (
        "candidates",
        problem.rules.steps,
        problem.rules.lists,
        plan.unsuffixed,
        plan.required,
        tuple(
            (one.pairs.serial, None if one.fits is None else np.packbits(one.fits).tobytes())
            for one in problem.relations
        ),
        request.root,
        tuple(outcast),
        request.limit,
        options.maximum,
        options.breadth_first,
    )
