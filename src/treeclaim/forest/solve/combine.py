# SPDX-License-Identifier: Apache-2.0
"""The candidates of stages: one anchor after the other, or all in turn."""

from collections.abc import Callable, Iterator

from treeclaim.forest.solve.anchors import anchors
from treeclaim.forest.solve.distinct import first_anchors
from treeclaim.forest.solve.pace import Pace
from treeclaim.forest.solve.partial.blocks import Anchored, Found
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import Stage, staged
from treeclaim.forest.table.columns import Trees

_FIRST_ROUND = 1


def combined(problem: Problem, stages: Iterator[Stage], pace: Pace) -> Iterator[Found]:
    """Yield all candidates of some stages, in canonical order or by turns.

    Yields:
        Candidates with the number of the tree of each one's anchor.
    """
    is_in_turn = problem.options.breadth_first and not problem.plan.split
    for stage in stages:
        draw = stage.combiner.blocks
        is_fruitless = True
        with problem.budget.held(stage.nbytes):
            size = pace.rows
            for anchor, chosen in (
                in_turn(draw, stage.live, size) if is_in_turn else draw(stage.live, size)
            ):
                is_fruitless = False
                yield Found(stage.trees[anchor], chosen)
        pace.note_stage(is_fruitless=is_fruitless)


def combined_under(problem: Problem, trees: Trees | None = None) -> Iterator[Found]:
    """Yield all candidates under some anchors (numbers of trees, ascending), or under all."""
    pace = Pace(problem)
    reached = anchors(problem, pace) if trees is None else iter([trees])
    return combined(problem, staged(problem, reached, pace), pace)


def distinct_blocks(problem: Problem, trees: Trees | None = None) -> Iterator[Found]:
    """Yield all candidates under some anchors, or all, in the usual order; none comes twice."""
    first = first_anchors(problem, problem.relations)
    for block in combined_under(problem, trees):
        kept = slice(None) if first is None else first.are_first(block)
        yield Found(block.tree[kept], block.chosen[kept])


def in_turn(
    draw: Callable[[Trees, int], Iterator[Anchored]], anchors: Trees, size: int
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
    size_of_each = max(size // max(len(anchors), 1), 1)
    waiting = [_Source(draw(anchors[[index]], size_of_each)) for index in range(len(anchors))]
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
        """Return at most a number of candidates, None if there are no more."""
        while self._rest is None or not len(self._rest.chosen):
            self._rest = next(self._blocks, None)
            if self._rest is None:
                return None
        anchor, chosen = self._rest
        self._rest = Anchored(anchor[count:], chosen[count:])
        return Anchored(anchor[:count], chosen[:count])
