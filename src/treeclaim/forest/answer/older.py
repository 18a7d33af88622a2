# SPDX-License-Identifier: Apache-2.0
"""The limit below microversion 1.29, where summaries show the providers of all candidates.

So they depend on candidates that the limit cuts off (contract page 90, section 5.2).
"""

from collections.abc import Iterator

from treeclaim.forest.answer.summaries import Summaries
from treeclaim.forest.solve.limit import first_candidates, selected
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem


def limited_below_1_29(
    problem: Problem, candidates: Iterator[Choices], summaries: Summaries
) -> Iterator[Choices]:
    """Yield the candidates within the limit, and note the providers of all candidates.

    The operator's maximum bounds how many that are. Without one they are not all drawn: whether a
    provider is in some candidate is asked for those that could be shown alone.
    """
    maximum, limit = problem.options.maximum, problem.plan.request.limit
    candidates = first_candidates(candidates, maximum)
    if limit is None:
        yield from selected(problem, _noted(candidates, summaries))
        return
    if problem.options.randomize or maximum is not None:
        candidates = _noted(candidates, summaries)
    kept = []
    for block in selected(problem, candidates):
        problem.budget.hold(block.nbytes)
        summaries.note(block)
        summaries.note_unlimited(block)
        kept.append(block)
    if maximum is not None:
        for _ in candidates:
            problem.budget.check()
    elif sum(map(len, kept)) >= limit:
        summaries.note_supported()
    yield from kept


def _noted(blocks: Iterator[Choices], summaries: Summaries) -> Iterator[Choices]:
    for block in blocks:
        summaries.note_unlimited(block)
        yield block
