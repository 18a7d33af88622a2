# SPDX-License-Identifier: Apache-2.0
"""The candidates of stages: one anchor after the other, or all in turn; and whether there are any at all.

A candidate that consists of sharing providers can be reached from several anchors, and is returned
once (contract page 90, section 3.1, last point). Earlier candidates are not remembered,
as there may be very many. Instead, a candidate counts under the first anchor that reaches all its
providers; no rule between providers depends on the anchor, so the search finds it there.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import sharing_rows
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.solve.partial.blocks import Anchored, CandidateBlock, Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import (
    SMALLEST_BLOCK,
    Pace,
    Stage,
    all_anchors,
    find_anchors,
    prepare_stages,
    stage_of,
)
from treeclaim.forest.solve.tree_kinds import kinds_where_slow
from treeclaim.forest.table.columns import Integers, Mask, Rows, Trees, search_ascending


def distinct(problem: Problem, blocks: Iterator[CandidateBlock]) -> Iterator[Choices]:
    """Leave out candidates that an earlier anchor has too."""
    first = first_anchors(problem, problem.relations)
    for block in blocks:
        yield block.chosen if first is None else block.chosen[first.are_first(block)]


def first_anchors(problem: Problem, relations: Sequence[Relation]) -> "FirstAnchors | None":
    """Return what recognises repetitions; None if no candidate can be of only sharing providers."""
    if not all(relation.has_sharing for relation in relations):
        return None
    sharing = sharing_rows(problem.forest)
    return FirstAnchors(relations, problem.allowed, sharing, problem.budget)


class FirstAnchors:
    """Decides which candidates are also found under an earlier anchor."""

    def __init__(
        self,
        relations: Sequence[Relation],
        allowed: Mask | None,
        sharing: Mask,
        budget: Budget,
    ) -> None:
        """Prepare the lookup; nothing is computed before it is needed.

        Args:
            relations: The providers of each slot, with their anchors.
            allowed: Which roots may be anchors, shape (roots,); None for all.
            sharing: Which rows are sharing providers, shape (rows,).
            budget: The budget of the question.
        """
        self._relations = relations
        self._allowed = allowed
        self._sharing = sharing
        self._budget = budget
        self._keys: list[Integers] = []
        self._anchor_count = max(len(relation.pairs.starts) - 1 for relation in relations)

    def are_first(self, candidates: CandidateBlock) -> Mask:
        """Return which candidates, given with the numbers of their anchors, are not repetitions."""
        are_first = np.ones(len(candidates.chosen), dtype=np.bool_)
        shared = np.flatnonzero(np.logical_and.reduce(self._sharing[candidates.chosen], axis=1))
        if len(shared):
            chosen = candidates.chosen[shared]
            start = np.zeros(len(shared), dtype=np.int64)
            first = self.first_common(range(len(self._relations)), chosen, start)
            are_first[shared] = first == candidates.tree[shared]
        return are_first

    def first_common(self, relations: Sequence[int], chosen: Choices, start: Integers) -> Integers:
        """Return the first anchor, from one on, that reaches all providers of each candidate.

        Each column in turn advances to the first anchor of its provider that is not before the anchor
        of the other columns, until all agree; they do at the candidate's own anchor at the latest.

        Args:
            relations: The number of the relation of each column.
            chosen: Rows of providers.
            start: The first anchor that counts, by candidate.
        """
        if not self._keys:
            self._keys = self._lent_to()
        first = start.copy()
        pending = np.arange(len(chosen))
        while len(pending):
            self._budget.check()
            reached = before = first[pending]
            for column, relation in enumerate(relations):
                keys, base = self._keys[relation], chosen[pending, column] * self._anchor_count
                reached = keys[search_ascending(keys, base + reached)] - base
            first[pending] = reached
            pending = pending[reached != before]
        return first

    def _lent_to(self) -> list[Integers]:
        """Return for each slot `provider * anchors + anchor` of its sharing providers, ascending."""
        keys_by_relation: dict[int, Integers] = {}
        for relation in self._relations:
            if id(relation) not in keys_by_relation:
                keys_by_relation[id(relation)] = self._keys_of(relation)
                self._budget.hold(keys_by_relation[id(relation)].nbytes)
        return [keys_by_relation[id(relation)] for relation in self._relations]

    def _keys_of(self, relation: Relation) -> Integers:
        pairs = relation.pairs
        numbers = pairs.sharing
        if relation.fits is not None:
            numbers = numbers[relation.fits[numbers]]
        anchor = search_ascending(pairs.starts, numbers, side="right") - 1
        keys: Integers = pairs.provider[numbers] * self._anchor_count + anchor
        if self._allowed is not None:
            keys = keys[self._allowed[anchor]]
        keys.sort()
        return keys


_FIRST_ROUND = 1


def combine_stages(
    problem: Problem, stages: Iterator[Stage], pace: Pace
) -> Iterator[CandidateBlock]:
    """Yield all candidates of some stages, in canonical order or by turns.

    Yields:
        Candidates with the number of the tree of each one's anchor.
    """
    for stage in stages:
        draw = stage.combiner.blocks
        is_fruitless = True
        with problem.budget.held(stage.nbytes):
            size = pace.rows
            for anchor, chosen in (
                in_turn(draw, stage.live, size) if problem.takes_turns else draw(stage.live, size)
            ):
                is_fruitless = False
                yield CandidateBlock(stage.trees[anchor], chosen)
        pace.note_stage(is_fruitless=is_fruitless)


def combined_under(problem: Problem, trees: Trees | None = None) -> Iterator[CandidateBlock]:
    """Yield all candidates under some anchors (numbers of trees, ascending), or under all."""
    pace = Pace(problem)
    reached = find_anchors(problem, pace) if trees is None else iter([trees])
    return combine_stages(problem, prepare_stages(problem, reached, pace), pace)


def combined_from(problem: Problem, tree: int, count: int) -> Iterator[CandidateBlock]:
    """Yield the candidates under the anchors from a tree on, of which so many will be drawn."""
    pace = Pace(problem, count)
    return combine_stages(
        problem, prepare_stages(problem, find_anchors(problem, pace, tree), pace), pace
    )


def distinct_candidates(problem: Problem, trees: Trees | None = None) -> Iterator[Choices]:
    """Yield all candidates under some anchors, or all, in the usual order; none comes twice."""
    return distinct(problem, combined_under(problem, trees))


def in_turn(
    draw: Callable[[Trees, int], Iterator[Anchored]], anchors: Trees, size: int
) -> Iterator[Anchored]:
    """Visit the anchors in turn, so that each is represented before any is exhausted.

    In each round every anchor yields twice as many candidates as in the round before, or all it has.
    The number of rounds therefore stays small, and the order does not depend on the number of candidates
    wanted. The search of an anchor begins with its first turn.

    Args:
        draw: Draws the candidates of some anchors with blocks of at most this size.
        anchors: Indices, ascending.
        size: Candidates wanted in all, at most.
    """
    size_of_each = max(size // max(len(anchors), 1), 1)
    waiting = [_Source(draw(anchors[[index]], size_of_each)) for index in range(len(anchors))]
    turn = _FIRST_ROUND
    while waiting:
        still = []
        for source in waiting:
            remaining_count = turn
            while remaining_count and (block := source.take(remaining_count)) is not None:
                yield block
                remaining_count -= len(block.chosen)
            if not remaining_count:
                still.append(source)
        waiting = still
        turn *= 2


class _Source:
    """The candidates of one anchor, taken some at a time."""

    def __init__(self, blocks: Iterator[Anchored]) -> None:
        self._blocks = blocks
        self._rest: Anchored | None = None

    def take(self, count: int) -> Anchored | None:
        """Return at most a number of candidates, None if there are no more."""
        while self._rest is None or not len(self._rest.chosen):
            self._rest = next(self._blocks, None)
            if self._rest is None:
                return None
        anchor, chosen = self._rest
        self._rest = Anchored(anchor[count:], chosen[count:])
        return Anchored(anchor[:count], chosen[:count])


def matching_anchors(problem: Problem, trees: Trees | None = None) -> Rows:
    """Return the anchors, or those of some trees, that have some candidate: rows of roots, in canonical order."""
    anchors = anchors_of(problem, trees)
    if len(anchors) and problem.plan.slots:
        stage = stage_of(problem, anchors)
        with problem.budget.held(stage.nbytes):
            kinds = kinds_where_slow(problem, stage.trees[stage.live])
            anchors = anchors[stage.combiner.matching(stage.live, _few_rows(stage), kinds)]
    return problem.order.roots[anchors]


def anchors_of(problem: Problem, trees: Trees | None) -> Trees:
    """Return the anchors among some trees (numbers, ascending), or all anchors."""
    anchors = all_anchors(problem)
    if trees is None or len(trees) == len(problem.order.roots):
        return anchors
    return np.intersect1d(anchors, trees, assume_unique=True)


def first_of_each(problem: Problem, trees: Trees) -> Iterator[CandidateBlock]:
    """Yield the first candidate of each of some anchors that has any, in the usual order.

    Args:
        problem: A search that splits nothing.
        trees: Numbers of trees, ascending.
    """
    anchors = anchors_of(problem, trees)
    if len(anchors):
        stage = stage_of(problem, anchors)
        with problem.budget.held(stage.nbytes):
            for anchor, chosen in stage.combiner.first_of_each(stage.live, _few_rows(stage)):
                yield CandidateBlock(stage.trees[anchor], chosen)


def _few_rows(stage: Stage) -> int:
    """Return how many partial candidates to extend together: small blocks get to the first sooner."""
    return max(2 * len(stage.live), SMALLEST_BLOCK)
