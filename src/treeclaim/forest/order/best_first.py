# SPDX-License-Identifier: Apache-2.0
"""Candidates by descending score, drawn one after the other: best first, within bounds.

All that waits is in one queue, ordered by the best score that can come of it, and for equal scores
by the usual order of candidates: trees that were not looked at, by their ceilings; partial
candidates, by what they may become at best; complete ones, by their scores. What stands first is
taken: trees are made ready, partial candidates grow by one slot, and a complete candidate that
comes before everything else in the queue is the next of the answer. So nothing is enumerated that
cannot come first, but for what is looked at together with the first for the sake of speed.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.scoring import Scoring
from treeclaim.forest.order.terms.term import Partial
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.distinct import first_anchors
from treeclaim.forest.solve.partial.blocks import Block, Choices, Found
from treeclaim.forest.solve.partial.combiner import Combiner
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import stage_of
from treeclaim.forest.table.columns import Mask, Rows


class Scored(NamedTuple):
    """Some candidates.

    Attributes:
        anchor: Number of the anchor under which each was found.
        chosen: Positions, int64, shape (candidates, slots).
        score: Scores, float64.
    """

    anchor: Rows
    chosen: Choices
    score: Floats


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Something in the queue; its rows are sorted by bound, then by key.

    Attributes:
        bound: The best score of what each row becomes.
        key: Its place in the usual order, as far as it is known, shape (rows, k).
        block: Partial or complete candidates.
        stage: Where the partial ones grow, and numbers of the anchors of its indices.
        depth: Steps that were taken.
    """

    bound: Floats
    key: Choices
    block: Block
    stage: "_Ready"
    depth: int

    @property
    def first(self) -> tuple[float, tuple[int, ...]]:
        """Return what the queue is ordered by."""
        return -float(self.bound[0]), tuple(self.key[0].tolist())

    def rest(self, start: int) -> "_Waiting":
        """Return the rows from one on."""
        block = self.block.part(slice(start, None))
        return _Waiting(self.bound[start:], self.key[start:], block, self.stage, self.depth)


@dataclass(frozen=True, slots=True)
class _Unseen:
    """Trees that were not looked at, in the usual order.

    Attributes:
        bound: Their ceilings.
        anchor: Their numbers, ascending.
    """

    bound: Floats
    anchor: Rows

    @property
    def first(self) -> tuple[float, tuple[int, ...]]:
        """Return what the queue is ordered by."""
        best = int(self.bound.argmax())
        return -float(self.bound[best]), (int(self.anchor[best]),)

    def divided(self, size: int) -> tuple[Rows, "_Unseen"]:
        """Return the trees with the highest ceilings, of equals the first, and all others.

        To sort all of them would take longer than to look at the few that matter.
        """
        count = len(self.bound)
        if size >= count:
            return self.anchor, self._only(np.zeros(count, dtype=np.bool_))
        least = np.partition(self.bound, count - size)[count - size]
        is_high = self.bound > least
        equal = np.flatnonzero(self.bound == least)
        is_high[equal[: size - np.count_nonzero(is_high)]] = True
        return self.anchor[is_high], self._only(~is_high)

    def _only(self, some: Mask) -> "_Unseen":
        return _Unseen(self.bound[some], self.anchor[some])


@dataclass(frozen=True, slots=True)
class _Ready:
    """Some anchors made ready.

    Attributes:
        anchors: Their numbers, by index.
        combiner: Extends partial candidates.
    """

    anchors: Rows
    combiner: Combiner


class BestFirst:
    """Draws the candidates of a search in the order of their scores."""

    def __init__(self, problem: Problem, scoring: Scoring, anchors: Rows | None = None) -> None:
        """Begin with trees that were not looked at.

        Args:
            problem: What is searched; it splits nothing.
            scoring: Its scores.
            anchors: Numbers of the only anchors to look at, ascending; None for all.
        """
        self._problem = problem
        self._scoring = scoring
        self._steps = problem.rules.steps
        self._first_anchors = first_anchors(problem, problem.relations)
        self._queue: list[tuple[float, tuple[int, ...], int, _Waiting | _Unseen]] = []
        self._number = count()
        self._size = thresholds.FIRST_BEST_TREES
        self._dead_ends = 0
        some = all_anchors(problem) if anchors is None else anchors
        self._push(_Unseen(scoring.ceilings(some), some))

    def __iter__(self) -> Iterator[Scored]:
        """Yield candidates in order, some at a time."""
        budget = self._problem.budget
        with budget.scope():
            while self._queue:
                budget.check()
                waiting = heapq.heappop(self._queue)[-1]
                if isinstance(waiting, _Unseen):
                    self._make_ready(waiting)
                elif waiting.depth < len(self._steps):
                    self._extend(waiting)
                else:
                    yield self._emit(waiting)

    def _push(self, waiting: "_Waiting | _Unseen") -> None:
        if len(waiting.bound):
            heapq.heappush(self._queue, (*waiting.first, next(self._number), waiting))

    def _make_ready(self, unseen: "_Unseen") -> None:
        """Make the trees with the highest ceilings ready."""
        anchors, rest = unseen.divided(self._size)
        self._size = min(2 * self._size, thresholds.MOST_BEST_TREES)
        self._push(rest)
        stage = stage_of(self._problem, anchors)
        live = stage.combiner.hopeful(stage.live)
        if not len(live):
            return
        self._problem.budget.hold(stage.nbytes)
        ready = _Ready(anchors, stage.combiner)
        rules = self._problem.rules
        block = Block.empty(live, len(self._problem.relations), len(rules.lists))
        self._push_sorted(block, ready, 0)

    def _extend(self, waiting: _Waiting) -> None:
        """Take one step with the partial candidates that stand first."""
        closely = self._dead_ends > thresholds.PATIENCE
        grown, taken = waiting.stage.combiner.extended(
            waiting.depth, waiting.block, thresholds.BEST_PAIRS, closely=closely
        )
        self._problem.budget.hold(-waiting.block.nbytes)
        self._push_counted(waiting.rest(taken))
        if len(grown):
            self._push_sorted(grown, waiting.stage, waiting.depth + 1)
        else:
            self._dead_ends += 1

    def _push_counted(self, waiting: _Waiting) -> None:
        if len(waiting.bound):
            self._problem.budget.hold(waiting.block.nbytes)
            self._push(waiting)

    def _push_sorted(self, block: Block, ready: _Ready, depth: int) -> None:
        """Let partial or complete candidates wait at their places in the queue."""
        anchor = ready.anchors[block.anchor]
        if depth == len(self._steps):
            self._dead_ends = 0
            if self._first_anchors is not None:
                are_first = self._first_anchors.are_first(Found(anchor, block.chosen))
                if not are_first.all():
                    block = block.take(np.flatnonzero(are_first))
                    anchor = ready.anchors[block.anchor]
            bound = self._scoring.scores(block.chosen)
        else:
            filled = frozenset(step.slot for step in self._steps[:depth] if step.slot is not None)
            bound = self._scoring.bounds(Partial(anchor, block.chosen, filled))
        key = self._key(anchor, block, depth)
        order = np.lexsort((*key.T[::-1], -bound))
        self._push_counted(_Waiting(bound[order], key[order], block.take(order), ready, depth))

    def _key(self, anchor: Rows, block: Block, depth: int) -> Choices:
        """Return where candidates stand in the usual order: anchor, then step by step."""
        chosen = block.chosen
        columns = [anchor]
        columns += [
            block.heads[:, step.subtree] if step.slot is None else chosen[:, step.slot]
            for step in self._steps[:depth]
        ]
        return np.stack(columns, axis=1)

    def _emit(self, waiting: _Waiting) -> Scored:
        """Take the complete candidates that come before everything else that waits."""
        block = waiting.block
        end = len(waiting.bound)
        if self._queue:
            end = _before(waiting, self._queue[0][:2])
        self._problem.budget.hold(-block.nbytes)
        self._push_counted(waiting.rest(end))
        return Scored(waiting.key[:end, 0], block.chosen[:end], waiting.bound[:end])


def _before(waiting: _Waiting, top: tuple[float, tuple[int, ...]]) -> int:
    """Return how many rows come before the first of what else waits; at least one does."""
    low, high = 1, len(waiting.bound)
    while low < high:
        middle = (low + high) // 2
        if (-float(waiting.bound[middle]), tuple(waiting.key[middle].tolist())) < top:
            low = middle + 1
        else:
            high = middle
    return low
