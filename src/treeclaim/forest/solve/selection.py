# SPDX-License-Identifier: Apache-2.0
"""Which of the candidates that exist are returned, and in which order.

Candidates come in blocks: places, int64, shape (candidates, slots).
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from treeclaim.forest.table.columns import Mask, Rows

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


def without_repeats(blocks: _Blocks, sharing: Mask | None) -> _Blocks:
    """Leave out candidates that came before (contract page 90, section 3.1, last point).

    Only a candidate of nothing but sharing providers can be reached from several anchors: any
    other provider has one anchor, its root. So only those are remembered.

    Args:
        blocks: Candidates.
        sharing: Which places are sharing providers, shape (places,); None if none repeats.
    """
    if sharing is None:
        yield from blocks
        return
    seen: set[bytes] = set()
    for block in blocks:
        reachable: Mask = np.logical_and.reduce(sharing[block], axis=1)
        if not reachable.any():
            yield block
            continue
        kept: Mask = ~reachable
        for row in np.flatnonzero(reachable).tolist():
            key = block[row].tobytes()
            if key not in seen:
                seen.add(key)
                kept[row] = True
        yield block[kept]


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


def sample(blocks: _Blocks, count: int | None, generator: np.random.Generator) -> _Blocks:
    """Yield a uniform random sample of `count` candidates (or all) in random order.

    Every candidate draws a random number, and those with the smallest are kept, so that memory
    grows with the sample alone.
    """
    kept: npt.NDArray[np.int64] | None = None
    drawn = np.empty(0)
    for block in blocks:
        numbers = generator.random(len(block))
        kept = block if kept is None else np.concatenate([kept, block])
        drawn = np.concatenate([drawn, numbers])
        order = np.argsort(drawn)[:count]
        kept, drawn = kept[order], drawn[order]
    if kept is not None:
        yield kept


def in_turn(draw: Callable[[Rows, int], _Blocks], anchors: Rows, budget: int) -> _Blocks:
    """Visit the anchors in turn, so that each is represented before any is exhausted.

    In each round every anchor gives up to twice as many candidates as in the one before, so that
    the number of rounds stays small. An anchor's search is begun when its first turn comes.

    Args:
        draw: Draws the candidates of some anchors with blocks of at most this budget.
        anchors: Indices, ascending.
        budget: Candidates wanted in all, at most.
    """
    share = max(budget // max(len(anchors), 1), 1)
    waiting = [_Source(draw(anchors[[one]], share)) for one in range(len(anchors))]
    turn = _FIRST_ROUND
    while waiting:
        still = []
        for source in waiting:
            block = source.take(turn)
            if block is not None:
                yield block
                still.append(source)
        waiting = still
        turn *= 2


class _Source:
    """The candidates of one anchor, taken some at a time."""

    def __init__(self, blocks: _Blocks) -> None:
        self._blocks = blocks
        self._rest: npt.NDArray[np.int64] | None = None

    def take(self, count: int) -> npt.NDArray[np.int64] | None:
        while self._rest is None or not len(self._rest):
            self._rest = next(self._blocks, None)
            if self._rest is None:
                return None
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken
