# SPDX-License-Identifier: Apache-2.0
"""Draws the candidates of trees for an ordered search: all, one block after the other, or the best by a beam.

A candidate is a list of rows of providers. Where an amount is divided, it is a `SplitCandidate`; a beam does not
look for good divisions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import comb

import numpy as np

from treeclaim.forest.order.scoring import Scoring
from treeclaim.forest.order.term import CandidateRows
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.question.steps import steps_without_exchanges
from treeclaim.forest.solve.partial.blocks import Block, CandidateBlock
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import stage_of
from treeclaim.forest.split.divisions import SplitCandidate
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import Integers, Trees
from treeclaim.model.request import Order

_ROWS = 1024
"""Partial candidates that are extended together while a tree is drawn."""

_DIVISIONS = 64
"""Divisions that are scored together."""

_BEAM = 256
"""Partial candidates that a beam keeps at each step."""


class Drawing:
    """Draws the candidates of one search."""

    def __init__(self, problem: Problem, scoring: Scoring) -> None:
        self.problem = problem
        self.scoring = scoring
        self.splitter = Splitter(problem) if problem.plan.split else None

    def estimate(self, trees: Trees) -> Floats:
        """Return for each tree a number of candidates that it does not exceed, whatever is free."""

        def counts(slot: int) -> Integers:
            starts = self.problem.relations[slot].pairs.starts
            return starts[trees + 1] - starts[trees]

        return self.divisions(trees) * self.problem.rules.at_most(counts)

    def divisions(self, trees: Trees) -> Floats:
        """Return for each tree a number that its divisions do not exceed.

        No minimal set contains another one, so there are at most as many as there are sets of half of
        the providers (Sperner).
        """
        most = np.ones(len(trees))
        for relation in self.problem.split_relations:
            starts = relation.pairs.starts
            counts = np.minimum(starts[trees + 1] - starts[trees], 64)
            most *= np.array([float(comb(count, count // 2)) for count in counts.tolist()])
        return most


class ReadyTrees:
    """Trees of a search, made ready to be drawn.

    Attributes:
        trees: Numbers of those that may have candidates, ascending.
        nbytes: Memory that they take.
    """

    def __init__(self, drawing: Drawing, trees: Trees) -> None:
        self._drawing = drawing
        stage = stage_of(drawing.problem, trees)
        self._live = stage.live
        self._combiner = stage.combiner
        self._all_trees = trees
        self.trees = trees[stage.live]
        self.nbytes = stage.nbytes

    def most(self) -> Floats:
        """Return for each tree a number of candidates that it does not exceed."""
        return self._combiner.at_most(self._live) * self._drawing.divisions(self.trees)

    def least(self, at: int, most: int) -> float:
        """Return a number of candidates that a tree has at least; above `most` is enough."""
        anchor, splitter = int(self._live[at]), self._drawing.splitter
        if splitter is None:
            return self._combiner.at_least(anchor)
        for block in self._combiner.blocks(self._live[[at]], 1):
            chosen = tuple(block.chosen[0].tolist())
            return splitter.count_divisions(int(self.trees[at]), chosen, most)
        return 0

    def all_of(self, indices: Integers) -> tuple[Trees, CandidateRows]:
        """Return all candidates of some trees with the numbers of these, in canonical order."""
        trees = [np.empty(0, dtype=np.int64)]
        parts: list[CandidateRows] = []
        for tree, rows in self.draw(indices):
            trees.append(tree)
            parts.append(rows)
        rows = np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.int64)
        return np.concatenate(trees), rows

    def draw(self, indices: Integers) -> Iterator[tuple[Trees, CandidateRows]]:
        """Yield candidates of some trees with the numbers of these, in canonical order, some at a time."""
        splitter = self._drawing.splitter
        for block in self._combiner.blocks(self._live[indices], _ROWS):
            self._drawing.problem.budget.check()
            trees = self._all_trees[block.anchor]
            if splitter is not None:
                yield from _divide(splitter, CandidateBlock(trees, block.chosen))
            else:
                yield trees, block.chosen

    def best(self, at: int) -> CandidateRows:
        """Return good candidates of a tree with very many, given by its index; none if amounts are divided.

        Slot after slot is filled, and the partial candidates are kept that are worth most so far. The last of
        them may all be dead ends: the candidates that were drawn before remain.
        """
        if self._drawing.splitter is not None:
            return _objects([])
        problem, filled = self._drawing.problem, set[int]()
        block = Block.empty(self._live[[at]], len(problem.relations), len(problem.rules.lists))
        for depth, step in enumerate(problem.rules.steps):
            block = self._combiner.extended(depth, block)
            if step.slot is not None:
                filled.add(step.slot)
            if len(block) > _BEAM:
                worth = self._drawing.scoring.of_partial(block.chosen, filled)
                block = block.take(np.sort(np.argsort(-worth, kind="stable")[:_BEAM]))
        return block.chosen


def without_exchanges(problem: Problem, order: Order) -> Problem:
    """Return a problem for the first candidate alone: of those that an exchange makes, only the first is found."""
    steps = steps_without_exchanges(problem.plan, order)
    return replace(problem, rules=replace(problem.rules, steps=steps))


def _divide(splitter: Splitter, block: CandidateBlock) -> Iterator[tuple[Trees, CandidateRows]]:
    """Yield the divisions of some combinations, some at a time."""
    candidates = (
        (tree, candidate)
        for tree, chosen in zip(block.tree.tolist(), block.chosen.tolist(), strict=True)
        for candidate in splitter.of_combination(tree, tuple(chosen))
    )
    while batch := list(islice(candidates, _DIVISIONS)):
        trees = np.array([tree for tree, _ in batch], dtype=np.int64)
        yield trees, _objects([candidate for _, candidate in batch])


def _objects(candidates: Sequence[SplitCandidate]) -> CandidateRows:
    rows = np.empty(len(candidates), dtype=object)
    rows[:] = candidates
    return rows


def moved(rows: CandidateRows, offset: int) -> CandidateRows:
    """Return the same candidates of another tree, whose rows differ by an offset."""
    if rows.dtype != object:
        return rows + offset
    return _objects(
        [
            SplitCandidate(
                tuple(position + offset for position in candidate.chosen),
                tuple(
                    (name, position + offset, units) for name, position, units in candidate.parts
                ),
            )
            for candidate in rows.tolist()
        ]
    )


def bytes_of(rows: CandidateRows) -> int:
    """Return the memory that some candidates take."""
    if rows.dtype != object:
        return rows.nbytes
    return sum(candidate.nbytes for candidate in rows.tolist())
