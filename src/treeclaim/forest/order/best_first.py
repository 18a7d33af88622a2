# SPDX-License-Identifier: Apache-2.0
"""Candidates by descending score, drawn one after the other: best first, within bounds.

Everything that waits is in one queue, ordered by the best score that can come of it, and for equal scores
by the usual order of candidates: trees that were not looked at, by their ceilings; partial
candidates, by what they may become at best; complete ones, by their scores. What stands first is
taken: trees are made ready, partial candidates grow by one slot, and a complete candidate that
comes before everything else in the queue is the next of the answer. So nothing is enumerated that
cannot come first, except for what is looked at together with the first for the sake of speed.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
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

_SELDOM = 16
"""Where to judge single ones closely changed nothing for long, it is tried once in so many times."""


class Scored(NamedTuple):
    """Some candidates.

    Attributes:
        anchor: Number of the anchor under which each was found.
        key: Where each stands in the usual order.
        chosen: Positions, int64, shape (candidates, slots).
        score: Scores, float64.
    """

    anchor: Rows
    key: Choices
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
        is_close: Which rows have closer bounds; None if none has.
    """

    bound: Floats
    key: Choices
    block: Block
    stage: "_Ready"
    depth: int
    is_close: Mask | None

    @property
    def first(self) -> tuple[float, tuple[int, ...]]:
        """Return what the queue is ordered by."""
        return -float(self.bound[0]), tuple(self.key[0].tolist())

    def part(self, rows: slice) -> "_Waiting":
        """Return a range of the rows."""
        is_close = None if self.is_close is None else self.is_close[rows]
        block = self.block.part(rows)
        return _Waiting(self.bound[rows], self.key[rows], block, self.stage, self.depth, is_close)

    def bounded(self, bound: Floats) -> "_Waiting":
        """Return the same with other bounds."""
        return self if (bound == self.bound).all() else replace(self, bound=bound).sorted()

    def sorted(self) -> "_Waiting":
        """Return the rows in order, except for those that can become no candidate."""
        order = np.lexsort((*self.key.T[::-1], -self.bound))
        order = order[: np.count_nonzero(self.bound > -np.inf)]
        is_close = None if self.is_close is None else self.is_close[order]
        block = self.block.take(order)
        return _Waiting(
            self.bound[order], self.key[order], block, self.stage, self.depth, is_close
        )


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
        looked_at: How many partial candidates of each were looked at, by index.
    """

    anchors: Rows
    combiner: Combiner
    looked_at: Rows

    def note(self, indices: Rows) -> None:
        """Count partial candidates that were looked at, each with the index of its anchor."""
        self.looked_at[:] += np.bincount(indices, minlength=len(self.anchors))


class BestFirst:
    """Draws the candidates of a search in the order of their scores."""

    def __init__(self, problem: Problem, scoring: Scoring, anchors: Rows | None = None) -> None:
        """Begin with trees that were not looked at.

        Args:
            problem: What is searched. What it divides is left out: candidates are those that are to
                be divided yet, by their ceilings, and may come under several anchors.
            scoring: Its scores.
            anchors: Numbers of the only anchors to look at, ascending; None for all.
        """
        self._problem = problem
        self._scoring = scoring
        self._steps = problem.rules.steps
        self._filled = [frozenset[int]()]
        for step in self._steps:
            slots = [] if step.slot is None else [step.slot]
            self._filled.append(self._filled[-1].union(slots))
        self._first_anchors = (
            None if problem.plan.split else first_anchors(problem, problem.relations)
        )
        self._queue: list[tuple[float, tuple[int, ...], int, _Waiting | _Unseen]] = []
        self._number = count()
        self._size = thresholds.FIRST_BEST_TREES
        self._dead_ends = 0
        self._closeness = _Closeness(scoring)
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
                    self._go_on(waiting)
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
        ready = _Ready(anchors, stage.combiner, np.zeros(len(anchors), dtype=np.int64))
        rules = self._problem.rules
        block = Block.empty(live, len(self._problem.relations), len(rules.lists))
        self._push_sorted(block, ready, 0)

    def _go_on(self, waiting: _Waiting) -> None:
        """Extend the partial candidates that stand first, or bound them closer."""
        if not self._closeness.is_active:
            self._extend(waiting)
            return
        looked_at = int(waiting.stage.looked_at[waiting.block.anchor[0]])
        is_close = waiting.is_close is not None and waiting.is_close[0]
        if self._closeness.is_for_each(looked_at):
            self._judge_first(waiting)
        elif is_close or not self._closeness.is_for_tree(looked_at):
            self._extend(waiting)
        else:
            self._problem.budget.hold(-waiting.block.nbytes)
            self._push_sorted(waiting.block, waiting.stage, waiting.depth)

    def _judge_first(self, waiting: _Waiting) -> None:
        """Extend only the first of some partial candidates, unless another one comes before it."""
        partial = self._partial(waiting.block, waiting.stage, waiting.depth)
        bound = self._scoring.closest_bounds(partial, waiting.bound)
        is_less = bool(bound[0] < waiting.bound[0])
        self._closeness.note_judged(is_less=is_less)
        self._problem.budget.hold(-waiting.block.nbytes)
        if is_less:
            self._push_counted(waiting.bounded(bound))
            return
        first, others = waiting.part(slice(1)), waiting.part(slice(1, None))
        self._push_counted(others.bounded(bound[1:]))
        self._problem.budget.hold(first.block.nbytes)
        self._extend(first)

    def _extend(self, waiting: _Waiting) -> None:
        """Take one step with the partial candidates that stand first."""
        closely = self._dead_ends > thresholds.PATIENCE
        grown, taken = waiting.stage.combiner.extended(
            waiting.depth, waiting.block, thresholds.BEST_PAIRS, closely=closely
        )
        self._problem.budget.hold(-waiting.block.nbytes)
        self._closeness.note_made(len(grown))
        if self._closeness.is_active:
            waiting.stage.note(grown.anchor)
        if taken < len(waiting.bound):
            self._push_counted(waiting.part(slice(taken, None)))
        if len(grown):
            # Nothing becomes more than what it grew out of.
            self._push_sorted(grown, waiting.stage, waiting.depth + 1, float(waiting.bound[0]))
        else:
            self._dead_ends += 1

    def _push_counted(self, waiting: _Waiting) -> None:
        if len(waiting.bound):
            self._problem.budget.hold(waiting.block.nbytes)
            self._push(waiting)

    def _push_sorted(self, block: Block, ready: _Ready, depth: int, most: float = np.inf) -> None:
        """Let partial or complete candidates, of which none exceeds a score, wait in the queue."""
        is_close = None
        if depth == len(self._steps):
            self._dead_ends = 0
            block = self._distinct(block, ready)
            bound = self._scoring.of_whole(self._partial(block, ready, depth))
        else:
            partial = self._partial(block, ready, depth)
            bound = self._scoring.bounds(partial)
            if self._closeness.is_active:
                is_close = self._closeness.of_trees(ready.looked_at[block.anchor], partial.anchor)
            if is_close is not None:
                bound[is_close] = self._scoring.closer_bounds(partial.part(is_close))
            np.minimum(bound, most, out=bound)
        key = self._key(ready.anchors[block.anchor], block, depth)
        self._push_counted(_Waiting(bound, key, block, ready, depth, is_close).sorted())

    def _partial(self, block: Block, ready: _Ready, depth: int) -> Partial:
        return Partial(ready.anchors[block.anchor], block.chosen, self._filled[depth])

    def _distinct(self, block: Block, ready: _Ready) -> Block:
        """Leave out complete candidates that an earlier anchor has too."""
        if self._first_anchors is None:
            return block
        candidates = Found(ready.anchors[block.anchor], block.chosen)
        are_first = self._first_anchors.are_first(candidates)
        return block if are_first.all() else block.take(np.flatnonzero(are_first))

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
        self._closeness.note_found(end)
        if end < len(waiting.bound):
            self._push_counted(waiting.part(slice(end, None)))
        key = waiting.key[:end]
        return Scored(key[:, 0], key, block.chosen[:end], waiting.bound[:end])


class _Closeness:
    """Decides where it is worth it to bound partial candidates closer: where many were looked at."""

    def __init__(self, scoring: Scoring) -> None:
        self.is_active = False
        """Whether partial candidates are counted by tree: many were looked at in all."""
        self._scoring = scoring
        self._before = max(thresholds.LOOSE_CANDIDATES, 0)
        self._most = thresholds.LOOSE_CANDIDATES
        self._most_in_trees = thresholds.CLOSE_CANDIDATES
        self._trees: set[int] = set()
        self._made = 0
        self._in_vain = 0

    def note_made(self, count: int) -> None:
        """Note partial candidates that were made, in whatever trees."""
        self._made += count
        if self._before < 0:
            return
        self._before -= count
        if self._before < 0:
            # Where there are no closer bounds, nothing is ever too much.
            self.is_active = self._scoring.has_closer_bounds

    def of_trees(self, looked_at: Rows, anchors: Rows) -> Mask | None:
        """Tell which partial candidates to bound by what their trees offer; None for none.

        Args:
            looked_at: How many of its tree were looked at, for each.
            anchors: Numbers of the trees.
        """
        are_many: Mask = looked_at > self._most
        if not are_many.any():
            return None
        self._trees.update(anchors[are_many].tolist())
        if len(self._trees) > thresholds.FEW_CLOSE_TREES:
            self._most = -1
        return are_many

    def note_found(self, count: int) -> None:
        """Note candidates that were found: so much more may be looked at."""
        self._most += count * thresholds.LOOSE_FOR_EACH
        self._most_in_trees += count * thresholds.LOOSE_FOR_EACH

    def is_for_tree(self, looked_at: int) -> bool:
        """Tell the same for a single one."""
        return looked_at > self._most

    def is_for_each(self, looked_at: int) -> bool:
        """Tell whether each is to be judged by itself, as that did not help enough."""
        if looked_at <= self._most_in_trees or not self._scoring.are_closest_worth(self._made):
            return False
        if self._in_vain > thresholds.PATIENCE:
            self._in_vain += 1
            return not self._in_vain % _SELDOM
        return True

    def note_judged(self, *, is_less: bool) -> None:
        """Note whether judging one by itself has changed anything."""
        self._in_vain = 0 if is_less else self._in_vain + 1


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
