# SPDX-License-Identifier: Apache-2.0
"""A cache of candidates, for questions that must find what an earlier one found.

Which candidates there are depends on the shape of the Forest and on who has room for what, not on
the amounts themselves. A scheduler asks for the same flavor again and again, and a claim in between
rarely fills a provider up; other flavors often fit the same hosts. So what was found is kept with
all that it depends on, until the shape of the Forest changes; what was found last for a kind of
question outlives changes of single trees (`known_candidates.py`). Where slots share what there is of a
class, it depends on more, and nothing is kept.
"""

from collections.abc import Callable, Hashable, Iterator

import numpy as np

from treeclaim.forest.solve.known_candidates import KnownCandidates, can_follow
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.model.request import NO_GROUP

_MOST_BYTES = 2_000_000
"""The longest list of candidates that is kept."""


def cached(problem: Problem, candidates: Callable[[], Iterator[Choices]]) -> Iterator[Choices]:
    """Yield the candidates of a problem, in blocks: those of an earlier one, or drawn now."""
    kind = _dependencies(problem)
    if kind is None:
        yield from candidates()
        return
    known = _known(problem, kind)
    if known is not None:
        if len(known.chosen):
            yield known.chosen
        return
    blocks = [np.empty((0, len(problem.relations)), dtype=np.int64)]
    size = 0
    for block in candidates():
        size += block.nbytes
        if size <= _MOST_BYTES:
            blocks.append(block)
        yield block
    if size <= _MOST_BYTES:
        found = KnownCandidates.of(problem, np.concatenate(blocks))
        problem.forest.cache.keep(_key(problem, kind), found)
        _keep_last(problem, kind, found)


def _known(problem: Problem, kind: Hashable) -> KnownCandidates | None:
    last = problem.forest.candidates.find(kind)
    if isinstance(last, KnownCandidates):
        followed = last.followed(problem)
        if followed is not None:
            if followed is not last:
                _keep_last(problem, kind, followed)
            return followed
    known = problem.forest.cache.find(_key(problem, kind))
    return known if isinstance(known, KnownCandidates) else None


def _keep_last(problem: Problem, kind: Hashable, known: KnownCandidates) -> None:
    if can_follow(problem):
        problem.forest.candidates.take(kind)
        problem.forest.candidates.keep(kind, known)


def _key(problem: Problem, kind: Hashable) -> Hashable:
    """Return what the candidates depend on besides the shape of the Forest."""
    fits = (relation.fits for relation in problem.relations)
    return kind, tuple(None if mask is None else np.packbits(mask).tobytes() for mask in fits)


def _dependencies(problem: Problem) -> Hashable | None:
    """Return the kind of question; None if its candidates are not to be kept."""
    plan, options = problem.plan, problem.options
    request = plan.request
    is_shared = any(constraint.resource_class is not None for constraint in plan.joint_constraints)
    if is_shared or problem.rules.consuming or options.randomize or not request.nested:
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
        tuple(relation.pairs.serial for relation in problem.relations),
        request.root,
        tuple(outcast),
        request.limit,
        options.maximum,
        options.breadth_first,
    )
