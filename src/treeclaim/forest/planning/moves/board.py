# SPDX-License-Identifier: Apache-2.0
"""The Forest while a plan is made: moves are made one after the other, each legal, and taken back."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import Query, query_of
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.moves.movers import (
    Cell,
    MoveChange,
    Mover,
    MoveSituation,
)
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A step of a plan: the mover takes a candidate of one of its alternatives."""

    mover: Mover
    alternative: int
    candidate: Candidate
    change: MoveChange


class Board:
    """The Forest after the moves made so far.

    Attributes:
        moves: The moves, in their order.
        places: The trees of the movers that have moved.
        open_trees: Which trees take anything.
    """

    def __init__(self, situation: MoveSituation) -> None:
        self.situation = situation
        self.budget = situation.budget
        self.moves: list[Move] = []
        self.places: dict[Mover, tuple[int, ...]] = {}
        self.open_trees: Mask = ~situation.emptied
        self._scratch = Scratch(situation.forest)
        self._queries: dict[CandidateRequest, Query] = {}

    @property
    def forest(self) -> Forest:
        """Return the Forest after the moves, to be searched and not to be changed."""
        return self._scratch.forest

    # -- consumers -------------------------------------------------------------------------------

    def occupants(self) -> Counter[int]:
        """Return the number of consumers in each tree that has any."""
        tree, occupied = self.situation.forest.order.tree, dict(self.situation.occupied)
        for move in self.moves:
            allocations = move.candidate.allocations
            trees = frozenset(int(tree[position]) for position, _, _ in allocations)
            occupied[move.mover.consumer.uuid] = trees
            for hold, position in move.change.returned:
                occupied[hold] = occupied.get(hold, frozenset()) | {int(tree[position])}
        return Counter(tree for trees in occupied.values() for tree in trees)

    def left(self) -> set[str]:
        """Return the consumers that are where the goal forbids them."""
        misplaced = set(self.situation.left)
        for move in self.moves:
            misplaced.discard(move.mover.consumer.uuid)
            for hold, position in move.change.returned:
                if self.situation.cleared[position]:
                    misplaced.add(hold)
        return misplaced

    # -- moves -----------------------------------------------------------------------------------

    def move(self, mover: Mover, alternative: int, candidate: Candidate) -> None:
        """Make a move that is legal now."""
        change = self.situation.change(mover, candidate.allocations)
        self.moves.append(Move(mover, alternative, candidate, change))
        self.places[mover] = candidate.trees
        self.take(change.units)
        self._scratch.begin_conditions(candidate.allocations)

    def replay(self, moves: Iterable[Move]) -> None:
        """Make the moves of a plan once more."""
        for move in moves:
            self.move(move.mover, move.alternative, move.candidate)

    def undo(self, count: int) -> None:
        """Undo the last moves until this many are left."""
        while len(self.moves) > count:
            move = self.moves.pop()
            del self.places[move.mover]
            self.take(move.change.units, -1)
            self._scratch.end_conditions()
            for earlier in self.moves:
                self._scratch.begin_conditions(earlier.candidate.allocations)

    def take(self, cells: Mapping[Cell, int], sign: int = 1) -> None:
        """Take some units by cell, or with the sign -1 give them back."""
        changes = [(position, name, sign * n) for (position, name), n in cells.items()]
        increases = [change for change in changes if change[2] > 0]
        freed = [(position, name, -n) for position, name, n in changes if n < 0]
        if increases:
            self._scratch.take(increases)
        if freed:
            self._scratch.give_back(freed)

    def free_of(self, cell: Cell) -> int:
        """Return the free units of a cell; below zero where it is over-committed."""
        position, name = cell
        columns = self.forest.class_inventories(name)
        return int(columns.free.values[columns.index_of(position)])

    # -- places ----------------------------------------------------------------------------------

    def query(self, request: CandidateRequest) -> Query:
        """Return the query of a request in the Forest after the moves."""
        if request not in self._queries:
            self._queries[request] = query_of(self._scratch, request, self.budget)
        return self._queries[request]

    def find(
        self, mover: Mover, allowed: Mask | None = None, *, by_rules: bool = True
    ) -> tuple[int, Candidate] | None:
        """Return the first candidate to which a mover may be moved now, with its alternative.

        Args:
            mover: A mover that may move, and has not yet.
            allowed: In which trees; None for all.
            by_rules: False to ignore the rules.
        """
        allowed = self.open_trees if allowed is None else allowed & self.open_trees
        released = {} if self.situation.call.both_at_once else mover.allocations
        self.take(released, -1)
        try:
            for number, request in enumerate(mover.alternatives):
                # What is searched again for each move is not held together.
                with self.budget.scope():
                    candidate = self._first(self.query(request), mover, allowed, by_rules=by_rules)
                if candidate is not None:
                    return number, candidate
            return None
        finally:
            self.take(released)

    def _first(
        self, query: Query, mover: Mover, allowed: Mask, *, by_rules: bool
    ) -> Candidate | None:
        rules = self.situation.rules_of.get(mover, ()) if by_rules else ()
        closed = [(rule.domains, rule.closed_domains(mover, self.places)) for rule in rules]
        alone = allowed
        for domains, numbers in closed:
            is_open = np.ones(domains.count, dtype=np.bool_)
            is_open[list(numbers)] = False
            alone = alone & domains.with_only(is_open)

        def keeps(trees: Sequence[int]) -> bool:
            return bool(allowed[list(trees)].all()) and all(
                bool(domains.containing(trees)) and numbers.isdisjoint(domains.containing(trees))
                for domains, numbers in closed
            )

        first = query.first(alone, keeps)
        if first is None or self.situation.may_take(mover, first):
            return first
        for candidate in query.each():
            self.budget.check()
            if keeps(candidate.trees) and self.situation.may_take(mover, candidate):
                return candidate
        return None
