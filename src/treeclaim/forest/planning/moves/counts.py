# SPDX-License-Identifier: Apache-2.0
"""How many consumers fit in states that differ little: where trees are apart, each is counted once."""

from collections.abc import Mapping, Sequence

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import are_any
from treeclaim.forest.order.trees import alone
from treeclaim.forest.placing.capacity import counted_now
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.moves.picture import Cell
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest

_BYTES_FOR_A_COUNT = 1_000
"""What is remembered of a state of a tree."""


class Counts:
    """Counts some requests in small Forests of which other amounts are used."""

    def __init__(
        self, forest: Forest, requests: Sequence[CandidateRequest], budget: Budget
    ) -> None:
        """Take the used amounts at the beginning, relative to which changes are given."""
        self._parts = []
        for request in requests:
            self._parts.append(
                [_Part(forest, request, None, budget)]
                if counted_now(forest, request, budget).by_tree is None
                else [
                    _Part(forest, request, tree, budget) for tree in range(len(forest.order.roots))
                ]
            )

    def counted(self, units: Mapping[Cell, int]) -> list[tuple[int, int]]:
        """Return for each request how many fit, and a bound of that.

        Args:
            units: What is used more than at the beginning, by cell.
        """
        counts = []
        for parts in self._parts:
            counted = [part.counted(units) for part in parts]
            counts.append((sum(least for least, _ in counted), sum(most for _, most in counted)))
        return counts


class _Part:
    """A tree, or the whole Forest where trees concern each other, and a request."""

    def __init__(
        self, forest: Forest, request: CandidateRequest, tree: int | None, budget: Budget
    ) -> None:
        order = forest.order
        self._begin = 0 if tree is None else int(order.roots[tree])
        self._end = len(order.row) if tree is None else int(order.end[self._begin])
        self._request = request
        self._budget = budget
        # An order may look at more than what is asked for, and others may consume of that.
        self._names = (
            None
            if request.order is not None or are_any(forest)
            else {name for group in request.groups for name in group.resources}
        )
        counted = forest if tree is None else alone(forest, np.array([tree]))
        counted.held = forest.held
        self._scratch = Scratch(counted)
        self._now: dict[Cell, int] = {}
        self._known: dict[frozenset[tuple[Cell, int]], tuple[int, int]] = {}

    def counted(self, units: Mapping[Cell, int]) -> tuple[int, int]:
        """Return how many fit if this many more units were used, and a bound on it."""
        some = {
            cell: n
            for cell, n in units.items()
            if n
            and self._begin <= cell[0] < self._end
            and (self._names is None or cell[1] in self._names)
        }
        key = frozenset(some.items())
        if key not in self._known:
            self._budget.check()
            self._budget.hold(_BYTES_FOR_A_COUNT)
            self._become(some)
            counted = counted_now(self._scratch.forest, self._request, self._budget)
            self._known[key] = counted.fits, counted.at_most
        return self._known[key]

    def _become(self, units: dict[Cell, int]) -> None:
        for cell in {*units, *self._now}:
            more = units.get(cell, 0) - self._now.get(cell, 0)
            allocation = cell[0] - self._begin, cell[1], abs(more)
            if more > 0:
                self._scratch.take([allocation])
            elif more:
                self._scratch.give_back([allocation])
        self._now = units
