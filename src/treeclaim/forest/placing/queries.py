# SPDX-License-Identifier: Apache-2.0
"""Finds the first candidate of a query repeatedly, while amounts are taken in a scratch Forest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from treeclaim.forest.answer.body import list_allocations
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.bounds.cache import size_of
from treeclaim.forest.domains.consumed import count_joint_fits
from treeclaim.forest.order.candidate_source import CandidateSource, StagedTrees, drop_exchanges
from treeclaim.forest.order.mixes.mix_room import find_mix_requests
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.order.ordered_search import TOGETHER, rank_candidates
from treeclaim.forest.order.scoring import Scoring
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.placing.candidate import Candidate, find_trees
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.solve.combine import (
    distinct_candidates,
    find_matching_anchors,
    first_of_each,
    select_anchors,
)
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import find_all_anchors
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import NO_ROW, Mask, Trees
from treeclaim.model.request import CandidateRequest

_BYTES_PER_QUERY = 4_000
"""Estimated bytes of a kept query, without its trees and its request."""

_BYTES_PER_TREE = 200
"""Estimated bytes of a kept query per tree, without its candidate: masks, and a search with its scores."""

CANDIDATES_TOGETHER = 4_096
"""Candidates of trees that are scored together."""

TREES_TOGETHER = 64
"""Trees that are first searched together. They cost little more than a single tree."""

_WANTED_COUNTS = (1, 64, 4_096, None)
"""Candidates of successive scored searches. A single candidate is found much sooner, and usually accepted."""

TreePredicate = Callable[[Sequence[int]], bool]
"""Returns whether a candidate may have these trees."""


class Query:
    """A query in a scratch Forest.

    If trees are independent, the query keeps the first candidate of each tree, and searches a tree again only after
    it changed. Otherwise each call is a new search. The limit of the request is ignored.

    Attributes:
        forest: The Forest to search.
        are_apart: Whether each candidate is in one tree, and trees are independent.
        nbytes: Estimated bytes of the query and its inputs.
    """

    def __init__(
        self,
        scratch: ScratchForest,
        request: CandidateRequest,
        budget: Budget,
        *,
        ignores_units: bool = False,
    ) -> None:
        """Relate the request; `ignores_units` skips min_unit, max_unit and step_size, as for a hold."""
        self.scratch = scratch
        self.request = replace(request, limit=None)
        self.budget = budget
        self.nbytes = _BYTES_PER_QUERY + 3 * size_of(self.request)
        scratch.copy_used(request.classes)
        self.forest = scratch.forest.view_without_units() if ignores_units else scratch.forest
        problem = self.relate()
        mixes = () if request.order is None else request.order.mixes
        self.plan = problem.plan
        self.are_apart = problem.are_trees_apart and all(
            find_mix_requests(self.forest, mix, budget).are_apart for mix in mixes
        )
        if self.are_apart:
            self._begin_trees(problem)

    def _begin_trees(self, problem: Problem) -> None:
        """Bound the scores of all trees, and choose the candidates of trees with a single candidate."""
        self._initial_problem = problem
        self._seen_moment = self.scratch.moment
        self._latest: tuple[int, Problem] = self.scratch.moment, problem
        """The last related problem, and its moment."""
        self._scoring = self._make_scoring(problem)
        roots = len(problem.order.roots)
        anchors = find_all_anchors(problem)
        self._value = np.full(roots, -np.inf)
        """The score of the first candidate of each tree where `_is_known`, otherwise an upper bound."""
        self._value[anchors] = (
            0 if self._scoring is None else self._scoring.compute_ceilings(anchors)
        )
        self._is_known = np.zeros(roots, dtype=np.bool_)
        self._chosen_rows = np.full((roots, len(problem.relations)), NO_ROW, dtype=np.int64)
        """The providers of the first candidate of each tree; `NO_ROW` if there is none, or if it may have changed."""
        self._is_approximate = np.zeros(roots, dtype=np.bool_)
        self.nbytes += self._chosen_rows.nbytes + roots * _BYTES_PER_TREE
        self._is_single = self._choose_single()
        single = anchors[self._is_single[anchors]]
        self._is_known[single] = True
        if self._scoring is not None and len(single):
            self._value[single] = self._scoring.compute_scores(self._chosen_rows[single])

    def relate(self) -> Problem:
        """Relate the request to the current state of the scratch."""
        return relate_request(self.forest, self.request, self.budget)

    def find_first(self, allowed: Mask, permits: TreePredicate) -> Candidate | None:
        """Return the first permitted candidate.

        `allowed` (by root) and `permits` are one condition, for candidates in a single tree and in any trees.
        """
        if self.are_apart:
            return self._find_first_by_trees(allowed)
        problem = self.relate()
        anchors = None
        if not problem.plan.split and not problem.may_leave_anchors:
            # Every candidate has only the tree of its anchor.
            anchors = find_all_anchors(problem)
            anchors = anchors[allowed[anchors]]
        for candidate in self._draw(problem, anchors):
            self.budget.check()
            if permits(candidate.trees):
                return candidate
        return None

    def draw_candidates(self) -> Iterator[Candidate]:
        """Yield all current candidates in order; with an order, some candidates repeatedly."""
        yield from self._draw(self.relate(), None)

    def find_matching_trees(self) -> Mask | None:
        """Return a mask of the trees with a candidate; None if a candidate may leave its anchor's tree."""
        problem = self.relate()
        if problem.plan.split or problem.may_leave_anchors:
            return None
        mask = np.zeros(len(problem.order.roots), dtype=np.bool_)
        mask[problem.order.tree[find_matching_anchors(problem)]] = True
        return mask

    def make_candidate(
        self,
        problem: Problem,
        rows: Sequence[int],
        parts: Sequence[tuple[str, int, int]] = (),
        *,
        is_approximate: bool = False,
    ) -> Candidate:
        """Return the candidate of the rows that a search chose, and of the parts of divided amounts."""
        allocations, served_groups = list_allocations(problem.plan, rows, parts)
        providers = [row for row, _, _ in allocations]
        trees = (
            tuple(map(int, problem.order.tree[providers[:1]]))
            if self.are_apart
            else find_trees(self.forest, providers)
        )
        return Candidate(tuple(allocations), tuple(served_groups), trees, is_approximate)

    def _make_scoring(self, problem: Problem) -> Scoring | None:
        order = self.request.order
        if order is None:
            return None
        return Scoring(problem, order, self.scratch.get_totals)

    def _draw(self, problem: Problem, anchors: Trees | None) -> Iterator[Candidate]:
        """Yield the candidates of anchors; None means all, as do divided amounts."""
        scoring = self._make_scoring(problem)
        if scoring is not None:
            for wanted_count in _WANTED_COUNTS:
                ranked = rank_candidates(problem, scoring, wanted_count, anchors)
                for number, row in enumerate(ranked.rows.tolist()):
                    parts = (row.chosen_rows, row.parts) if problem.plan.split else (row,)
                    is_approximate = number >= ranked.exact
                    yield self.make_candidate(problem, *parts, is_approximate=is_approximate)
                if wanted_count is None or len(ranked.rows) < wanted_count:
                    return
        elif problem.plan.split:
            for divided in Splitter(problem).distinct():
                yield self.make_candidate(problem, divided.chosen_rows, divided.parts)
        else:
            for block in distinct_candidates(problem, anchors):
                for rows in block.tolist():
                    yield self.make_candidate(problem, rows)

    # -- the first candidate of each tree --------------------------------------------------------

    def _choose_single(self) -> Mask:
        """Choose the candidates of the trees with one provider for each slot, whatever is free; return their mask."""
        pairs = [relation.pairs for relation in self._initial_problem.relations]
        allowed = self._initial_problem.allowed
        reached = [of_slot.reached for of_slot in pairs]
        self._is_possible: Mask = np.logical_and.reduce(
            reached if allowed is None else [*reached, allowed]
        )
        if not self._initial_problem.rules.are_independent:
            return np.zeros(len(self._value), dtype=np.bool_)
        counts = [np.diff(of_slot.starts) == 1 for of_slot in pairs]
        is_single: Mask = np.logical_and.reduce([self._is_possible, *counts])
        for slot, of_slot in enumerate(pairs):
            self._chosen_rows[is_single, slot] = of_slot.provider[of_slot.starts[:-1][is_single]]
        return is_single

    def _invalidate_changed(self) -> None:
        """Give changed trees an infinite value, so that they are searched first."""
        scratch = self.scratch
        if self._seen_moment != scratch.moment:
            may_have_grown = (scratch.followed_at > self._seen_moment) & self._is_possible
            # A tree without a candidate cannot gain one by a claim.
            has_shrunk = (scratch.taken_at > self._seen_moment) & (self._value > -np.inf)
            has_changed = may_have_grown | has_shrunk
            self._chosen_rows[may_have_grown & ~self._is_single] = NO_ROW
            self._value[has_changed] = np.inf
            self._is_known[has_changed] = False
            self._seen_moment = scratch.moment

    def _find_first_by_trees(self, allowed: Mask) -> Candidate | None:
        """Return the first candidate of the best allowed tree."""
        self._invalidate_changed()
        size = TREES_TOGETHER
        while (tree := self._find_best_tree(allowed)) is not None and not self._is_known[tree]:
            unknown = np.flatnonzero(allowed & ~self._is_known & (self._value > -np.inf))
            values = self._value[unknown]
            if self._value[tree] == np.inf:
                self._update_trees(unknown[values == np.inf])
                continue
            best = np.argsort(-values, kind="stable")[:size]
            self._update_trees(np.sort(unknown[best]))
            size *= 2
        if tree is None:
            return None
        is_approximate = bool(self._is_approximate[tree])
        return self.make_candidate(
            self._initial_problem, self._chosen_rows[tree].tolist(), is_approximate=is_approximate
        )

    def _find_best_tree(self, allowed: Mask) -> int | None:
        """Return the first allowed tree with the greatest value; None if no allowed tree has a candidate."""
        if not len(allowed):
            return None
        tree = int(self._value.argmax())
        if not allowed[tree]:
            tree = int(np.where(allowed, self._value, -np.inf).argmax())
        return tree if allowed[tree] and self._value[tree] > -np.inf else None

    def find_first_of_each(self, trees: Trees) -> tuple[Trees, Choices]:
        """Search trees (ascending numbers); return the trees with a candidate, and their first candidates."""
        self._invalidate_changed()
        self._search_trees(trees)
        matching = trees[self._value[trees] > -np.inf]
        return matching, self._chosen_rows[matching]

    def _update_trees(self, trees: Trees) -> None:
        """Find the current first candidates of trees (ascending numbers)."""
        unsettled = []
        for tree in trees.tolist():
            self.budget.check()
            if not self._try_update(tree):
                unsettled.append(tree)
        if unsettled:
            self._search_trees(np.array(unsettled, dtype=np.int64))
        self._is_known[trees] = True

    def _try_update(self, tree: int) -> bool:
        """Update the value of a tree without a search; return whether that was possible."""
        chosen_rows = self._chosen_rows[[tree]]
        is_single = bool(self._is_single[tree])
        # In canonical order, the first candidate stays the first while it fits.
        if not is_single and (chosen_rows[0, 0] == NO_ROW or self._scoring is not None):
            return False
        allocations, _ = list_allocations(self._initial_problem.plan, chosen_rows[0].tolist())
        if count_joint_fits(self.forest, allocations):
            self._value[tree] = (
                0 if self._scoring is None else self._scoring.compute_scores(chosen_rows)[0]
            )
            return True
        self._value[tree] = -np.inf
        return is_single

    def _search_trees(self, trees: Trees) -> None:
        if self._latest[0] != self.scratch.moment:
            self._latest = self.scratch.moment, self.relate()
        problem = self._latest[1]
        if self._scoring is None:
            with self.budget.scope():
                blocks = list(first_of_each(problem, trees))
            self._clear(trees)
            for block in blocks:
                self._choose(block.tree, block.chosen_rows, np.zeros(len(block.tree)))
            return
        anchors = select_anchors(problem, trees)
        self._clear(np.setdiff1d(trees, anchors, assume_unique=True))
        if not len(anchors):
            return
        order = self._scoring.order
        source = CandidateSource(drop_exchanges(problem, order), self._scoring)
        sizes = source.bound_counts(anchors).cumsum() // CANDIDATES_TOGETHER
        for part in np.split(anchors, np.flatnonzero(np.diff(sizes)) + 1):
            self.budget.check()
            with self.budget.scope():
                self._rank(source, self._scoring, part)

    def _rank(self, source: CandidateSource, scoring: Scoring, trees: Trees) -> None:
        """Score all candidates of trees with few candidates; run an ordered search in each other tree."""
        staged = StagedTrees(source, trees)
        self.budget.hold(staged.nbytes)
        is_small = staged.bound_counts() <= TOGETHER
        of_tree, rows = staged.draw_all(np.flatnonzero(is_small))
        scores = scoring.compute_scores(rows) if len(rows) else np.zeros(0)
        self._clear(trees)
        if len(rows):
            begin = np.flatnonzero(np.diff(of_tree, prepend=-1))
            best = np.repeat(
                np.maximum.reduceat(scores, begin), np.diff(begin, append=len(scores))
            )
            is_best = np.flatnonzero(scores == best)
            _, first = np.unique(of_tree[is_best], return_index=True)
            at = is_best[first]
            self._choose(of_tree[at], rows[at], scores[at])
        for tree in staged.trees[~is_small].tolist():
            # Bounds depend on the providers that have room now.
            current_scoring = self._make_scoring(source.problem) or scoring
            ranked = rank_candidates(source.problem, current_scoring, 1, np.array([tree]))
            if len(ranked.rows):
                self._choose(np.array([tree]), ranked.rows, ranked.score)
                self._is_approximate[tree] = not ranked.exact

    def _clear(self, trees: Trees) -> None:
        self._value[trees] = -np.inf
        self._chosen_rows[trees] = NO_ROW
        self._is_approximate[trees] = False

    def _choose(self, trees: Trees, chosen_rows: Choices, scores: Floats) -> None:
        self._chosen_rows[trees] = chosen_rows
        self._value[trees] = scores
