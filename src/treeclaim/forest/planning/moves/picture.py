# SPDX-License-Identifier: Apache-2.0
"""Which consumers hold what where, which may move, and the rules between them: constant during a call."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import with_consumed
from treeclaim.forest.domains.filters import rows_to_leave
from treeclaim.forest.order.candidate_table import sharing_by_position
from treeclaim.forest.placing.candidate import Candidate, no_trees, positions_of, trees_of
from treeclaim.forest.placing.domains import Domains
from treeclaim.forest.placing.rules import domains_of
from treeclaim.forest.placing.scratch import Allocation
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.order import SPARE
from treeclaim.model.extension.moves import Empty, Moves
from treeclaim.model.parts import CONDITIONS
from treeclaim.model.request import CandidateRequest

Cell = tuple[int, str]
"""Position of a provider, and name of a resource class."""


class Stuck(StrEnum):
    """Why a consumer is left in a tree that is to be empty."""

    NOT_MOVABLE = "not_movable"
    NO_REQUEST = "no_request"
    NO_ROOM = "no_room"
    RULE = "rule"
    MAX_MOVES = "max_moves"


@dataclass(frozen=True, slots=True, eq=False)
class Mover:
    """A consumer that holds something.

    Attributes:
        consumer: Who.
        allocations: What it holds where there is such an inventory; one entry for each cell.
        uses: The same with what that consumes (contract page 102, section 2).
        relief: What of it becomes free when it is released.
        drawn: By hold and cell, what goes back when it is released.
        occupied: Numbers of the trees in which it holds anything.
        trees: Its trees, as rules see them: those of sharing providers only if there are no others.
        alternatives: What it may be moved by; none if it may not.
        stays: Why it may not move; None if it may.
        pools: Positions of the sharing providers that it may take; None for all.
    """

    consumer: PlannedConsumer
    allocations: Mapping[Cell, int]
    uses: Mapping[Cell, int]
    relief: Mapping[Cell, int]
    drawn: Mapping[tuple[str, Cell], int]
    occupied: frozenset[int]
    trees: tuple[int, ...]
    alternatives: tuple[CandidateRequest, ...]
    stays: Stuck | None
    pools: frozenset[int] | None


@dataclass(frozen=True, slots=True, eq=False)
class RuleOf:
    """A rule between movers.

    Attributes:
        domains: Its domains.
        members: Whom it is for, of those that hold something.
        most: No move goes to a domain where this many of the others are.
    """

    domains: Domains
    members: tuple[Mover, ...]
    most: int


@dataclass(frozen=True, slots=True)
class Change:
    """What a move changes: units by cell, below zero where they become free.

    Attributes:
        units: By cell.
        uses: The same with what is consumed.
        taken: What it takes, with what that consumes.
        returned: What holds get back, by hold and position.
    """

    units: Mapping[Cell, int]
    uses: Mapping[Cell, int]
    taken: Mapping[Cell, int]
    returned: frozenset[tuple[str, int]] = field(default_factory=frozenset)


class Picture:
    """What a call is about, as it begins.

    Attributes:
        forest: Where everybody is; `given` is applied.
        call: The call.
        sharing: Who is lent to other trees, by position.
        cleared: The providers that the goal empties, which take nothing new, by position.
        emptied: The trees that are cleared as a whole.
        occupied: Numbers of the trees in which each consumer holds anything, by uuid.
        rules: The rules of the call.
        budget: What the call may cost.
    """

    def __init__(
        self, forest: Forest, consumers: Iterable[PlannedConsumer], call: Moves, budget: Budget
    ) -> None:
        """Take what everybody holds."""
        self.forest = forest
        self.call = call
        self.sharing = sharing_by_position(forest)
        self.cleared = self._cleared()
        self.emptied: Mask = self.cleared[forest.order.roots]
        self.budget = budget
        self._consumers = {consumer.uuid: consumer for consumer in consumers}
        self._positions: dict[str, int | None] = {}
        self._names: dict[int, frozenset[str]] = {}
        self._made: dict[str, Mover] = {}
        self._free: dict[Cell, int] = {}
        self._leaving: dict[frozenset[str], Mask] = {}
        tree = forest.order.tree.tolist()
        self.occupied = {
            uuid: tuple({tree[position] for position in self._positions_of(consumer.allocations)})
            for uuid, consumer in self._consumers.items()
        }
        self.rules = self._rules(budget)

    @cached_property
    def movers(self) -> Mapping[str, Mover]:
        """Return all consumers that hold something, by uuid, in its order."""
        movers = {}
        for uuid in sorted(self._consumers):
            mover = self.mover(uuid)
            if mover is not None:
                movers[uuid] = mover
        return movers

    @cached_property
    def left(self) -> Sequence[str]:
        """Return who holds anything where nobody is to hold anything."""
        return sorted(
            uuid
            for uuid, consumer in self._consumers.items()
            if self.cleared[self._positions_of(consumer.allocations)].any()
            and self._must_leave(consumer)
        )

    def _must_leave(self, consumer: PlannedConsumer) -> bool:
        """Return whether no group of a consumer's request tolerates the conditions (page 102, section 3.2)."""
        tolerated = consumer.tolerated
        if not (isinstance(self.call.goal, Empty) and self.call.goal.leave) or not tolerated:
            return True
        if tolerated not in self._leaving:
            self._leaving[tolerated] = rows_to_leave(self.forest, tolerated)
        positions = self._positions_of(consumer.allocations)
        return bool(self._leaving[tolerated][self.forest.order.row[positions]].any())

    @cached_property
    def left_ones(self) -> frozenset[str]:
        """Return the same, to look a consumer up."""
        return frozenset(self.left)

    def mover(self, uuid: str) -> Mover | None:
        """Return a consumer; None if it holds nothing."""
        if uuid not in self._made:
            if uuid not in self._consumers:
                return None
            self.budget.check()
            self._made[uuid] = self._mover(self._consumers[uuid])
        return self._made[uuid]

    @cached_property
    def movable(self) -> Sequence[Mover]:
        """Return those who may move."""
        return [mover for mover in self.movers.values() if mover.stays is None]

    @cached_property
    def rules_of(self) -> Mapping[Mover, Sequence[RuleOf]]:
        """Return the rules that concern each mover that some rule concerns."""
        rules: dict[Mover, list[RuleOf]] = {}
        for rule in self.rules:
            for member in rule.members:
                rules.setdefault(member, []).append(rule)
        return rules

    @cached_property
    def begin_on_use(self) -> Sequence[tuple[str, frozenset[int]]]:
        """Return the keys of conditions that begin with the first use, with the positions that each then bars."""
        links, order = self.forest.links[CONDITIONS.name], self.forest.order
        barred = []
        for condition in links:
            if condition.on_use and not condition.began:
                for row in links.rows(condition, self.forest.alive.values).tolist():
                    first = int(order.position[row])
                    below = range(first, int(order.end[first]))
                    barred.append((condition.key, frozenset(below)))
        return barred

    def free_of(self, cell: Cell) -> int:
        """Return what is free of a cell at the beginning; below zero where more is used than there is."""
        if cell not in self._free:
            columns = self.forest.class_inventories(cell[1])
            index = columns.index_of(int(self.forest.order.row[cell[0]]))
            self._free[cell] = int(columns.free.values[index])
        return self._free[cell]

    def _cleared(self) -> Mask:
        goal, order = self.call.goal, self.forest.order
        # Nothing is at a spare position.
        cleared: Mask = order.row != SPARE
        if isinstance(goal, Empty) and goal.leave:
            cleared[cleared] = rows_to_leave(self.forest)[order.row[cleared]]
            return cleared
        mask = no_trees(self.forest)
        if isinstance(goal, Empty):
            positions = positions_of(self.forest, goal.providers)
            if goal.aggregate is not None:
                some = order.position[self.forest.rows_in_aggregate(goal.aggregate)]
                positions += some[order.root[some] == some].tolist()
            mask[order.tree[positions]] = True
        cleared[cleared] = mask[order.tree[cleared]]
        return cleared

    def _mover(self, consumer: PlannedConsumer) -> Mover:
        allocations = self._held(consumer.allocations)
        positions = self._positions_of(consumer.allocations)
        drawn = {
            (hold, cell): units
            for hold, amounts in consumer.drawn.items()
            for cell, units in self._held(amounts).items()
        }
        stays = self._stays(consumer)
        pools = frozenset(position for position in positions if self.sharing[position])
        goes = any(self.cleared[position] for position in pools)
        return Mover(
            consumer=consumer,
            allocations=allocations,
            uses=self.with_consumed(allocations),
            relief=self.with_consumed(_less(allocations, drawn)),
            drawn=drawn,
            occupied=frozenset(self.occupied[consumer.uuid]),
            trees=trees_of(self.forest, self.sharing, positions),
            alternatives=() if stays else consumer.requests,
            stays=stays,
            pools=None if goes else pools,
        )

    def _positions_of(self, allocations: Mapping[str, Mapping[str, int]]) -> list[int]:
        """Return the positions of the providers of some allocations, if they exist."""
        positions = []
        for uuid in allocations:
            if uuid not in self._positions:
                row = self.forest.row_of(uuid)
                at = None if row is None else int(self.forest.order.position[row])
                self._positions[uuid] = at
            position = self._positions[uuid]
            if position is not None:
                positions.append(position)
        return positions

    def _held(self, allocations: Mapping[str, Mapping[str, int]]) -> dict[Cell, int]:
        """Return units by cell, where there is such an inventory."""
        cells: dict[Cell, int] = {}
        for uuid, amounts in allocations.items():
            for position in self._positions_of({uuid: amounts}):
                names = self._names_at(position)
                for name, units in amounts.items():
                    if name in names:
                        cells[position, name] = units
        return cells

    def _names_at(self, position: int) -> frozenset[str]:
        if position not in self._names:
            classes = self.forest.catalogue.class_by_id
            row = int(self.forest.order.row[position])
            indices = self.forest.inventory_indices(row)
            self._names[position] = frozenset(classes[number].name for number, _ in indices)
        return self._names[position]

    def _stays(self, consumer: PlannedConsumer) -> Stuck | None:
        movable = self.call.movable
        of_type = (
            not consumer.is_hold
            if movable.consumer_types is None
            else consumer.type in movable.consumer_types
        )
        of_project = movable.projects is None or consumer.project in movable.projects
        is_named = consumer.uuid in movable.excepted or consumer.is_made_up
        if not of_type or not of_project or is_named:
            return Stuck.NOT_MOVABLE
        return None if consumer.requests else Stuck.NO_REQUEST

    def _rules(self, budget: Budget) -> list[RuleOf]:
        known: dict[tuple[str, ...] | None, Domains] = {}
        rules = []
        for rule in self.call.rules:
            if rule.domains not in known:
                known[rule.domains] = domains_of(self.forest, rule.domains, budget)
            domains = known[rule.domains]
            found_members = map(self.mover, sorted(rule.consumers))
            members = tuple(member for member in found_members if member is not None)
            rules.append(RuleOf(domains, members, rule.max_per_domain))
        return rules

    def may_take(self, mover: Mover, candidate: Candidate) -> bool:
        """Tell whether the goal and its sharing providers let a mover take a candidate."""
        for position, _, _ in candidate.allocations:
            if self.cleared[position]:
                return False
            if self.sharing[position] and mover.pools is not None and position not in mover.pools:
                return False
        return True

    def change(self, mover: Mover, allocations: Iterable[Allocation]) -> Change:
        """Return what it changes that a mover has some allocations instead of what it holds.

        What was drawn goes back: all of it where the old place is given up as another consumer's,
        else what exceeds the new amount there (contract page 100, section 2).
        """
        new = cells_of(allocations)
        units = dict(new)
        for cell, held in mover.allocations.items():
            units[cell] = units.get(cell, 0) - held
        returned = set()
        left = dict(new) if not self.call.both_at_once else {}
        for (hold, cell), drawn in mover.drawn.items():
            stays = min(drawn, left.get(cell, 0))
            left[cell] = left.get(cell, 0) - stays
            if drawn > stays:
                units[cell] = units.get(cell, 0) + drawn - stays
                returned.add((hold, cell[0]))
        changed = {cell: n for cell, n in units.items() if n}
        uses = {cell: n for cell, n in self.with_consumed(changed).items() if n}
        return Change(changed, uses, self.with_consumed(new), frozenset(returned))

    def with_consumed(self, cells: Mapping[Cell, int]) -> dict[Cell, int]:
        """Return units by cell with what these consume (contract page 102, section 2)."""
        taken = [(position, name, units) for (position, name), units in cells.items()]
        return cells_of(with_consumed(self.forest, taken))


def _less(
    allocations: Mapping[Cell, int], drawn: Mapping[tuple[str, Cell], int]
) -> dict[Cell, int]:
    """Return what is held beside what was drawn."""
    rest = dict(allocations)
    for (_, cell), units in drawn.items():
        rest[cell] = rest.get(cell, 0) - units
    return rest


def cells_of(allocations: Iterable[Allocation]) -> dict[Cell, int]:
    """Return units by cell."""
    cells: dict[Cell, int] = {}
    for position, name, units in allocations:
        cells[position, name] = cells.get((position, name), 0) + units
    return cells


def closed(rule: RuleOf, mover: Mover, places: Mapping[Mover, Sequence[int]]) -> set[int]:
    """Return the domains into which a rule lets nobody bring a mover.

    Args:
        rule: The rule.
        mover: Who.
        places: Trees of those that have moved; the others are where they were.
    """
    counts = np.zeros(rule.domains.count, dtype=np.int64)
    for other in rule.members:
        if other is not mover:
            counts[list(rule.domains.containing(places.get(other, other.trees)))] += 1
    return set(np.flatnonzero(counts >= rule.most).tolist()) - set(
        rule.domains.containing(places.get(mover, mover.trees))
    )
