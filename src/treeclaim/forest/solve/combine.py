# SPDX-License-Identifier: Apache-2.0
"""Draws candidates from stages, anchor by anchor or by turns, removes duplicates, and applies limits.

Several anchors may have the same candidate of sharing providers. It is returned once, at its first
anchor (contract page 90, section 3.1, last point).

The operator's maximum applies first, then the client's limit or a random sample. A block of candidates
has rows of providers, int64, shape (candidates, slots).
"""

from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import sharing_rows
from treeclaim.forest.solve.partial.blocks import Anchored, CandidateBlock, Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import (
    SMALLEST_BLOCK,
    Pace,
    Stage,
    find_all_anchors,
    find_anchors,
    prepare_stage,
    prepare_stages,
)
from treeclaim.forest.solve.tree_kinds import find_kinds_if_slow
from treeclaim.forest.table.columns import Rows, Trees

_BYTES_OF_A_KEY = 100
"""Memory counted for a recorded candidate besides its rows."""


def make_keys(chosen_rows: Choices) -> list[bytes]:
    """Return a comparable key of each candidate; a view of whole rows converts to a list many times faster."""
    rows = np.ascontiguousarray(chosen_rows)
    keys: list[bytes] = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
    return keys


class Repetitions:
    """Detects candidates of an earlier anchor; all their providers are sharing ones."""

    def __init__(self, problem: Problem) -> None:
        self._is_possible = problem.may_repeat
        self._sharing = sharing_rows(problem.forest)
        self._budget = problem.budget
        self._seen_keys: set[Hashable] = set()

    def is_new(self, rows: Sequence[int], key: Hashable) -> bool:
        """Return whether a candidate is new, and record its key."""
        if not self._is_possible or not self._sharing[rows].all():
            return True
        if key in self._seen_keys:
            return False
        self._budget.hold(_BYTES_OF_A_KEY + 8 * len(rows))
        self._seen_keys.add(key)
        return True

    def keep_new(self, chosen_rows: Choices) -> Choices:
        """Return the new candidates, and record their keys."""
        if not self._is_possible:
            return chosen_rows
        shared = np.flatnonzero(self._sharing[chosen_rows].all(axis=1))[::-1]
        # In reverse order, so that the first of equal candidates stays.
        first = dict(zip(make_keys(chosen_rows[shared]), shared.tolist(), strict=True))
        new_keys = first.keys() - self._seen_keys
        self._budget.hold(len(new_keys) * (_BYTES_OF_A_KEY + 8 * chosen_rows.shape[1]))
        self._seen_keys |= new_keys
        is_new = np.ones(len(chosen_rows), dtype=np.bool_)
        is_new[shared] = False
        is_new[[first[key] for key in new_keys]] = True
        return chosen_rows[is_new]


def drop_repetitions(problem: Problem, blocks: Iterator[CandidateBlock]) -> Iterator[Choices]:
    """Yield the candidates without those of earlier anchors."""
    repetitions = Repetitions(problem)
    for block in blocks:
        chosen_rows = repetitions.keep_new(block.chosen_rows)
        if len(chosen_rows):
            yield chosen_rows


def combine_stages(
    problem: Problem, stages: Iterator[Stage], pace: Pace
) -> Iterator[CandidateBlock]:
    """Yield all candidates of some stages, in canonical order or by turns."""
    for stage in stages:
        draw = stage.combiner.blocks
        is_fruitless = True
        with problem.budget.held(stage.nbytes):
            size = pace.rows
            for anchor, chosen_rows in (
                take_turns(draw, stage.live, size)
                if problem.takes_turns
                else draw(stage.live, size)
            ):
                is_fruitless = False
                yield CandidateBlock(stage.trees[anchor], chosen_rows)
        pace.note_stage(is_fruitless=is_fruitless)


def combine_under(problem: Problem, trees: Trees | None = None) -> Iterator[CandidateBlock]:
    """Yield all candidates under some anchors (numbers of trees, ascending), or all anchors."""
    pace = Pace(problem)
    reached = find_anchors(problem, pace) if trees is None else iter([trees])
    return combine_stages(problem, prepare_stages(problem, reached, pace), pace)


def combine_from(problem: Problem, tree: int, count: int) -> Iterator[CandidateBlock]:
    """Yield the candidates under the anchors from a tree on; `count` is the number that the caller draws."""
    pace = Pace(problem, count)
    return combine_stages(
        problem, prepare_stages(problem, find_anchors(problem, pace, tree), pace), pace
    )


def distinct_candidates(problem: Problem, trees: Trees | None = None) -> Iterator[Choices]:
    """Yield all candidates under some anchors, or all anchors, in the usual order without duplicates."""
    return drop_repetitions(problem, combine_under(problem, trees))


def take_turns(
    draw: Callable[[Trees, int], Iterator[Anchored]], anchors: Trees, size: int
) -> Iterator[Anchored]:
    """Visit the anchors in turn, so that each is represented before any is exhausted.

    In each round, an anchor yields twice as many candidates as in the previous round. The number of
    rounds stays small, and the order does not depend on the wanted number (`size`). The search of an
    anchor begins at its first turn.
    """
    size_of_each = max(size // max(len(anchors), 1), 1)
    waiting = [_Source(draw(anchors[[index]], size_of_each)) for index in range(len(anchors))]
    count = 1
    while waiting:
        unfinished = []
        for source in waiting:
            remaining_count = count
            while remaining_count and (block := source.take(remaining_count)) is not None:
                yield block
                remaining_count -= len(block.chosen_rows)
            if not remaining_count:
                unfinished.append(source)
        waiting = unfinished
        count *= 2


class _Source:
    def __init__(self, blocks: Iterator[Anchored]) -> None:
        self._blocks = blocks
        self._buffer: Anchored | None = None

    def take(self, count: int) -> Anchored | None:
        """Return at most `count` candidates; None at the end."""
        while self._buffer is None or not len(self._buffer.chosen_rows):
            self._buffer = next(self._blocks, None)
            if self._buffer is None:
                return None
        anchor, chosen_rows = self._buffer
        self._buffer = Anchored(anchor[count:], chosen_rows[count:])
        return Anchored(anchor[:count], chosen_rows[:count])


def find_matching_anchors(problem: Problem, trees: Trees | None = None) -> Rows:
    """Return the root rows of the anchors with a candidate, among some trees or all, in canonical order."""
    anchors = select_anchors(problem, trees)
    if len(anchors) and problem.plan.slots:
        stage = prepare_stage(problem, anchors)
        with problem.budget.held(stage.nbytes):
            kinds = find_kinds_if_slow(problem, stage.trees[stage.live])
            anchors = anchors[stage.combiner.matching(stage.live, _few_rows(stage), kinds)]
    return problem.order.roots[anchors]


def select_anchors(problem: Problem, trees: Trees | None) -> Trees:
    """Return the anchors among some trees (numbers, ascending), or all anchors."""
    anchors = find_all_anchors(problem)
    if trees is None or len(trees) == len(problem.order.roots):
        return anchors
    return np.intersect1d(anchors, trees, assume_unique=True)


def first_of_each(problem: Problem, trees: Trees) -> Iterator[CandidateBlock]:
    """Yield the first candidate of each anchor among some trees (numbers, ascending), in the usual order.

    The problem must not have split classes.
    """
    anchors = select_anchors(problem, trees)
    if len(anchors):
        stage = prepare_stage(problem, anchors)
        with problem.budget.held(stage.nbytes):
            for anchor, chosen_rows in stage.combiner.first_of_each(stage.live, _few_rows(stage)):
                yield CandidateBlock(stage.trees[anchor], chosen_rows)


def _few_rows(stage: Stage) -> int:
    """Return the number of partial candidates to extend together; small blocks reach a candidate sooner."""
    return max(2 * len(stage.live), SMALLEST_BLOCK)


CANDIDATES_TOGETHER = 2048
"""Least size of a gathered block, except the last one."""

_Blocks = Iterator[Choices]


def apply_limit(problem: Problem, blocks: _Blocks) -> _Blocks:
    """Yield the candidates within the operator's maximum and the client's limit."""
    return select_candidates(problem, first_candidates(blocks, problem.options.maximum))


def select_candidates(problem: Problem, blocks: _Blocks) -> _Blocks:
    """Yield the candidates within the client's limit; at random if the operator chose so."""
    limit = problem.plan.request.limit
    if problem.options.randomize:
        return sample(blocks, limit, np.random.default_rng(), problem.budget)
    return first_candidates(blocks, limit)


def first_candidates(blocks: _Blocks, count: int | None) -> _Blocks:
    """Yield the first `count` candidates, or all; draw no block beyond them."""
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
    """Join small blocks in order, because each block has a high fixed cost."""
    waiting: list[Choices] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        if count >= CANDIDATES_TOGETHER:
            yield _join(waiting)
            waiting, count = [], 0
    if waiting:
        yield _join(waiting)


def _join(blocks: list[Choices]) -> Choices:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def sample(
    blocks: _Blocks, count: int | None, generator: np.random.Generator, budget: Budget
) -> _Blocks:
    """Yield a uniform random sample of `count` candidates (or all) in random order.

    Each candidate draws a random number, and the candidates with the smallest numbers are kept. Memory
    therefore grows with the sample alone.
    """
    kept_blocks: list[Choices] = []
    numbers: list[npt.NDArray[np.float64]] = []
    kept_count = 0
    for block in blocks:
        budget.check()
        budget.hold(block.nbytes)
        kept_blocks.append(block)
        numbers.append(generator.random(len(block)))
        kept_count += len(block)
        # Sorting only after the number has doubled keeps the work linear.
        if count is not None and kept_count > 2 * count:
            dropped_count = kept_count - count
            kept_blocks, numbers = _keep_smallest(kept_blocks, numbers, count)
            kept_count = count
            budget.hold(-dropped_count * block.itemsize * block.shape[1])
    if kept_blocks:
        yield _keep_smallest(kept_blocks, numbers, count)[0][0]


def _keep_smallest(
    blocks: list[Choices], block_numbers: list[npt.NDArray[np.float64]], count: int | None
) -> tuple[list[Choices], list[npt.NDArray[np.float64]]]:
    numbers = np.concatenate(block_numbers)
    order = np.argsort(numbers)[:count]
    return [np.concatenate(blocks)[order]], [numbers[order]]
