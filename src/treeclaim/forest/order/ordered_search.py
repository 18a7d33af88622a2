# SPDX-License-Identifier: Apache-2.0
"""Searches candidates by descending score (contract page 98, section 2).

Each tree has a ceiling: an upper bound of the scores of the candidates with its root as anchor. The search
visits trees by descending ceiling and scores all candidates of a visited tree. It stops when enough
candidates precede the ceilings of all remaining trees. Candidates with equal scores keep their canonical order.

A tree with more than `MOST_EXACT` candidates is searched heuristically by a beam, unless its first candidates
already reach its ceiling.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from treeclaim.forest.order.candidate_source import (
    CandidateSource,
    StagedTrees,
    count_bytes,
    drop_exchanges,
    shift_rows,
)
from treeclaim.forest.order.candidate_table import FULL_SCORE, CandidateRows, Units
from treeclaim.forest.order.scoring import Scoring, round_scores
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.combine import make_keys
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import find_all_anchors
from treeclaim.forest.solve.tree_kinds import TreeKinds
from treeclaim.forest.table.columns import Mask, Rows, Trees
from treeclaim.model.request import DEFAULT_CANDIDATES, MOST_CANDIDATES, Order

FIRST_BEST_TREES = 16
"""Trees of the first batch, those with the highest ceilings; each further batch is twice as large."""

MOST_EXACT = 50_000
"""Candidates of a tree up to which its search is exact (contract page 98, section 2.2, rule 3)."""

TOGETHER = 256
"""Candidates of a tree up to which it is scored together with other trees, regardless of its ceiling."""

SORTED_FIRST = 256
"""Trees with the highest ceilings that are sorted before the remaining trees."""

KINDS_FROM = 4096
"""Scored candidates from which only one tree of each kind is scored."""


@dataclass(slots=True)
class Ranking:
    """The scores of yielded candidates, and whether better candidates may be missing."""

    scores: list[float] = field(default_factory=list)
    is_approximate: bool = False


class ScoredCandidates(NamedTuple):
    """Candidates with their scores and the trees of their anchors; those of each tree are in canonical order."""

    tree: Trees
    rows: CandidateRows
    score: Floats

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays."""
        return self.tree.nbytes + count_bytes(self.rows) + self.score.nbytes

    def take(self, selection: "Rows | Mask | slice") -> "ScoredCandidates":
        """Return the selected candidates."""
        return ScoredCandidates(self.tree[selection], self.rows[selection], self.score[selection])


class RankedCandidates(NamedTuple):
    """Candidates and their scores, best first; at the first `exact` places no better candidate is missing."""

    rows: CandidateRows
    score: Floats
    exact: int


def draw_first_candidates(
    problem: Problem, order: Order, ranking: Ranking
) -> Iterator[CandidateRows]:
    """Yield the first candidates of the whole ordered list, and add their scores to the ranking."""
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
    problem: Problem,
    scoring: Scoring,
    wanted_count: int | None = None,
    anchors: Rows | None = None,
) -> RankedCandidates:
    """Return at most `wanted_count` candidates of some anchors (ascending numbers) in order; None means all."""
    with problem.budget.scope():
        return _OrderedSearch(problem, scoring, wanted_count, anchors).run()


_Key = tuple[float, int]
"""Sort key of a candidate or a ceiling: the negated score, and the number of the tree."""

_GREATEST_KEY: _Key = np.inf, 0


class _OrderedSearch:
    def __init__(
        self, problem: Problem, scoring: Scoring, wanted_count: int | None, anchors: Rows | None
    ) -> None:
        if wanted_count == 1:
            problem = drop_exchanges(problem, scoring.order)
        self._problem = problem
        self._scoring = scoring
        self._wanted_count = wanted_count
        self._anchors = find_all_anchors(problem) if anchors is None else anchors
        self._source = CandidateSource(problem, scoring)
        self._parts: list[ScoredCandidates] = []
        """The best candidates so far; a sorted first part, and unsorted further parts."""
        self._count = self._sorted_count = 0
        """Candidates in all parts, now and after the last sort."""
        self._last: _Key | None = None
        """The key of the last wanted candidate; None while there are too few."""
        self._approximate: dict[int, float] = {}
        """Ceilings of the heuristically searched trees, by number of the tree."""
        self._scored_count = 0
        self._kinds: TreeKinds | None = None
        self._stored: dict[int, tuple[CandidateRows, Units]] = {}
        """Candidates by tree, to copy to trees of the same kind."""

    def run(self) -> RankedCandidates:
        """Visit trees until no remaining tree can have a better candidate."""
        for ceiling, trees in self._make_batches():
            self._problem.budget.check()
            if self._has_enough_before((-float(ceiling[0]), int(trees[0]))):
                self._sort()
            selection = self._select_needed(ceiling, trees)
            if not len(trees[selection]):
                break
            self._visit(ceiling[selection], trees[selection])
        if not self._parts:
            return RankedCandidates(np.empty(0, dtype=object), np.zeros(0), 0)
        self._sort()
        ((tree, rows, score),) = self._parts
        keys = ((-ceiling, tree - 1) for tree, ceiling in self._approximate.items())
        is_exact = _is_before(score, tree, min(keys, default=_GREATEST_KEY))
        return RankedCandidates(rows, score, int(np.count_nonzero(is_exact)))

    # -- the best candidates so far --------------------------------------------------------------

    def _has_enough_before(self, key: _Key) -> bool:
        """Return whether enough candidates, counting repetitions, precede a key."""
        if self._wanted_count is None or self._count < self._wanted_count:
            return False
        before = (_is_before(part.score, part.tree, key) for part in self._parts)
        return sum(map(np.count_nonzero, before)) >= self._wanted_count

    def _select_needed(self, score: Floats, tree: Trees) -> Mask | slice:
        """Select the scores or ceilings that do not follow the last wanted candidate."""
        return slice(None) if self._last is None else _is_before(score, tree, self._last)

    def _add_scored(self, scored: ScoredCandidates) -> None:
        scored = scored.take(self._select_needed(scored.score, scored.tree))
        if not len(scored.tree):
            return
        self._problem.budget.hold(scored.nbytes)
        self._parts.append(scored)
        self._count += len(scored.tree)
        if self._wanted_count is not None:
            most = self._wanted_count if self._last is None else 2 * self._wanted_count + TOGETHER
            if self._count >= most:
                self._sort()

    def _sort(self) -> None:
        """Merge the parts in order, and drop the candidates beyond the wanted number."""
        if self._count == self._sorted_count:
            return
        parts = self._parts
        merged = ScoredCandidates(*map(np.concatenate, zip(*parts, strict=True)))
        # A stable sort keeps the canonical order within a tree.
        merged = merged.take(np.lexsort((merged.tree, -merged.score)))
        if self._problem.may_repeat:
            # Equal candidates have equal scores, so the candidate of the first tree comes first.
            merged = merged.take(_find_first_occurrences(merged.rows))
        merged = merged.take(slice(self._wanted_count))
        self._problem.budget.hold(merged.nbytes - sum(part.nbytes for part in parts))
        self._parts, self._count = [merged], len(merged.tree)
        self._sorted_count = self._count
        if len(merged.tree) == self._wanted_count:
            self._last = -float(merged.score[-1]), int(merged.tree[-1])

    # -- visiting trees --------------------------------------------------------------------------

    def _make_batches(self) -> Iterator[tuple[Floats, Trees]]:
        """Yield ceilings and trees in order: small batches at first, and where trees may have many candidates."""
        size = FIRST_BEST_TREES
        for ceiling, trees in self._sort_by_ceiling():
            begin = 0
            while begin < len(trees):
                part = slice(begin, begin + size)
                sizes = np.minimum(self._source.bound_counts(trees[part]), KINDS_FROM)
                cuts = np.flatnonzero(np.diff(sizes.cumsum() // KINDS_FROM)) + 1
                yield from zip(
                    np.split(ceiling[part], cuts), np.split(trees[part], cuts), strict=True
                )
                begin += size
                size *= 2

    def _sort_by_ceiling(self) -> Iterator[tuple[Floats, Trees]]:
        """Yield ceilings and trees, by descending ceiling, then in canonical order."""
        ceiling, least = self._scoring.compute_ceilings(self._anchors), -np.inf
        # Sorting all trees would take longer than a search that ends after a few trees.
        if len(ceiling) > SORTED_FIRST:
            least = np.partition(ceiling, -SORTED_FIRST)[-SORTED_FIRST]
        for mask in (ceiling >= least, ceiling < least):
            order = np.argsort(-ceiling[mask], kind="stable")
            yield ceiling[mask][order], self._anchors[mask][order]

    def _visit(self, ceilings: Floats, unsorted_trees: Trees) -> None:
        ceiling = dict(zip(unsorted_trees.tolist(), ceilings.tolist(), strict=True))
        trees, copies = np.sort(unsorted_trees), dict[int, int]()
        if self._wanted_count is not None and self._scored_count > KINDS_FROM:
            if self._kinds is None:
                related = [room.relate_requests() for room in self._scoring.rooms]
                self._kinds = TreeKinds(self._problem, related)
            if self._kinds.is_worthwhile:
                first_trees = self._kinds.first_trees(trees)
                is_first = first_trees == trees
                copies = dict(
                    zip(trees[~is_first].tolist(), first_trees[~is_first].tolist(), strict=True)
                )
                trees = trees[is_first]
        staged = StagedTrees(self._source, trees)
        with self._problem.budget.held(staged.nbytes):
            is_small = staged.bound_counts() <= TOGETHER
            if is_small.any():
                small_trees, rows = staged.draw_all(np.flatnonzero(is_small))
                self._score(small_trees, rows)
            for index in np.flatnonzero(~is_small).tolist():
                self._visit_large(staged, index, ceiling[int(staged.trees[index])])
        for tree, first_tree in copies.items():
            self._copy(tree, first_tree, ceiling[tree])

    def _score(self, trees: Trees, rows: CandidateRows) -> None:
        """Score and add candidates; those of each tree are consecutive, in canonical order."""
        if not len(rows):
            return
        self._scored_count += len(rows)
        units = self._scoring.compute_units(rows)
        if self._kinds is not None and self._kinds.is_worthwhile:
            begin = np.flatnonzero(np.diff(trees, prepend=-1))
            for first, end in pairwise([*begin.tolist(), len(trees)]):
                self._store(int(trees[first]), rows[first:end], units[first:end])
        self._add_scored(ScoredCandidates(trees, rows, round_scores(units)))

    def _store(self, tree: int, rows: CandidateRows, units: Units) -> None:
        if self._wanted_count is not None and len(rows) > self._wanted_count:
            # Units that round to equal scores differ by less than this.
            least = np.partition(units, -self._wanted_count)[-self._wanted_count] - int(
                FULL_SCORE * 2e-12
            )
            is_kept = units >= least
            rows, units = rows[is_kept], units[is_kept]
        self._problem.budget.hold(count_bytes(rows) + units.nbytes)
        self._stored[tree] = rows, units

    def _copy(self, tree: int, first_tree: int, ceiling: float) -> None:
        """Add the candidates of a tree, derived from the stored tree of its kind."""
        if first_tree not in self._stored:
            return
        self._problem.budget.check()
        rows, units = self._stored[first_tree]
        by_tree = self._scoring.by_tree
        score = round_scores(units + (by_tree[tree] - by_tree[first_tree]))
        trees = np.full(len(units), tree)
        if first_tree in self._approximate:
            self._approximate[tree] = ceiling
        selection = self._select_needed(score, trees)
        rows = rows[selection]
        if len(rows):
            roots = self._problem.order.roots
            rows = shift_rows(rows, int(roots[tree] - roots[first_tree]))
            self._add_scored(ScoredCandidates(trees[selection], rows, score[selection]))

    def _visit_large(self, staged: StagedTrees, index: int, ceiling: float) -> None:
        """Score the candidates of one tree until enough of them reach its ceiling."""
        tree, wanted_count = int(staged.trees[index]), self._wanted_count
        most = MOST_EXACT
        if wanted_count is not None:
            most = TOGETHER if staged.count_at_least(index, MOST_EXACT) > MOST_EXACT else most
            most = max(most, wanted_count - 1)
        blocks: list[CandidateRows] = []
        count = best_count = 0
        budget = self._problem.budget
        with budget.scope():
            for _, rows in staged.draw(np.array([index])):
                budget.hold(count_bytes(rows))
                blocks.append(rows)
                count += len(rows)
                if wanted_count is not None:
                    best_count += int(
                        np.count_nonzero(self._scoring.compute_scores(rows) >= ceiling)
                    )
                    if best_count >= wanted_count:
                        break
                if count > most:
                    blocks.append(staged.search_beam(index))
                    drawn_rows = np.concatenate(blocks)
                    blocks = [drawn_rows[_find_first_occurrences(drawn_rows)]]
                    self._approximate[tree] = ceiling
                    break
        if blocks:
            rows = np.concatenate(blocks)
            self._score(np.full(len(rows), tree), rows)


def _is_before(score: Floats, tree: Trees, key: _Key) -> Mask:
    """Compare scores under trees with a key; equality counts as before."""
    is_before: Mask = (-score < key[0]) | ((-score == key[0]) & (tree <= key[1]))
    return is_before


def _find_first_occurrences(rows: CandidateRows) -> Rows:
    """Return the ascending positions of the first occurrences of each candidate."""
    keys: Sequence[Hashable]
    keys = [each.key for each in rows.tolist()] if rows.dtype == object else make_keys(rows)
    first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
    return np.sort(np.fromiter(first.values(), dtype=np.int64, count=len(first)))
