# SPDX-License-Identifier: Apache-2.0
"""The search, from top to bottom: which combinations of providers satisfy a request?

`search` is the whole algorithm. Each stage is one call, with its reason above it; the packages
beside this module implement the stages. All stages but the first are lazy: each draws from
the stage before only as much as the stage after it needs.
"""

from collections.abc import Iterator
from itertools import chain

from treeclaim.forest.answer.body import ResponseBody, SplitAnswer, Summaries, limited_below_1_29
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.ordered import Ranking, first_candidates
from treeclaim.forest.solve.candidate_cache import draw_candidates
from treeclaim.forest.solve.combine import apply_limit, combine_stages, distinct, gather_blocks
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem, relate
from treeclaim.forest.solve.stage import Pace, find_anchors, prepare_stages
from treeclaim.forest.split.divisions import SplitCandidate
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
    """Begin to answer a request; the work that grows with the answer is done while its pieces are drawn.

    Args:
        forest: The Forest to search.
        request: The request.
        options: The operator's options.
        form: The form of the answer.
        budget: The budget; by default as the options say, from now on.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: if the request names what does not exist.
    """
    # Relate: which providers can take each slot, and under which anchors? A few comparisons of
    # whole columns answer for all trees at once, and all but the amounts is cached. It is done now,
    # so that a request that cannot be answered is refused before anything is sent.
    budget = budget or Budget(options.seconds, options.most_bytes)
    stages = budget.stages
    # Amounts of the request's holds count as free in all stages.
    if request.from_holds:
        forest, request = free_holds(forest, request, budget)
    problem = relate(forest, request, options, budget)
    summaries = Summaries(problem, form)
    order = request.order
    ranking = None if order is None else Ranking()
    if problem.plan.split:
        # Divide: each candidate that the stages below combine is divided in all minimal ways, and the
        # divisions are compared to find repetitions.
        divisions: Iterator[SplitCandidate]
        if order is not None and ranking is not None:
            blocks = stages.timed("divide", first_candidates(problem, order, ranking))
            divisions = chain.from_iterable(block.tolist() for block in blocks)
        else:
            divisions = stages.timed("divide", divide_candidates(problem))
        return SplitAnswer(problem, form, summaries, divisions, ranking)
    if order is not None and ranking is not None:
        # Order: the same stages for the trees whose candidates can score highest, until no other
        # tree can have a better one.
        best = gather_blocks(stages.timed("order", first_candidates(problem, order, ranking)))
        return ResponseBody(problem, form, summaries, best, ranking)
    # Write: candidates as bytes, in blocks, and then the summaries of the trees that they use.
    # Where an earlier question found the same, its candidates are written instead.
    candidates = draw_candidates(problem, lambda: _candidates(problem, summaries))
    return ResponseBody(problem, form, summaries, candidates)


def _candidates(problem: Problem, summaries: Summaries) -> Iterator[Choices]:
    """Find candidates in the canonical order, up to the limit."""
    stages, pace = problem.budget.stages, Pace(problem)
    # Anchors: a tree in which some slot has no provider has no candidate, and is not examined
    # again. A few candidates need not wait until all trees are compared.
    trees = stages.timed("anchors", find_anchors(problem, pace))
    # Stage: as many anchors as the limit requires are prepared together: the domains of their
    # slots, without the anchors where counting shows that the slots cannot all be served, or
    # that a same_subtree list has no head.
    ready = stages.timed("stage", prepare_stages(problem, trees, pace))
    # Combine: fill slot after slot, whole blocks of partial candidates at a time, and drop rows
    # that break a rule as early as possible.
    blocks = stages.timed("combine", combine_stages(problem, ready, pace))
    # Distinct: only sharing providers can make the same candidate under several anchors.
    once = stages.timed("distinct", distinct(problem, blocks))
    # All stages above yield candidates in the canonical order, which is the same in every worker.
    # Limit: the operator's maximum, then the client's limit, or a random sample.
    if problem.plan.request.nested:
        return gather_blocks(apply_limit(problem, once))
    return gather_blocks(limited_below_1_29(problem, once, summaries))
