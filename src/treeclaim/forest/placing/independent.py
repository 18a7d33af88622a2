# SPDX-License-Identifier: Apache-2.0
"""Queries in which trees do not affect each other, as every provider serves only its own tree.

Such a query remembers the first candidate of each tree, and looks again at a tree in which something
was taken.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import are_any, have_room_together
from treeclaim.forest.order.mixes.choices import Choosing
from treeclaim.forest.order.mixes.request_counts import related
from treeclaim.forest.order.mixes.requests import requests_of
from treeclaim.forest.order.ordered import OrderedSearch
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import Coupled, Divided, Keeps, Query, mask_of
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import distinct_blocks
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.model.extension.order import TermName
from treeclaim.model.request import CandidateRequest

_BYTES_FOR_A_TREE = 200
"""The memory of a kept query for each tree: its own columns, and those of a search with its scores."""

_BYTES_FOR_A_CANDIDATE = 1_500
"""Bytes that a kept candidate takes, with some suffixed groups."""

_OF_PROVIDERS = frozenset({TermName.PREFERRED, TermName.NEAR, TermName.FAR})
"""Terms that look at more of a provider than what is used of it."""


class Independent(Query):
    """A query in which every candidate is of one tree, and no tree concerns another one."""

    def __init__(
        self, scratch: Scratch, request: CandidateRequest, budget: Budget, problem: Problem
    ) -> None:
        super().__init__(scratch, request, budget)
        self._begin = problem
        self._seen = scratch.moment
        """Up to when the changes of trees are taken in."""
        self._scoring = self.scoring(problem)
        roots = len(scratch.forest.order.roots)
        anchors = all_anchors(problem)
        self._value = np.full(roots, -np.inf)
        """The score of each tree's first candidate; at first one that it does not exceed."""
        self._best: dict[int, Candidate] = {}
        self._changed = np.zeros(roots, dtype=np.bool_)
        """Trees in which something was taken since they were looked at; they wait, with no value."""
        self._grown = np.zeros(roots, dtype=np.bool_)
        """Trees in which an amount may have been given back."""
        self._now: tuple[int, Problem] | None = None
        """A moment, and the search as things are then."""
        self._possible = self._with_providers()
        self._choosing = self._choices()
        self._chosen = np.empty((0, 0), dtype=np.int64)
        """The providers of each tree's first candidate, where few choices are to be made."""
        if self._choosing is not None:
            self._simple = np.zeros(roots, dtype=np.bool_)
            self._chosen = np.zeros((roots, len(problem.relations)), dtype=np.int64)
            self._choose(self._choosing, anchors)
        else:
            ceilings = 0 if self._scoring is None else self._scoring.ceilings(anchors)
            self._value[anchors] = ceilings
            self._simple = self._without_choice(anchors)

    def _with_providers(self) -> Mask:
        """Tell which trees would have a candidate if there were room."""
        reached = [relation.pairs.reached for relation in self._begin.relations]
        allowed = self._begin.allowed
        possible: Mask = np.logical_and.reduce(reached if allowed is None else [*reached, allowed])
        return possible

    def _choices(self) -> Choosing | None:
        """Return what chooses in many trees at once; None where providers are more than their room."""
        order = self.request.order
        names = () if order is None else [term.name for term in order.terms]
        return None if _OF_PROVIDERS & set(names) else Choosing.of(self._begin, order)

    def _choose(self, choosing: Choosing, trees: Rows) -> None:
        """Find the first candidates of some trees as things are now."""
        self._value[trees] = -np.inf
        self._changed[trees] = self._grown[trees] = False
        for tree in trees.tolist() if self._best else ():
            self._best.pop(tree, None)
        some = choosing.some(trees)
        # What is left open is looked at when its turn comes.
        self._value[some.undecided] = np.inf
        if not len(some.tree):
            return
        scores = (
            np.zeros(len(some.tree))
            if self._scoring is None
            else self._scoring.scores(some.chosen)
        )
        begin = np.flatnonzero(np.diff(some.tree, prepend=-1))
        best = np.maximum.reduceat(scores, begin)
        at = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(scores)))
        first = np.flatnonzero(scores == best[at])
        _, which = np.unique(at[first], return_index=True)
        trees = some.tree[begin]
        self._value[trees] = best
        self._chosen[trees] = some.chosen[first[which]]

    def _without_choice(self, anchors: Rows) -> Mask:
        """Work out the trees in which there is one provider for each slot, all at once."""
        if not self._begin.rules.are_free:
            return np.zeros(len(self._value), dtype=np.bool_)
        relations = self._begin.relations
        counts = [np.diff(relation.pairs.starts) == 1 for relation in relations]
        simple: Mask = np.logical_and.reduce([self._possible, *counts])
        if self._scoring is not None:
            some = anchors[simple[anchors]]
            self._value[some] = self._scoring.scores(self._only(some))
        return simple

    def _only(self, trees: Rows) -> Choices:
        """Return the only providers of some trees without a choice."""
        return np.stack(
            [
                relation.pairs.provider[relation.pairs.starts[trees]]
                for relation in self._begin.relations
            ],
            axis=1,
        )

    @property
    def nbytes(self) -> int:
        """Return the bytes that this takes, about, with what it was made from."""
        trees = len(self._value) * _BYTES_FOR_A_TREE
        return super().nbytes + trees + len(self._best) * _BYTES_FOR_A_CANDIDATE

    def _catch_up(self) -> None:
        """Note which trees are to be looked at again, as something has changed in them."""
        scratch = self.scratch
        if self._seen == scratch.moment:
            return
        # What did not fit does not fit with less room.
        changed = (scratch.taken_at > self._seen) & (self._value > -np.inf)
        grown = (scratch.followed_at > self._seen) & self._possible
        changed |= grown
        self._changed |= changed
        self._grown |= grown
        self._value[changed] = -np.inf
        self._seen = scratch.moment

    def kept(self) -> Callable[[], None]:
        """Keep what is known of each tree, for where something changes and changes back."""
        self._catch_up()
        seen, value, best = self._seen, self._value.copy(), self._best.copy()
        waiting, grown = self._changed.copy(), self._grown.copy()
        chosen = self._chosen.copy()

        def undone() -> None:
            scratch = self.scratch
            changed = np.maximum(scratch.taken_at, scratch.followed_at) > seen
            self._value[changed] = value[changed]
            self._changed[changed] = waiting[changed]
            self._grown[changed] = grown[changed]
            if len(chosen):
                self._chosen[changed] = chosen[changed]
            for tree in np.flatnonzero(changed).tolist():
                self._best.pop(tree, None)
                if tree in best:
                    self._best[tree] = best[tree]
            self._seen = scratch.moment

        return undone

    def first(self, allowed: Mask, keeps: Keeps) -> Candidate | None:
        """Return the first candidate of the best tree that is allowed."""
        del keeps
        self._catch_up()
        again = np.flatnonzero(self._changed & allowed)
        if self._choosing is not None:
            self.budget.check()
            self._choose(self._choosing, again)
        else:
            for changed in again.tolist():
                self.budget.check()
                self._look_at(changed)
        while (tree := self._best_of(allowed)) is not None:
            is_known = self._choosing is not None and self._value[tree] < np.inf
            if self._simple[tree] or tree in self._best or is_known:
                return self._best_in(tree)
            self.budget.check()
            self._look_at(tree)
        return None

    def _best_of(self, allowed: Mask) -> int | None:
        """Return the tree with the greatest value of those allowed, the first of equals."""
        if not len(allowed):
            return None
        tree = int(self._value.argmax())
        if not allowed[tree]:
            values = np.where(allowed, self._value, -np.inf)
            tree = int(values.argmax())
        return tree if allowed[tree] and self._value[tree] > -np.inf else None

    def _best_in(self, tree: int) -> Candidate:
        best = self._best.get(tree)
        if best is None:
            if self._choosing is not None:
                only = self._chosen[tree].tolist()
            else:
                (only,) = self._only(np.array([tree], dtype=np.int64)).tolist()
            best = self._best[tree] = self.made(self._begin, only)
        return best

    def _look_at(self, tree: int) -> None:
        """Find the first candidate of a tree as things are now."""
        is_changed = bool(self._changed[tree]) or self._choosing is not None
        is_grown = bool(self._grown[tree])
        self._changed[tree] = self._grown[tree] = False
        if self._simple[tree]:
            self._judge_simple(tree)
            return
        best = self._best.pop(tree, None)
        if best is not None and not is_grown and self._scoring is None and self._fits(best):
            # In the usual order the first one stays the first one as long as it fits.
            self._value[tree], self._best[tree] = 0, best
            return
        problem = self._searched_now() if is_changed else self._begin
        scoring = self.scoring(problem) if is_changed else self._scoring
        anchor = np.array([tree], dtype=np.int64)
        self._value[tree] = -np.inf
        if scoring is None:
            block = next(iter(distinct_blocks(problem, anchor)), None)
            if block is not None and len(block.chosen):
                self._value[tree] = 0
                self._best[tree] = self.made(problem, block.chosen[0].tolist())
            return
        for ranked in OrderedSearch(problem, scoring, 1, anchor):
            self._value[tree] = ranked.score[0]
            candidate = self.made(problem, ranked.rows[0].tolist())
            self._best[tree] = replace(candidate, is_approximate=ranked.is_approximate)
            return

    def _searched_now(self) -> Problem:
        """Return the search as things are now, once for all trees that are looked at."""
        if self._now is None or self._now[0] != self.scratch.moment:
            self._now = self.scratch.moment, self.searched()
        return self._now[1]

    def _fits(self, candidate: Candidate) -> bool:
        """Tell whether there is room for all that a candidate takes together."""
        together: dict[tuple[int, str], int] = {}
        for position, name, amount in candidate.allocations:
            together[position, name] = together.get((position, name), 0) + amount
        allocations = tuple((position, name, n) for (position, name), n in together.items())
        return self._has_room(replace(candidate, allocations=allocations))

    def _judge_simple(self, tree: int) -> None:
        best = self._best_in(tree)
        if not self._has_room(best):
            self._value[tree] = -np.inf
            return
        # The providers of its slots, in their order.
        only = np.array([[position for _, position in best.served]], dtype=np.int64)
        self._value[tree] = 0 if self._scoring is None else self._scoring.scores(only)[0]

    def _has_room(self, candidate: Candidate) -> bool:
        forest = self.scratch.forest
        for position, name, amount in candidate.allocations:
            columns = forest.class_inventories(name)
            if not columns.has_room(columns.index_of(position), amount):
                return False
        return not are_any(forest) or have_room_together(forest, candidate.allocations)

    def matching(self) -> Mask | None:
        """Tell which trees have a candidate."""
        return mask_of(self.searched())


def query_of(scratch: Scratch, request: CandidateRequest, budget: Budget) -> Query:
    """Return a query that is answered in the quickest way that is right for it."""
    problem = related(scratch.forest, request, budget)
    if problem.plan.split:
        return Divided(scratch, request, budget)
    mixes = () if request.order is None else request.order.mixes
    if all(relation.pairs.is_local for relation in problem.relations) and all(
        requests_of(scratch.forest, mix, budget).are_apart for mix in mixes
    ):
        return Independent(scratch, request, budget, problem)
    return Coupled(scratch, request, budget)
