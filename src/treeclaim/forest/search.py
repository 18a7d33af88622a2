# SPDX-License-Identifier: Apache-2.0
"""The search from top to bottom: the combinations of providers that satisfy a request.

`search` is the whole algorithm. Each stage is one call, with its reason above it; the packages
beside this module implement the stages. All stages but the first are lazy: each draws only as much
from the previous stage as the next stage needs.
"""

from collections.abc import Iterator
from itertools import chain

from treeclaim.forest.answer.body import ResponseBody, SplitAnswer, Summaries, limit_below_1_29
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.ordered_search import Ranking, draw_first_candidates
from treeclaim.forest.solve.candidate_cache import draw_candidates
from treeclaim.forest.solve.combine import (
    apply_limit,
    combine_stages,
    drop_repetitions,
    gather_blocks,
)
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem, relate
from treeclaim.forest.solve.stage import Pace, find_anchors, prepare_stages
from treeclaim.forest.split.splitting import divide_candidates
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import free_holds
from treeclaim.model.request import BodyForm, CandidateRequest, SearchOptions

_NEWEST = BodyForm()


def search(
    forest: Forest,
    request: CandidateRequest,
    options: SearchOptions,
    form: BodyForm = _NEWEST,
    budget: Budget | None = None,
) -> ResponseBody:
    """Begin to answer a request; most work is done while the pieces of the body are drawn.

    The default budget has the limits of the options, from now on.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: if the request names unknown ones.
    """
    # Relate: find the providers for each slot, and their anchors. A few comparisons of whole columns
    # cover all trees at once, and all but the amounts is cached. This stage is not lazy, so that an
    # invalid request is rejected before the response begins.
    budget = budget or Budget(options.seconds, options.most_bytes)
    stages = budget.stages
    # Amounts of the request's holds count as free in all stages.
    forest, request = free_holds(forest, request, budget)
    problem = relate(forest, request, options, budget)
    summaries = Summaries(problem, form)
    stage = "divide" if problem.plan.split else "order"
    ranking, best = None, None
    if request.order is not None:
        # Order: run the stages below for the trees with the highest possible scores, until no
        # remaining tree can have a better candidate.
        ranking = Ranking()
        best = stages.timed(stage, draw_first_candidates(problem, request.order, ranking))
    if problem.plan.split:
        # Divide: divide each candidate of the stages below in all minimal ways, and drop repetitions.
        if best is None:
            divisions = stages.timed(stage, divide_candidates(problem))
        else:
            divisions = chain.from_iterable(block.tolist() for block in best)
        return SplitAnswer(problem, form, summaries, divisions, ranking)
    if best is not None:
        return ResponseBody(problem, form, summaries, gather_blocks(best), ranking)
    # Write: serialize the candidates in blocks, then the summaries of their trees. An equal earlier
    # search may provide the candidates.
    candidates = draw_candidates(problem, lambda: _candidates(problem, summaries))
    return ResponseBody(problem, form, summaries, candidates)


def _candidates(problem: Problem, summaries: Summaries) -> Iterator[Choices]:
    """Yield candidates in the canonical order, up to the limit."""
    stages, pace = problem.budget.stages, Pace(problem)
    # Anchors: skip trees in which a slot has no provider. Trees are compared in parts, so that a few
    # candidates do not wait for all trees.
    trees = stages.timed("anchors", find_anchors(problem, pace))
    # Stage: prepare the domains of all slots for as many anchors as the limit requires. Drop anchors
    # if counting proves that they cannot serve all slots, or that a same_subtree list has no head.
    prepared_stages = stages.timed("stage", prepare_stages(problem, trees, pace))
    # Combine: fill slot after slot in whole blocks of partial candidates, and drop those that break
    # a rule as early as possible.
    blocks = stages.timed("combine", combine_stages(problem, prepared_stages, pace))
    # Distinct: sharing providers can form the same candidate under several anchors.
    distinct_blocks = stages.timed("distinct", drop_repetitions(problem, blocks))
    # Limit: apply the operator's maximum, then the client's limit or a random sample. The canonical
    # order is the same in every worker, so all workers cut off the same candidates.
    if problem.plan.request.nested:
        return gather_blocks(apply_limit(problem, distinct_blocks))
    return gather_blocks(limit_below_1_29(problem, distinct_blocks, summaries))
