# SPDX-License-Identifier: Apache-2.0
"""Which of the candidates that exist are returned, and in which order.

Candidates come in blocks: places, int64, shape (candidates, slots).
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.solve.blocks import Anchored
from treeclaim.forest.solve.first_anchors import FirstAnchors
from treeclaim.forest.table.columns import Rows

_Blocks = Iterator[npt.NDArray[np.int64]]

_FIRST_ROUND = 1


def first_candidates(blocks: _Blocks, count: int | None) -> _Blocks:
    """Yield the first `count` candidates, or all; nothing is drawn beyond them."""
    if count is None:
        yield from blocks
        return
    left = count
    while left > 0:
        block = next(blocks, None)
        if block is None:
            return
        yield block[:left]
        left -= len(block)


def without_repeats(blocks: Iterator[Anchored], first: FirstAnchors | None) -> _Blocks:
    """Leave out candidates that other anchors have too (contract page 90, section 3.1, last point).

    Args:
        blocks: Candidates with the numbers of their anchors.
        first: Tells repetitions; None if there are none.
    """
    for block in blocks:
        yield block.chosen if first is None else block.chosen[first.are_first(block)]


def gathered(blocks: _Blocks, size: int) -> _Blocks:
    """Put small blocks together until they hold `size` candidates; order is kept."""
    waiting: list[npt.NDArray[np.int64]] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        if count >= size:
            yield _together(waiting)
            waiting, count = [], 0
    if waiting:
        yield _together(waiting)


def _together(blocks: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def sample(
    blocks: _Blocks, count: int | None, generator: np.random.Generator, budget: Budget
) -> _Blocks:
    """Yield a uniform random sample of `count` candidates (or all) in random order.

    Every candidate draws a random number, and those with the smallest are kept, so that memory
    grows with the sample alone.
    """
    kept: list[npt.NDArray[np.int64]] = []
    drawn: list[npt.NDArray[np.float64]] = []
    candidates = most = 0
    for block in blocks:
        budget.check()
        budget.hold(block.nbytes)
        kept.append(block)
        drawn.append(generator.random(len(block)))
        candidates += len(block)
        # Sorting only when there is twice as much as before makes the work linear.
        if count is not None and candidates > 2 * max(count, most):
            before = candidates
            kept, drawn = _smallest(kept, drawn, count)
            candidates = most = len(kept[0])
            budget.hold((candidates - before) * block.itemsize * block.shape[1])
    if kept:
        yield _smallest(kept, drawn, count)[0][0]


def _smallest(
    blocks: list[npt.NDArray[np.int64]], drawn: list[npt.NDArray[np.float64]], count: int | None
) -> tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.float64]]]:
    """Return the candidates with the smallest numbers, in order of these."""
    numbers = np.concatenate(drawn)
    order = np.argsort(numbers)[:count]
    return [np.concatenate(blocks)[order]], [numbers[order]]


def in_turn(
    draw: Callable[[Rows, int], Iterator[Anchored]], anchors: Rows, size: int
) -> Iterator[Anchored]:
    """Visit the anchors in turn, so that each is represented before any is exhausted.

    In each round every anchor gives twice as many candidates as in the one before, or all it has,
    so that the number of rounds stays small and the order does not depend on how many are wanted.
    An anchor's search is begun when its first turn comes.

    Args:
        draw: Draws the candidates of some anchors with blocks of at most this size.
        anchors: Indices, ascending.
        size: Candidates wanted in all, at most.
    """
    share = max(size // max(len(anchors), 1), 1)
    waiting = [_Source(draw(anchors[[one]], share)) for one in range(len(anchors))]
    turn = _FIRST_ROUND
    while waiting:
        still = []
        for source in waiting:
            left = turn
            while left and (block := source.take(left)) is not None:
                yield block
                left -= len(block.chosen)
            if not left:
                still.append(source)
        waiting = still
        turn *= 2


class _Source:
    """The candidates of one anchor, taken some at a time."""

    def __init__(self, blocks: Iterator[Anchored]) -> None:
        self._blocks = blocks
        self._rest: Anchored | None = None

    def take(self, count: int) -> Anchored | None:
        """Return at most so many candidates, None if there are no more."""
        while self._rest is None or not len(self._rest.chosen):
            self._rest = next(self._blocks, None)
            if self._rest is None:
                return None
        anchor, chosen = self._rest
        self._rest = Anchored(anchor[count:], chosen[count:])
        return Anchored(anchor[:count], chosen[:count])
