# SPDX-License-Identifier: Apache-2.0
"""How much a search takes at a time."""

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.solve.partial.blocks import most_rows
from treeclaim.forest.solve.problem import Problem


class Pace:
    """How much a search takes at a time: little if little is wanted, more if little is found.

    Attributes:
        reach: Trees that are compared together, to find anchors.
        anchors: Anchors that are staged together.
        rows: Partial candidates that are extended together.
    """

    def __init__(self, problem: Problem) -> None:
        """Begin with what the limit asks for."""
        self._largest = most_rows(len(problem.relations), thresholds.LARGEST_BLOCK)
        wanted = problem.wanted
        trees = len(problem.forest.order.roots)
        self.rows = (
            self._largest
            if wanted is None
            else min(max(wanted, thresholds.SMALLEST_BLOCK), self._largest)
        )
        self.reach = trees if problem.is_eager else thresholds.FIRST_REACH
        self.anchors = trees if problem.is_eager else self.rows

    def reach_further(self) -> None:
        """Compare more trees together the next time."""
        self.reach *= 2

    def note_stage(self, *, is_fruitless: bool) -> None:
        """Take more the next time, and much more where nothing was found."""
        self.anchors *= thresholds.FRUITLESS_STRIDE if is_fruitless else 2
        if is_fruitless:
            self.rows = min(self.rows * thresholds.FRUITLESS_STRIDE, self._largest)
