# SPDX-License-Identifier: Apache-2.0
"""The first candidate of queries, again and again, while room is taken in a scratch Forest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from treeclaim.forest.answer.body import shares_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.bounds.cache import size_of
from treeclaim.forest.domains.consumed import times_together
from treeclaim.forest.order.drawing import Drawing, StagedTrees, without_exchanges
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.order.mixes.room import find_mix_requests
from treeclaim.forest.order.ordered import TOGETHER, rank_candidates
from treeclaim.forest.order.scoring import Scoring
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.placing.candidate import Candidate, trees_of
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.solve.combine import (
    anchors_of,
    distinct_candidates,
    first_of_each,
    matching_anchors,
)
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import all_anchors
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import NO_ROW, Mask, Trees
from treeclaim.model.request import CandidateRequest

_BYTES_FOR_A_QUERY = 4_000
"""Further bytes that a kept query takes, apart from a few times its request."""

_BYTES_FOR_A_TREE = 200
"""Bytes that a kept query takes for each tree besides its candidate: masks, and a search with its scores."""

CANDIDATES_TOGETHER = 4_096
"""Candidates of trees that are scored together."""

TREES_TOGETHER = 64
"""Trees that are searched together at first: they cost little more than one."""

_WANTED = (1, 64, 4_096, None)
"""Candidates of a scored search that are found together: the first is found much sooner alone, and usually accepted."""

Keeps = Callable[[Sequence[int]], bool]
"""Returns whether a candidate with some trees may be taken."""


class Query:
    """A query in a scratch Forest.

    Where trees do not affect each other, the first candidate of each tree is kept: a tree is searched when its turn
    comes, and again after something changed in it. Otherwise each call searches anew.

    Attributes:
        forest: The Forest to search.
        request: The request.
        are_apart: Whether each candidate is of one tree, and trees do not affect each other.
        nbytes: The bytes that the query takes, about, with what it was made from.
    """

    def __init__(
        self,
        scratch: Scratch,
        request: CandidateRequest,
        budget: Budget,
        *,
        ignores_units: bool = False,
    ) -> None:
        """Take the request; its limit does not apply.

        Args:
            scratch: The scratch.
            request: The request.
            budget: The budget of all searches together.
            ignores_units: Whether min_unit, max_unit and step_size do not apply, as to a hold.
        """
        self.scratch = scratch
        self.request = replace(request, limit=None)
        self.budget = budget
        self.nbytes = _BYTES_FOR_A_QUERY + 3 * size_of(self.request)
        scratch.copy_used(request.classes)
        self.forest = scratch.forest.without_units() if ignores_units else scratch.forest
        problem = self.search()
        mixes = () if request.order is None else request.order.mixes
        self.plan = problem.plan
        self.are_apart = problem.are_trees_apart and all(
            find_mix_requests(self.forest, mix, budget).are_apart for mix in mixes
        )
        if self.are_apart:
            self._begin_trees(problem)

    def _begin_trees(self, problem: Problem) -> None:
        """Bound the scores of all trees, and choose where there is nothing to choose."""
        self._begin = problem
        self._seen = self.scratch.moment
        """The moment up to which the changes of trees are taken in."""
        self._now: tuple[int, Problem] = self.scratch.moment, problem
        self._scoring = self._scoring_of(problem)
        roots = len(problem.order.roots)
        anchors = all_anchors(problem)
        self._value = np.full(roots, -np.inf)
        """The score of the first candidate of each tree, or where it is not known a score that it does not exceed."""
        self._value[anchors] = 0 if self._scoring is None else self._scoring.ceilings(anchors)
        self._is_known = np.zeros(roots, dtype=np.bool_)
        self._chosen = np.full((roots, len(problem.relations)), NO_ROW, dtype=np.int64)
        """The providers of the first candidate of each tree that has any; none where another may be the first now."""
        self._is_approximate = np.zeros(roots, dtype=np.bool_)
        self.nbytes += self._chosen.nbytes + roots * _BYTES_FOR_A_TREE
        self._is_single = self._without_choice()
        single = anchors[self._is_single[anchors]]
        self._is_known[single] = True
        if self._scoring is not None and len(single):
            self._value[single] = self._scoring.scores(self._chosen[single])

    def search(self) -> Problem:
        """Relate the request to the scratch as it is now."""
        return relate_request(self.forest, self.request, self.budget)

    def first(self, allowed: Mask, keeps: Keeps) -> Candidate | None:
        """Return the first acceptable candidate.

        Args:
            allowed: Trees that a candidate in one tree may use, shape (roots,).
            keeps: Judges candidates in any trees.
        """
        if self.are_apart:
            return self._first_of_trees(allowed)
        problem = self.search()
        anchors = None
        if not problem.plan.split and not problem.may_leave_anchors:
            # Every candidate has the tree of its anchor, and no other.
            anchors = all_anchors(problem)
            anchors = anchors[allowed[anchors]]
        for candidate in self._draw(problem, anchors):
            self.budget.check()
            if keeps(candidate.trees):
                return candidate
        return None

    def candidates(self) -> Iterator[Candidate]:
        """Yield all candidates in order, as things are now; with an order, some repeatedly."""
        yield from self._draw(self.search(), None)

    def matching_trees(self) -> Mask | None:
        """Return which trees have a candidate now; None if a candidate may leave its anchor's tree."""
        problem = self.search()
        if problem.plan.split or problem.may_leave_anchors:
            return None
        mask = np.zeros(len(problem.order.roots), dtype=np.bool_)
        mask[problem.order.tree[matching_anchors(problem)]] = True
        return mask

    def make_candidate(
        self,
        problem: Problem,
        rows: Sequence[int],
        parts: Sequence[tuple[str, int, int]] = (),
        *,
        is_approximate: bool = False,
    ) -> Candidate:
        """Return a candidate of the rows that a search chose, and the parts of divided amounts."""
        allocations, served = shares_of(problem.plan, rows, parts)
        providers = [row for row, _, _ in allocations]
        trees = (
            tuple(map(int, problem.order.tree[providers[:1]]))
            if self.are_apart
            else trees_of(self.forest, providers)
        )
        return Candidate(tuple(allocations), tuple(served), trees, is_approximate)

    def _scoring_of(self, problem: Problem) -> Scoring | None:
        order = self.request.order
        if order is None:
            return None
        return Scoring(problem, order, self.scratch.totals)

    def _draw(self, problem: Problem, anchors: Trees | None) -> Iterator[Candidate]:
        """Yield the candidates of some anchors, or of all; all if amounts are divided."""
        scoring = self._scoring_of(problem)
        if scoring is not None:
            for wanted in _WANTED:
                ranked = rank_candidates(problem, scoring, wanted, anchors)
                for number, row in enumerate(ranked.rows.tolist()):
                    parts = (row.chosen, row.parts) if problem.plan.split else (row,)
                    is_approximate = number >= ranked.exact
                    yield self.make_candidate(problem, *parts, is_approximate=is_approximate)
                if wanted is None or len(ranked.rows) < wanted:
                    return
        elif problem.plan.split:
            for divided in Splitter(problem).distinct():
                yield self.make_candidate(problem, divided.chosen, divided.parts)
        else:
            for block in distinct_candidates(problem, anchors):
                for rows in block.tolist():
                    yield self.make_candidate(problem, rows)

    # -- the first candidate of each tree --------------------------------------------------------

    def _without_choice(self) -> Mask:
        """Choose the providers of the trees with one provider for each slot, whatever is free."""
        pairs = [relation.pairs for relation in self._begin.relations]
        allowed = self._begin.allowed
        reached = [of_slot.reached for of_slot in pairs]
        self._is_possible: Mask = np.logical_and.reduce(
            reached if allowed is None else [*reached, allowed]
        )
        if not self._begin.rules.are_free:
            return np.zeros(len(self._value), dtype=np.bool_)
        counts = [np.diff(of_slot.starts) == 1 for of_slot in pairs]
        is_single: Mask = np.logical_and.reduce([self._is_possible, *counts])
        for slot, of_slot in enumerate(pairs):
            self._chosen[is_single, slot] = of_slot.provider[of_slot.starts[:-1][is_single]]
        return is_single

    def _catch_up(self) -> None:
        """Search the trees with changes again before all others."""
        scratch = self.scratch
        if self._seen != scratch.moment:
            grown = (scratch.followed_at > self._seen) & self._is_possible
            # A tree without room for the request has none after a claim.
            changed = grown | ((scratch.taken_at > self._seen) & (self._value > -np.inf))
            self._chosen[grown & ~self._is_single] = NO_ROW
            self._value[changed] = np.inf
            self._is_known[changed] = False
            self._seen = scratch.moment

    def _first_of_trees(self, allowed: Mask) -> Candidate | None:
        """Return the first candidate of the best tree that is allowed."""
        self._catch_up()
        size = TREES_TOGETHER
        while (tree := self._best_of(allowed)) is not None and not self._is_known[tree]:
            unknown = np.flatnonzero(allowed & ~self._is_known & (self._value > -np.inf))
            values = self._value[unknown]
            if self._value[tree] == np.inf:
                self._look_at(unknown[values == np.inf])
                continue
            best = np.argsort(-values, kind="stable")[:size]
            self._look_at(np.sort(unknown[best]))
            size *= 2
        if tree is None:
            return None
        is_approximate = bool(self._is_approximate[tree])
        return self.make_candidate(
            self._begin, self._chosen[tree].tolist(), is_approximate=is_approximate
        )

    def _best_of(self, allowed: Mask) -> int | None:
        """Return the tree with the greatest value of those allowed, the first of equals."""
        if not len(allowed):
            return None
        tree = int(self._value.argmax())
        if not allowed[tree]:
            tree = int(np.where(allowed, self._value, -np.inf).argmax())
        return tree if allowed[tree] and self._value[tree] > -np.inf else None

    def search_each(self, trees: Trees) -> tuple[Trees, Choices]:
        """Search some trees (numbers, ascending), and return those that have a candidate, with the first of each."""
        self._catch_up()
        self._search_trees(trees)
        matching = trees[self._value[trees] > -np.inf]
        return matching, self._chosen[matching]

    def _look_at(self, trees: Trees) -> None:
        """Find the first candidates of some trees (numbers, ascending) as things are now."""
        unsettled = []
        for tree in trees.tolist():
            self.budget.check()
            if not self._has_settled(tree):
                unsettled.append(tree)
        if unsettled:
            self._search_trees(np.array(unsettled, dtype=np.int64))
        self._is_known[trees] = True

    def _has_settled(self, tree: int) -> bool:
        """Find the first candidate of a tree without a search, if that is possible."""
        chosen = self._chosen[[tree]]
        is_single = bool(self._is_single[tree])
        # In the usual order the first one stays the first one as long as it fits.
        if not is_single and (chosen[0, 0] == NO_ROW or self._scoring is not None):
            return False
        allocations, _ = shares_of(self._begin.plan, chosen[0].tolist())
        if times_together(self.forest, allocations):
            self._value[tree] = 0 if self._scoring is None else self._scoring.scores(chosen)[0]
            return True
        self._value[tree] = -np.inf
        return is_single

    def _search_trees(self, trees: Trees) -> None:
        """Search some trees for their first candidates."""
        if self._now[0] != self.scratch.moment:
            self._now = self.scratch.moment, self.search()
        problem = self._now[1]
        if self._scoring is None:
            with self.budget.scope():
                blocks = list(first_of_each(problem, trees))
            self._forget(trees)
            for block in blocks:
                self._choose(block.tree, block.chosen, np.zeros(len(block.tree)))
            return
        anchors = anchors_of(problem, trees)
        self._forget(np.setdiff1d(trees, anchors, assume_unique=True))
        if not len(anchors):
            return
        order = self._scoring.order
        drawing = Drawing(without_exchanges(problem, order), self._scoring)
        sizes = drawing.bound_counts(anchors).cumsum() // CANDIDATES_TOGETHER
        for part in np.split(anchors, np.flatnonzero(np.diff(sizes)) + 1):
            self.budget.check()
            with self.budget.scope():
                self._rank(drawing, self._scoring, part)

    def _rank(self, drawing: Drawing, scoring: Scoring, trees: Trees) -> None:
        """Score all candidates of some trees; those of a tree with many are searched in order."""
        staged = StagedTrees(drawing, trees)
        self.budget.hold(staged.nbytes)
        is_small = staged.bound_counts() <= TOGETHER
        of_tree, rows = staged.draw_all(np.flatnonzero(is_small))
        scores = scoring.scores(rows) if len(rows) else np.zeros(0)
        self._forget(trees)
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
            fresh = self._scoring_of(drawing.problem) or scoring
            ranked = rank_candidates(drawing.problem, fresh, 1, np.array([tree]))
            if len(ranked.rows):
                self._choose(np.array([tree]), ranked.rows, ranked.score)
                self._is_approximate[tree] = not ranked.exact

    def _forget(self, trees: Trees) -> None:
        self._value[trees] = -np.inf
        self._chosen[trees] = NO_ROW
        self._is_approximate[trees] = False

    def _choose(self, trees: Trees, chosen: Choices, scores: Floats) -> None:
        self._chosen[trees] = chosen
        self._value[trees] = scores
