# SPDX-License-Identifier: Apache-2.0
"""The returned part of the candidates, and its order.

Candidates come in blocks: rows of providers, int64, shape (candidates, slots).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem

CANDIDATES_TOGETHER = 2048
"""Candidates that are handed on together, where there are as many."""

_Blocks = Iterator[Choices]


def apply_limit(problem: Problem, blocks: _Blocks) -> _Blocks:
    """Yield the candidates within the limit and the operator's options."""
    return select_candidates(problem, first_candidates(blocks, problem.options.maximum))


def select_candidates(problem: Problem, blocks: _Blocks) -> _Blocks:
    """Yield the candidates within the limit, from those up to the operator's maximum."""
    limit = problem.plan.request.limit
    if problem.options.randomize:
        return sample(blocks, limit, np.random.default_rng(), problem.budget)
    return first_candidates(blocks, limit)


def first_candidates(blocks: _Blocks, count: int | None) -> _Blocks:
    """Yield the first `count` candidates, or all; nothing is drawn beyond them."""
    if count is None:
        yield from blocks
        return
    remaining_count = count
    while remaining_count > 0:
        block = next(blocks, None)
        if block is None:
            return
        yield block[:remaining_count]
        remaining_count -= len(block)


def gather_blocks(blocks: _Blocks) -> _Blocks:
    """Put small blocks together, as what is done with a block costs much; order is kept."""
    waiting: list[npt.NDArray[np.int64]] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        if count >= CANDIDATES_TOGETHER:
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
