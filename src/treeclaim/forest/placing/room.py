# SPDX-License-Identifier: Apache-2.0
"""The room beside the placed consumers, for consumers that draw from holds and for those that do not.

A consumer first takes the amounts of its holds, which already count as used, and only the remainder
from the free units (contract page 100, section 2). The free units therefore differ between sets of holds: each
set has its own scratch, and a consumer's amounts are taken in each scratch, less the amounts drawn from holds
outside of its set.
"""

from collections.abc import Iterable

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Allocation
from treeclaim.forest.placing.queries import QueryPool
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts, with_free
from treeclaim.model.extension.placing import PlacingRequest
from treeclaim.model.request import CandidateRequest

Holds = tuple[str, ...]
"""Uuids of holds, in the order in which they are drawn from."""


class Room:
    """The room, and the queries in it.

    Preparing a query takes much longer than placing a consumer. Where placing starts again with
    another domain, amounts are released, and the queries stay.
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
        """Return the queries of some consumers.

        Args:
            request: One of the alternatives.
            placing_request: States the holds of the consumers, and whether they will be holds, to which
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
        """Place a consumer that first takes the amounts of some holds.

        Drawn amounts still count as used, and cannot be drawn again.
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
        """Draw the amounts of some allocations as far as possible; return the holds and units of each."""
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
