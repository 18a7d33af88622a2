# SPDX-License-Identifier: Apache-2.0
"""The provider summaries of an answer, and their JSON (page 90, sections 4 and 5.2).

Below microversion 1.29 these are the providers of all candidates, so they depend on those that the limit
cuts off.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from treeclaim.forest.solve.limit import first_candidates, select_candidates
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask, Trees, expand_ranges
from treeclaim.forest.table.texts import summary_fragment
from treeclaim.model.request import BodyForm

TREES_IN_A_PIECE = 16_384
"""Trees whose summaries are written together."""


class Summaries:
    """Collects the trees and providers of the candidates, and serializes their summaries.

    From 1.29 on, the body shows all providers of every tree that gives something to a returned candidate.
    Before, it shows the providers that give something to any candidate, or under a limit, only those in
    the trees of returned candidates.
    """

    def __init__(self, problem: Problem, form: BodyForm) -> None:
        self._problem = problem
        self._forest = problem.forest
        self._form = form
        self._order = problem.order
        self._tree_used: Mask = np.zeros(len(self._order.roots), dtype=np.bool_)
        # Only an older form of the answer depends on single providers.
        shown = 0 if form.nested else self._forest.row_count
        self._provider_used: Mask = np.zeros(shown, dtype=np.bool_)

    def note(self, block: Choices) -> None:
        """Note the trees that returned candidates use."""
        for slot in self._problem.giving:
            self._tree_used[self._order.tree.take(block[:, slot])] = True

    def note_positions(self, positions: Sequence[int]) -> None:
        """Note the trees of some providers that a returned candidate uses."""
        self._tree_used[self._order.tree[positions]] = True

    def note_unlimited(self, block: Choices) -> None:
        """Note the providers of candidates that the limit may still cut off."""
        self._provider_used[block[:, self._problem.giving]] = True

    def pieces(self) -> Iterator[bytes]:
        """Yield the members of `provider_summaries`, in the canonical order of providers."""
        trees = np.flatnonzero(self._tree_used)
        for start in range(0, len(trees), TREES_IN_A_PIECE):
            batch = trees[start : start + TREES_IN_A_PIECE]
            self._problem.budget.check()
            if start:
                yield b","
            if self._form.nested:
                check = self._problem.budget.check
                yield self._forest.summaries.joined(batch, self._order, check)
            else:
                yield self._older(batch)

    def _older(self, trees: Trees) -> bytes:
        """Write the summaries of some trees, given their numbers, in an older form."""
        roots = self._order.roots[trees]
        positions = expand_ranges(roots, self._order.end[roots] - roots)
        used = positions[self._provider_used[positions]]
        requested = {name for slot in self._problem.plan.slots for name in slot.resources}
        return b",".join(
            [
                summary_fragment(
                    self._forest.provider(row),
                    self._forest.amounts(row),
                    self._forest.traits(row),
                    self._form,
                    requested,
                )
                for row in used.tolist()
            ]
        )


def limited_below_1_29(
    problem: Problem, candidates: Iterator[Choices], summaries: Summaries
) -> Iterator[Choices]:
    """Yield the candidates within the limit, and note the providers of all candidates.

    The operator's maximum bounds how many that are.
    """
    every = _note_rows(first_candidates(candidates, problem.options.maximum), summaries)
    for block in select_candidates(problem, every):
        problem.budget.hold(block.nbytes)
        yield block
    for _ in every:
        problem.budget.check()


def _note_rows(blocks: Iterator[Choices], summaries: Summaries) -> Iterator[Choices]:
    for block in blocks:
        summaries.note_unlimited(block)
        yield block
