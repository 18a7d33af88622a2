# SPDX-License-Identifier: Apache-2.0
"""The room beside the placed consumers, for those that draw from holds and for those that do not.

A consumer that draws takes first what its holds have, which counts as used already, and only the rest
out of what is free (contract page 100, section 2). So what is free differs between those who may draw
from different holds: each set of holds has a scratch of its own, and what a consumer takes is taken in
each, less what it drew from holds that are not that one's.
"""

from collections.abc import Iterable

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, with_free
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest

Holds = tuple[str, ...]
"""Uuids of holds, in the order in which they are drawn from."""


class Room:
    """The room, and the queries that are answered from it.

    What a query begins with takes much longer than to place a consumer. So where all begins again with
    another domain, what was taken is given back, and the queries stay.
    """

    def __init__(self, forest: Forest, budget: Budget) -> None:
        """Begin with the amounts that are used, and held, in a Forest, which is not changed."""
        self._budget = budget
        self.everybody = QueryPool(Scratch(forest), budget)
        """The queries of those who draw from no hold."""
        self._drawing: dict[tuple[Holds, frozenset[str] | None], QueryPool] = {}
        """The queries of other consumers: by their holds, and by their classes if they will be holds."""
        self._held = forest.held
        self._left: dict[str, dict[str, dict[str, int]]] = {}
        """The present amounts of the holds that were drawn from."""

    def pool(self, request: CandidateRequest, placing_request: PlacingRequest) -> QueryPool:
        """Return the queries of those who want something.

        Args:
            request: One of the alternatives.
            placing_request: From which holds consumers may draw, and whether they will be holds, to which
                min_unit, max_unit and step_size do not apply.
        """
        holds, is_hold = placing_request.from_holds, placing_request.hold is not None
        if not holds and not is_hold:
            return self.everybody
        key = holds, request.classes if is_hold else None
        if key not in self._drawing:
            present = self.everybody.scratch
            forest = with_free(present.forest, map(self._left_of, holds), self._budget)
            for name in request.classes & forest.catalogue.resource_classes.keys():
                number = forest.catalogue.resource_classes[name].id
                if is_hold and number in forest.classes:
                    forest.classes[number] = forest.classes[number].without_units()
            self._drawing[key] = QueryPool(Scratch(forest, beside=present), self._budget)
        return self._drawing[key]

    def _left_of(self, hold: str) -> dict[str, dict[str, int]]:
        """Return what a hold has left, to be changed."""
        if hold not in self._left:
            amounts = self._held.by_hold.get(hold, {})
            self._left[hold] = {uuid: dict(units) for uuid, units in amounts.items()}
        return self._left[hold]

    def place(self, allocations: Iterable[Allocation], holds: Holds = ()) -> None:
        """Place a consumer that takes first what some holds have.

        What a hold had that was drawn counts as used as before, and is not there to be drawn again.
        """
        allocations = list(allocations)
        drawn = self._drawn(allocations, holds)
        pools = [((), self.everybody), *((key[0], pool) for key, pool in self._drawing.items())]
        for drawable_holds, pool in pools:
            undrawn_allocations = [
                (
                    row,
                    name,
                    amount - sum(n for hold, n in parts if hold not in drawable_holds),
                )
                for (row, name, amount), parts in zip(allocations, drawn, strict=True)
            ]
            taken = [allocation for allocation in undrawn_allocations if allocation[2]]
            pool.scratch.place(allocations, taken)

    def _drawn(self, allocations: list[Allocation], holds: Holds) -> list[list[tuple[str, int]]]:
        """Draw what some allocations may; return for each which hold gave how much."""
        drawn: list[list[tuple[str, int]]] = []
        for row, name, amount in allocations:
            parts: list[tuple[str, int]] = []
            for hold in holds:
                units = self._left_of(hold).get(self.everybody.scratch.forest.uuid_of(row), {})
                part = min(units.get(name, 0), amount - sum(n for _, n in parts))
                if part:
                    units[name] -= part
                    parts.append((hold, part))
            drawn.append(parts)
        return drawn

    def remove_placed(self) -> None:
        """Remove all consumers that were placed."""
        for pool in (self.everybody, *self._drawing.values()):
            pool.scratch.remove_placed()
        self._left.clear()

    def held(self, holds: Holds) -> HeldAmounts:
        """Return what all holds but some have left by now."""
        if self._held.everywhere is None:
            return self._held
        forest = self.everybody.scratch.forest
        others = self._left.keys() - set(holds)
        before = self._held.of_holds(forest, {*holds, *others})
        left = HeldAmounts(self._left).of_holds(forest, others)
        return HeldAmounts({}, self._held.everywhere.plus(before, -1).plus(left))
