# SPDX-License-Identifier: Apache-2.0
"""Candidates by descending score (contract page 98, section 2).

Each tree has a ceiling: a score that no candidate with its root as anchor exceeds. Trees are visited by
descending ceiling, a few at a time, and all candidates of a visited tree are scored, until as many as are
wanted come before the ceilings of all trees that were not visited. Candidates with equal scores keep the
order of the same search without an order.

A tree with more candidates than `MOST_EXACT` is searched heuristically (`drawing.py`), unless its first
candidates already reach its ceiling.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from treeclaim.forest.order.drawing import (
    Drawing,
    ReadyTrees,
    bytes_of,
    moved,
    without_exchanges,
)
from treeclaim.forest.order.scoring import Scoring, round_scores
from treeclaim.forest.order.term import ONE, CandidateRows, Units
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.combine import keys_of
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import all_anchors
from treeclaim.forest.solve.tree_kinds import TreeKinds
from treeclaim.forest.table.columns import Mask, Rows, Trees
from treeclaim.model.request import DEFAULT_CANDIDATES, MOST_CANDIDATES, Order

FIRST_BEST_TREES = 16
"""Trees that are staged together at first, those with the highest ceilings; then twice as many."""

MOST_EXACT = 50_000
"""Candidates of a tree up to which its search is exact (contract page 98, section 2.2, rule 3)."""

TOGETHER = 256
"""Candidates of a tree up to which it is scored together with other trees, without looking at its ceiling."""

SORTED_FIRST = 256
"""Trees that are sorted by their ceilings before all others are."""

KINDS_FROM = 4096
"""Number of candidates in visited trees from which trees of one kind are scored once."""


@dataclass(slots=True)
class Ranking:
    """The statistics of an ordered search.

    Attributes:
        scores: Their scores, in order.
        is_approximate: Whether better candidates may be missing.
    """

    scores: list[float] = field(default_factory=list)
    is_approximate: bool = False


class ScoredCandidates(NamedTuple):
    """Scored candidates; those of each tree are in canonical order.

    Attributes:
        tree: Number of the tree of each candidate's anchor.
        rows: The candidates.
        score: Their scores.
    """

    tree: Trees
    rows: CandidateRows
    score: Floats

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""
        return self.tree.nbytes + bytes_of(self.rows) + self.score.nbytes

    def take(self, which: "Rows | Mask | slice") -> "ScoredCandidates":
        """Return some of the candidates."""
        return ScoredCandidates(self.tree[which], self.rows[which], self.score[which])


class RankedCandidates(NamedTuple):
    """The first candidates of an order.

    Attributes:
        rows: The candidates, best first.
        score: Their scores.
        exact: The number of candidates before the first that may not belong there, as better ones may be missing.
    """

    rows: CandidateRows
    score: Floats
    exact: int


def first_candidates(problem: Problem, order: Order, ranking: Ranking) -> Iterator[CandidateRows]:
    """Yield the first candidates of the whole ordered list, and write down their scores.

    Args:
        problem: The search.
        order: The order of its candidates.
        ranking: Receives the scores of the candidates yielded.
    """
    limit, maximum = problem.plan.request.limit, problem.options.maximum
    count = min(DEFAULT_CANDIDATES if limit is None else limit, MOST_CANDIDATES)
    count = count if maximum is None else min(count, maximum)
    if count:
        ranked = rank_candidates(problem, Scoring(problem, order), count)
        ranking.scores += ranked.score.tolist()
        ranking.is_approximate = ranked.exact < len(ranked.rows)
        if len(ranked.rows):
            yield ranked.rows


def rank_candidates(
    problem: Problem, scoring: Scoring, wanted: int | None = None, anchors: Rows | None = None
) -> RankedCandidates:
    """Return the first candidates of a search in order.

    Args:
        problem: The search.
        scoring: Its scores.
        wanted: The most candidates to return; None for all.
        anchors: Numbers of the anchors to search, ascending; None for all.
    """
    with problem.budget.scope():
        return _OrderedSearch(problem, scoring, wanted, anchors).run()


_Key = tuple[float, int]
"""A score, negated, and the number of a tree: what comes first has the smaller key."""

_BEHIND_ALL: _Key = np.inf, 0


class _OrderedSearch:
    """Searches trees, and keeps the best candidates found so far."""

    def __init__(
        self, problem: Problem, scoring: Scoring, wanted: int | None, anchors: Rows | None
    ) -> None:
        if wanted == 1:
            problem = without_exchanges(problem, scoring.order)
        self._problem = problem
        self._scoring = scoring
        self._wanted = wanted
        self._anchors = all_anchors(problem) if anchors is None else anchors
        self._drawing = Drawing(problem, scoring)
        self._parts: list[ScoredCandidates] = []
        self._count = self._sorted = 0
        """How many candidates the parts have, and had when they were sorted."""
        self._last: _Key | None = None
        """The key of the last candidate wanted; None while there are not enough."""
        self._approximate: dict[int, float] = {}
        """The ceilings of the trees that were searched heuristically."""
        self._visited = 0
        self._kinds: TreeKinds | None = None
        self._of_tree: dict[int, tuple[CandidateRows, Units]] = {}
        """Candidates of trees, for other trees of the same kind."""

    def run(self) -> RankedCandidates:
        """Visit trees until no other one can have a better candidate."""
        for ceiling, trees in self._batches():
            self._problem.budget.check()
            if self._are_enough_before((-float(ceiling[0]), int(trees[0]))):
                self._sort()
            needed = self._needed(ceiling, trees)
            if not len(trees[needed]):
                break
            self._visit(ceiling[needed], trees[needed])
        if not self._parts:
            return RankedCandidates(np.empty(0, dtype=object), np.zeros(0), 0)
        self._sort()
        ((tree, rows, score),) = self._parts
        keys = ((-ceiling, tree - 1) for tree, ceiling in self._approximate.items())
        are_exact = _are_before(score, tree, min(keys, default=_BEHIND_ALL))
        return RankedCandidates(rows, score, int(np.count_nonzero(are_exact)))

    # -- the best candidates so far --------------------------------------------------------------

    def _are_enough_before(self, key: _Key) -> bool:
        """Return whether as many candidates as are wanted come before a key, perhaps some of them twice."""
        if self._wanted is None or self._count < self._wanted:
            return False
        before = (_are_before(part.score, part.tree, key) for part in self._parts)
        return sum(map(np.count_nonzero, before)) >= self._wanted

    def _needed(self, score: Floats, tree: Trees) -> Mask | slice:
        """Return which scores, or ceilings, of candidates under trees are not behind the last one wanted."""
        return slice(None) if self._last is None else _are_before(score, tree, self._last)

    def _take(self, scored: ScoredCandidates) -> None:
        """Add candidates, except for those behind as many as are wanted."""
        scored = scored.take(self._needed(scored.score, scored.tree))
        if not len(scored.tree):
            return
        self._problem.budget.hold(scored.nbytes)
        self._parts.append(scored)
        self._count += len(scored.tree)
        if self._wanted is not None:
            most = self._wanted if self._last is None else 2 * self._wanted + TOGETHER
            if self._count >= most:
                self._sort()

    def _sort(self) -> None:
        """Put the candidates in order, and drop those behind as many as are wanted."""
        if self._count == self._sorted:
            return
        parts = self._parts
        whole = ScoredCandidates(*map(np.concatenate, zip(*parts, strict=True)))
        # A stable sort keeps the canonical order within a tree.
        whole = whole.take(np.lexsort((whole.tree, -whole.score)))
        if self._problem.may_repeat:
            # Of equal candidates, which have equal scores, that of the first tree comes first.
            whole = whole.take(_first_places(whole.rows))
        whole = whole.take(slice(self._wanted))
        self._problem.budget.hold(whole.nbytes - sum(part.nbytes for part in parts))
        self._parts, self._count = [whole], len(whole.tree)
        self._sorted = self._count
        if len(whole.tree) == self._wanted:
            self._last = -float(whole.score[-1]), int(whole.tree[-1])

    # -- visiting trees --------------------------------------------------------------------------

    def _batches(self) -> Iterator[tuple[Floats, Trees]]:
        """Yield ceilings and trees in order, few trees together at first and where each may have many candidates."""
        size = FIRST_BEST_TREES
        for ceiling, trees in self._by_ceiling():
            begin = 0
            while begin < len(trees):
                part = slice(begin, begin + size)
                sizes = np.minimum(self._drawing.estimate(trees[part]), KINDS_FROM)
                cuts = np.flatnonzero(np.diff(sizes.cumsum() // KINDS_FROM)) + 1
                yield from zip(
                    np.split(ceiling[part], cuts), np.split(trees[part], cuts), strict=True
                )
                begin += size
                size *= 2

    def _by_ceiling(self) -> Iterator[tuple[Floats, Trees]]:
        """Yield ceilings and trees, by descending ceiling, then in canonical order.

        Sorting all trees would take longer than examining the few that matter.
        """
        ceiling, least = self._scoring.ceilings(self._anchors), -np.inf
        if len(ceiling) > SORTED_FIRST:
            least = np.partition(ceiling, -SORTED_FIRST)[-SORTED_FIRST]
        for which in (ceiling >= least, ceiling < least):
            order = np.argsort(-ceiling[which], kind="stable")
            yield ceiling[which][order], self._anchors[which][order]

    def _visit(self, ceilings: Floats, unsorted_trees: Trees) -> None:
        """Score the candidates of some trees."""
        ceiling = dict(zip(unsorted_trees.tolist(), ceilings.tolist(), strict=True))
        trees, copies = np.sort(unsorted_trees), dict[int, int]()
        if self._wanted is not None and self._visited > KINDS_FROM:
            if self._kinds is None:
                related = [room.related() for room in self._scoring.rooms]
                self._kinds = TreeKinds(self._problem, related)
            if self._kinds.is_worthwhile:
                first_trees = self._kinds.first_trees(trees)
                is_first = first_trees == trees
                copies = dict(
                    zip(trees[~is_first].tolist(), first_trees[~is_first].tolist(), strict=True)
                )
                trees = trees[is_first]
        ready = ReadyTrees(self._drawing, trees)
        with self._problem.budget.held(ready.nbytes):
            is_small = ready.most() <= TOGETHER
            if is_small.any():
                small_trees, rows = ready.all_of(np.flatnonzero(is_small))
                self._add(small_trees, rows)
            for at in np.flatnonzero(~is_small).tolist():
                self._visit_large(ready, at, ceiling[int(ready.trees[at])])
        for tree, first_tree in copies.items():
            self._copy(tree, first_tree, ceiling[tree])

    def _add(self, trees: Trees, rows: CandidateRows) -> None:
        """Score candidates, those of each tree in canonical order, and add them to the pool."""
        if not len(rows):
            return
        self._visited += len(rows)
        units = self._scoring.units(rows)
        if self._kinds is not None and self._kinds.is_worthwhile:
            begin = np.flatnonzero(np.diff(trees, prepend=-1))
            for first, end in pairwise([*begin.tolist(), len(trees)]):
                self._keep(int(trees[first]), rows[first:end], units[first:end])
        self._take(ScoredCandidates(trees, rows, round_scores(units)))

    def _keep(self, tree: int, rows: CandidateRows, units: Units) -> None:
        """Keep the candidates of a tree for the other trees of its kind."""
        if self._wanted is not None and len(rows) > self._wanted:
            # Scores that are rounded alike are within this distance of each other.
            least = np.partition(units, -self._wanted)[-self._wanted] - int(ONE * 2e-12)
            kept = units >= least
            rows, units = rows[kept], units[kept]
        self._problem.budget.hold(bytes_of(rows) + units.nbytes)
        self._of_tree[tree] = rows, units

    def _copy(self, tree: int, first_tree: int, ceiling: float) -> None:
        """Add the candidates of a tree by those of another tree of its kind."""
        if first_tree not in self._of_tree:
            return
        self._problem.budget.check()
        rows, units = self._of_tree[first_tree]
        by_tree = self._scoring.by_tree
        score = round_scores(units + (by_tree[tree] - by_tree[first_tree]))
        trees = np.full(len(units), tree)
        if first_tree in self._approximate:
            self._approximate[tree] = ceiling
        needed = self._needed(score, trees)
        rows = rows[needed]
        if len(rows):
            roots = self._problem.order.roots
            rows = moved(rows, int(roots[tree] - roots[first_tree]))
            self._take(ScoredCandidates(trees[needed], rows, score[needed]))

    def _visit_large(self, ready: ReadyTrees, at: int, ceiling: float) -> None:
        """Score the candidates of one tree until as many as are wanted reach its ceiling."""
        tree, needed_count = int(ready.trees[at]), self._wanted
        most = MOST_EXACT
        if needed_count is not None:
            most = TOGETHER if ready.least(at, MOST_EXACT) > MOST_EXACT else most
            most = max(most, needed_count - 1)
        parts: list[CandidateRows] = []
        count = best = 0
        budget = self._problem.budget
        with budget.scope():
            for _, rows in ready.draw(np.array([at])):
                budget.hold(bytes_of(rows))
                parts.append(rows)
                count += len(rows)
                if needed_count is not None:
                    best += int(np.count_nonzero(self._scoring.scores(rows) >= ceiling))
                    if best >= needed_count:
                        break
                if count > most:
                    parts.append(ready.best(at))
                    drawn = np.concatenate(parts)
                    parts = [drawn[_first_places(drawn)]]
                    self._approximate[tree] = ceiling
                    break
        if parts:
            rows = np.concatenate(parts)
            self._add(np.full(len(rows), tree), rows)


def _are_before(score: Floats, tree: Trees, key: _Key) -> Mask:
    """Return which scores under trees come before a key, or have it."""
    before: Mask = (-score < key[0]) | ((-score == key[0]) & (tree <= key[1]))
    return before


def _keys(rows: CandidateRows) -> Sequence[Hashable]:
    """Return what each candidate is compared by."""
    return [each.key for each in rows.tolist()] if rows.dtype == object else keys_of(rows)


def _first_places(rows: CandidateRows) -> Rows:
    """Return where each candidate stands first, ascending."""
    keys = _keys(rows)
    first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
    return np.sort(np.fromiter(first.values(), dtype=np.int64, count=len(first)))
