# SPDX-License-Identifier: Apache-2.0
"""Movable consumers, their rules and the goal, which are constant during a call."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, partial

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import Allocation, include_consumed
from treeclaim.forest.domains.filters import rows_armed_to_leave, rows_to_leave, sharing_rows
from treeclaim.forest.placing.candidate import (
    Candidate,
    find_rows,
    find_trees,
    make_allocations,
    no_trees,
)
from treeclaim.forest.placing.rules import prepare_rules
from treeclaim.forest.planning.consumers import PlannedConsumer, make_need_key
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.planning import EvacuationGoal, MovesCall
from treeclaim.model.parts import CONDITIONS
from treeclaim.model.request import CandidateRequest

Cell = tuple[int, str]
"""Row of a provider, and name of a resource class."""


class StuckReason(StrEnum):
    """The reason why a consumer stays in a tree that the goal empties."""

    NOT_MOVABLE = "not_movable"
    NO_REQUEST = "no_request"
    NO_ROOM = "no_room"
    RULE = "rule"
    MAX_MOVES = "max_moves"


@dataclass(frozen=True, slots=True, eq=False)
class Mover:
    """A consumer with allocations.

    Attributes:
        allocations: Units by cell, where the Forest has the inventory.
        relief: Units by cell that become free when the consumer is released, with the units that they consume.
        drawn_units: Units by hold and cell that return to the hold when the consumer is released.
        occupied: Numbers of the trees in which the consumer has allocations.
        trees: Trees for rules; trees of sharing providers count only if all its providers are sharing.
        alternatives: The requests for new places; none if the consumer may not move.
        stuck: The reason why the consumer may not move; None if it may.
        pools: Rows of the sharing providers that the consumer may take; None for all.
    """

    consumer: PlannedConsumer
    allocations: Mapping[Cell, int]
    relief: Mapping[Cell, int]
    drawn_units: Mapping[tuple[str, Cell], int]
    occupied: frozenset[int]
    trees: tuple[int, ...]
    alternatives: tuple[CandidateRequest, ...]
    stuck: StuckReason | None
    pools: frozenset[int] | None


Returns = frozenset[tuple[str, int]]
"""Holds to which units return, with the rows of these units."""


class MoveSituation:
    """The state in which a call for moves begins.

    Attributes:
        forest: The Forest with `given` applied.
        sharing: Mask of the rows of sharing providers.
        cleared: Mask of the rows that the goal empties.
        closed: Mask of the rows that take nothing new: cleared rows, and for the goal `leave` rows that consumers
            would have to leave after the first use.
        emptied: Mask of the trees that the goal empties completely.
        occupied: Numbers of the trees in which each consumer has allocations, by UUID.
    """

    def __init__(
        self, forest: Forest, consumers: Iterable[PlannedConsumer], call: MovesCall, budget: Budget
    ) -> None:
        self.forest = forest
        self.call = call
        self.budget = budget
        self.sharing = sharing_rows(forest)
        self.cleared = self._find_cleared_rows()
        self.closed = self._find_closed_rows()
        self.emptied: Mask = self.cleared[forest.order.roots]
        self._consumers = {consumer.uuid: consumer for consumer in consumers}
        self._rows_to_leave = cache(partial(rows_to_leave, forest))
        tree = forest.order.tree.tolist()
        self.occupied = {
            uuid: frozenset(tree[at] for at in find_rows(self.forest, consumer.allocations))
            for uuid, consumer in self._consumers.items()
        }
        self.rules = prepare_rules(forest, call.rules, budget)

    # -- consumers -------------------------------------------------------------------------------

    @cached_property
    def misplaced(self) -> frozenset[str]:
        """Return the consumers, holds included, in places that the goal forbids."""
        return frozenset(
            uuid
            for uuid, consumer in self._consumers.items()
            if self.cleared[find_rows(self.forest, consumer.allocations)].any()
            and self._must_leave(consumer)
        )

    def _must_leave(self, consumer: PlannedConsumer) -> bool:
        """Return whether the consumer's request does not tolerate the conditions (page 102, section 3.2)."""
        tolerated = consumer.tolerated
        if (
            not (isinstance(self.call.goal, EvacuationGoal) and self.call.goal.leave)
            or not tolerated
        ):
            return True
        rows = find_rows(self.forest, consumer.allocations)
        return bool(self._rows_to_leave(tolerated)[rows].any())

    @cached_property
    def movers(self) -> Mapping[str, Mover]:
        """Return all consumers with allocations, ordered by UUID."""
        return {uuid: self._make_mover(self._consumers[uuid]) for uuid in sorted(self._consumers)}

    @cached_property
    def movable(self) -> Sequence[Mover]:
        """Return all consumers that may move."""
        return [mover for mover in self.movers.values() if mover.stuck is None]

    @cached_property
    def leaving(self) -> Sequence[Mover]:
        """Return the movable consumers that must leave, by descending need."""
        need_key = make_need_key(self.forest)
        leaving = (mover for mover in self.movable if mover.consumer.uuid in self.misplaced)
        return sorted(leaving, key=lambda mover: need_key(mover.consumer))

    def _make_mover(self, consumer: PlannedConsumer) -> Mover:
        self.budget.check()
        allocations = sum_by_cell(make_allocations(self.forest, consumer.allocations))
        rows = find_rows(self.forest, consumer.allocations)
        drawn_units = {
            (hold, cell): units
            for hold, amounts in consumer.drawn_amounts.items()
            for cell, units in sum_by_cell(make_allocations(self.forest, amounts)).items()
        }
        released = Counter(allocations)
        for (_, cell), units in drawn_units.items():
            released[cell] -= units
        stuck = self._find_stuck_reason(consumer)
        pools = frozenset(row for row in rows if self.sharing[row])
        return Mover(
            consumer=consumer,
            allocations=allocations,
            relief=self.sum_used(flatten_cells(released)),
            drawn_units=drawn_units,
            occupied=self.occupied[consumer.uuid],
            trees=find_trees(self.forest, rows),
            alternatives=() if stuck else consumer.requests,
            stuck=stuck,
            pools=None if any(self.cleared[row] for row in pools) else pools,
        )

    def _find_stuck_reason(self, consumer: PlannedConsumer) -> StuckReason | None:
        movable = self.call.movable
        is_of_type = not consumer.is_hold and (
            movable.consumer_types is None or consumer.type in movable.consumer_types
        )
        is_of_project = movable.projects is None or consumer.project in movable.projects
        is_excepted = consumer.uuid in movable.excepted or consumer.is_assumed
        if not is_of_type or not is_of_project or is_excepted:
            return StuckReason.NOT_MOVABLE
        return None if consumer.requests else StuckReason.NO_REQUEST

    # -- constraints -----------------------------------------------------------------------------

    def _find_cleared_rows(self) -> Mask:
        goal, order = self.call.goal, self.forest.order
        cleared: Mask = self.forest.alive.values.copy()
        if isinstance(goal, EvacuationGoal) and goal.leave:
            cleared[cleared] = rows_to_leave(self.forest)[cleared]
            return cleared
        trees = no_trees(self.forest)
        if isinstance(goal, EvacuationGoal):
            rows = find_rows(self.forest, goal.providers)
            if goal.aggregate is not None:
                members = self.forest.rows_in_aggregate(goal.aggregate)
                rows += members[order.root[members] == members].tolist()
            trees[order.tree[rows]] = True
        cleared[cleared] = trees[order.tree[cleared]]
        return cleared

    def _find_closed_rows(self) -> Mask:
        goal = self.call.goal
        if not (isinstance(goal, EvacuationGoal) and goal.leave):
            return self.cleared
        is_closed = self.cleared.copy()
        is_alive: Mask = self.forest.alive.values
        is_closed[is_alive] |= rows_armed_to_leave(self.forest)[is_alive]
        return is_closed

    @cached_property
    def ruled_trees(self) -> Mapping[str, Sequence[int]]:
        """Return the trees of the consumers that a rule names, by UUID."""
        names = frozenset[str]().union(*(rule.consumers for rule, _ in self.rules))
        return {uuid: self.movers[uuid].trees for uuid in names & self._consumers.keys()}

    @cached_property
    def barred_on_use(self) -> Sequence[frozenset[int]]:
        """Return the rows that each condition would bar after its first use."""
        links, end = self.forest.links[CONDITIONS.name], self.forest.order.end
        return [
            frozenset(range(row, int(end[row])))
            for condition in links
            if condition.on_use and not condition.began
            for row in links.rows(condition, self.forest.alive.values).tolist()
        ]

    def may_take(self, mover: Mover, candidate: Candidate) -> bool:
        """Return whether the goal and the mover's sharing providers permit a candidate."""
        return not any(
            self.closed[row]
            or (self.sharing[row] and mover.pools is not None and row not in mover.pools)
            for row, _, _ in candidate.allocations
        )

    # -- amounts ---------------------------------------------------------------------------------

    def compute_change(
        self, mover: Mover, allocations: Iterable[Allocation]
    ) -> tuple[Mapping[Cell, int], Returns]:
        """Return the effect of a move: units by cell, negative where they become free, and the returns to holds.

        With `both_at_once` all drawn units return, otherwise the units that exceed the new allocation in the same
        cell (contract page 100, section 2).
        """
        new_units = sum_by_cell(allocations)
        units = Counter(new_units)
        units.subtract(mover.allocations)
        returned = set()
        undrawn_units = Counter() if self.call.both_at_once else Counter(new_units)
        for (hold, cell), drawn_units in mover.drawn_units.items():
            kept_units = min(drawn_units, undrawn_units[cell])
            undrawn_units[cell] -= kept_units
            if drawn_units > kept_units:
                units[cell] += drawn_units - kept_units
                returned.add((hold, cell[0]))
        return {cell: n for cell, n in units.items() if n}, frozenset(returned)

    def sum_used(self, allocations: Iterable[Allocation]) -> dict[Cell, int]:
        """Return the allocated units by cell, with the units that they consume (contract page 102, section 2)."""
        return sum_by_cell(include_consumed(self.forest, allocations))


def get_free_units(forest: Forest, cell: Cell) -> int:
    """Return the free units of a cell, negative if it is over-committed."""
    columns = forest.class_inventories(cell[1])
    return int(columns.free.values[columns.index_of(cell[0])])


def sum_by_cell(allocations: Iterable[Allocation]) -> dict[Cell, int]:
    """Return allocations as units by cell."""
    cells: dict[Cell, int] = {}
    for row, name, units in allocations:
        cells[row, name] = cells.get((row, name), 0) + units
    return cells


def flatten_cells(cells: Mapping[Cell, int]) -> list[Allocation]:
    """Return units by cell as allocations."""
    return [(row, name, units) for (row, name), units in cells.items()]
