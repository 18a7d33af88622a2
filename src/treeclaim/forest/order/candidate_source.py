# SPDX-License-Identifier: Apache-2.0
"""Enumerates the candidates of trees for an ordered search, in blocks or by a beam search."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import comb

import numpy as np

from treeclaim.forest.order.candidate_table import CandidateRows
from treeclaim.forest.order.scoring import Scoring
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.question.steps import steps_without_exchanges
from treeclaim.forest.solve.partial.blocks import Block, CandidateBlock
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import prepare_stage
from treeclaim.forest.split.divisions import SplitCandidate
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import Integers, Trees
from treeclaim.model.request import Order

_ROWS = 1024
"""Partial candidates that are extended together."""

_DIVISIONS = 64
"""Divisions that are scored together."""

_BEAM = 256
"""Partial candidates that a beam keeps at each step."""


class CandidateSource:
    """The source of the candidates of one search."""

    def __init__(self, problem: Problem, scoring: Scoring) -> None:
        self.problem = problem
        self.scoring = scoring
        self.splitter = Splitter(problem) if problem.plan.split else None

    def bound_counts(self, trees: Trees) -> Floats:
        """Return an upper bound of the candidates of each tree, whatever is free."""

        def counts(slot: int) -> Integers:
            starts = self.problem.relations[slot].pairs.starts
            return starts[trees + 1] - starts[trees]

        return self.bound_divisions(trees) * self.problem.rules.at_most(counts)

    def bound_divisions(self, trees: Trees) -> Floats:
        """Return an upper bound of the divisions of each tree.

        No minimal set contains another minimal set. By Sperner's theorem, n providers have at most
        as many minimal sets as subsets of n // 2 elements.
        """
        bounds = np.ones(len(trees))
        for relation in self.problem.split_relations:
            starts = relation.pairs.starts
            counts = np.minimum(starts[trees + 1] - starts[trees], 64)
            bounds *= np.array([float(comb(count, count // 2)) for count in counts.tolist()])
        return bounds


class StagedTrees:
    """A stage of trees, with their candidates.

    Attributes:
        trees: Numbers of the trees that may have candidates, ascending. Methods identify a tree by its index here.
        nbytes: Memory of the stage.
    """

    def __init__(self, source: CandidateSource, trees: Trees) -> None:
        self._source = source
        stage = prepare_stage(source.problem, trees)
        self._live = stage.live
        self._combiner = stage.combiner
        self._all_trees = trees
        self.trees = trees[stage.live]
        self.nbytes = stage.nbytes

    def bound_counts(self) -> Floats:
        """Return an upper bound of the candidates of each tree."""
        return self._combiner.at_most(self._live) * self._source.bound_divisions(self.trees)

    def count_at_least(self, index: int, limit: int) -> float:
        """Return a lower bound of the candidates of a tree; counting stops above the limit."""
        anchor, splitter = int(self._live[index]), self._source.splitter
        if splitter is None:
            return self._combiner.at_least(anchor)
        for block in self._combiner.blocks(self._live[[index]], 1):
            chosen_rows = tuple(block.chosen_rows[0].tolist())
            return splitter.count_divisions(int(self.trees[index]), chosen_rows, limit)
        return 0

    def draw_all(self, indices: Integers) -> tuple[Trees, CandidateRows]:
        """Return all candidates of some trees in canonical order, with their tree numbers."""
        trees = [np.empty(0, dtype=np.int64)]
        blocks: list[CandidateRows] = []
        for tree, rows in self.draw(indices):
            trees.append(tree)
            blocks.append(rows)
        rows = np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.int64)
        return np.concatenate(trees), rows

    def draw(self, indices: Integers) -> Iterator[tuple[Trees, CandidateRows]]:
        """Yield blocks of the candidates of some trees in canonical order, with their tree numbers."""
        splitter = self._source.splitter
        for block in self._combiner.blocks(self._live[indices], _ROWS):
            self._source.problem.budget.check()
            trees = self._all_trees[block.anchor]
            if splitter is not None:
                yield from _divide(splitter, CandidateBlock(trees, block.chosen_rows))
            else:
                yield trees, block.chosen_rows

    def search_beam(self, index: int) -> CandidateRows:
        """Return good candidates of a tree by a beam search; none if amounts are divided.

        Each step fills a slot and keeps the partial candidates with the best scores. The search may
        end without any candidate.
        """
        if self._source.splitter is not None:
            return _as_object_array([])
        problem, filled = self._source.problem, set[int]()
        block = Block.empty(self._live[[index]], len(problem.relations), len(problem.rules.lists))
        for depth, step in enumerate(problem.rules.steps):
            block = self._combiner.extended(depth, block)
            if step.slot is not None:
                filled.add(step.slot)
            if len(block) > _BEAM:
                scores = self._source.scoring.estimate_partial(block.chosen_rows, filled)
                block = block.take(np.sort(np.argsort(-scores, kind="stable")[:_BEAM]))
        return block.chosen_rows


def drop_exchanges(problem: Problem, order: Order) -> Problem:
    """Return a problem for the first candidate alone; its search skips exchanges between equal groups."""
    steps = steps_without_exchanges(problem.plan, order)
    return replace(problem, rules=replace(problem.rules, steps=steps))


def _divide(splitter: Splitter, block: CandidateBlock) -> Iterator[tuple[Trees, CandidateRows]]:
    candidates = (
        (tree, candidate)
        for tree, chosen_rows in zip(block.tree.tolist(), block.chosen_rows.tolist(), strict=True)
        for candidate in splitter.divide_combination(tree, tuple(chosen_rows))
    )
    while batch := list(islice(candidates, _DIVISIONS)):
        trees = np.array([tree for tree, _ in batch], dtype=np.int64)
        yield trees, _as_object_array([candidate for _, candidate in batch])


def _as_object_array(candidates: Sequence[SplitCandidate]) -> CandidateRows:
    rows = np.empty(len(candidates), dtype=object)
    rows[:] = candidates
    return rows


def shift_rows(candidates: CandidateRows, offset: int) -> CandidateRows:
    """Return candidates with an offset added to each row, for an equal tree."""
    if candidates.dtype != object:
        return candidates + offset
    return _as_object_array(
        [
            SplitCandidate(
                tuple(row + offset for row in candidate.chosen_rows),
                tuple((name, row + offset, units) for name, row, units in candidate.parts),
            )
            for candidate in candidates.tolist()
        ]
    )


def count_bytes(rows: CandidateRows) -> int:
    """Return the memory of candidates."""
    if rows.dtype != object:
        return rows.nbytes
    return sum(candidate.nbytes for candidate in rows.tolist())
