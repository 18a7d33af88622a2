# SPDX-License-Identifier: Apache-2.0
"""Who is where while a plan is made: moves are made one after the other, each legal, and taken back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.independent import Independent, query_of
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.planning.moves.picture import (
    Cell,
    Change,
    Mover,
    Picture,
    closed,
)
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A step of a plan.

    Attributes:
        mover: Who.
        alternative: By which alternative of its request.
        candidate: What it takes.
        change: What that changes.
    """

    mover: Mover
    alternative: int
    candidate: Candidate
    change: Change

    @property
    def units(self) -> Mapping[Cell, int]:
        """Return what it takes, by cell, with what that consumes."""
        return self.change.taken


class Board:
    """The Forest after the moves made so far.

    Attributes:
        picture: How things were at the beginning.
        budget: What all may cost.
        moves: In the order in which they were made.
        places: The trees of those that have moved.
    """

    def __init__(self, picture: Picture, budget: Budget) -> None:
        self.picture = picture
        self.budget = budget
        self.moves: list[Move] = []
        self.places: dict[Mover, tuple[int, ...]] = {}
        self._scratch = Scratch(picture.forest)
        self._queries: dict[CandidateRequest, Query] = {}
        self._present: dict[tuple[int, str], int] = {}
        """For how many reasons a consumer is in a tree, where that has changed."""
        self._reasons = Counter(picture.left)
        """For how many reasons a consumer is left in a tree that is to be empty."""
        self._occupants = Counter(tree for trees in picture.occupied.values() for tree in trees)

    @cached_property
    def everywhere(self) -> Mask:
        """Return a mask that allows all trees that take anything."""
        return ~self.picture.emptied

    @property
    def forest(self) -> Forest:
        """Return the Forest as it is now, to be searched and not to be changed."""
        return self._scratch.forest

    # -- who is where ----------------------------------------------------------------------------

    def occupants(self, tree: int) -> int:
        """Return how many hold something in a tree."""
        return self._occupants[tree]

    @property
    def empty_trees(self) -> int:
        """Return in how many trees nobody holds anything."""
        return len(self.picture.forest.order.roots) - sum(n > 0 for n in self._occupants.values())

    def left(self) -> set[str]:
        """Return who holds something where nobody is to hold anything."""
        return {uuid for uuid, reasons in self._reasons.items() if reasons > 0}

    def _note(self, tree: int, uuid: str, more: int) -> None:
        was_there = tree in self.picture.occupied.get(uuid, ())
        before = self._present.get((tree, uuid), int(was_there))
        self._present[tree, uuid] = before + more
        self._occupants[tree] += (before + more > 0) - (before > 0)

    # -- moves -----------------------------------------------------------------------------------

    def move(self, mover: Mover, alternative: int, candidate: Candidate) -> None:
        """Make a move that is legal now."""
        step = Move(
            mover, alternative, candidate, self.picture.change(mover, candidate.allocations)
        )
        self.moves.append(step)
        self.places[mover] = candidate.trees
        self._apply(step, 1)

    def replay(self, moves: Iterable[Move]) -> None:
        """Make the moves of a plan once more."""
        for step in moves:
            self.move(step.mover, step.alternative, step.candidate)

    def undo(self, count: int) -> None:
        """Undo the last moves until this many are left."""
        while len(self.moves) > count:
            step = self.moves.pop()
            del self.places[step.mover]
            self._apply(step, -1)

    def _apply(self, step: Move, sign: int) -> None:
        units = step.change.units.items()
        self.take([(position, name, sign * n) for (position, name), n in units])
        if sign > 0:
            self._scratch.begin_conditions(step.candidate.allocations)
        else:
            self._scratch.end_conditions()
            for earlier in self.moves:
                self._scratch.begin_conditions(earlier.candidate.allocations)
        uuid, tree = step.mover.consumer.uuid, self.picture.forest.order.tree
        for old in step.mover.occupied:
            self._note(old, uuid, -sign)
        for new in {int(tree[position]) for position, _, _ in step.candidate.allocations}:
            self._note(new, uuid, sign)
        self._reasons[uuid] -= sign * (uuid in self.picture.left_ones)
        for hold, at in step.change.returned:
            self._note(int(tree[at]), hold, sign)
            self._reasons[hold] += sign * bool(self.picture.cleared[at])

    def take(self, allocations: list[Allocation]) -> None:
        """Let some units be used, or be free where they are below zero."""
        more = [allocation for allocation in allocations if allocation[2] > 0]
        less = [(position, name, -n) for position, name, n in allocations if n < 0]
        if more:
            self._scratch.take(more)
        if less:
            self._scratch.give_back(less)

    def free_of(self, cell: Cell) -> int:
        """Return what is free of a cell now; below zero where more is taken than there is."""
        position, name = cell
        columns = self.forest.class_inventories(name)
        return int(columns.free.values[columns.index_of(int(self.forest.order.row[position]))])

    # -- where there is room ---------------------------------------------------------------------

    def query(self, request: CandidateRequest) -> Query:
        """Return the query of a request, which is answered as things are when it is asked."""
        if request not in self._queries:
            self._queries[request] = query_of(self._scratch, request, self.budget)
        return self._queries[request]

    def find(
        self, mover: Mover, allowed: Mask, *, by_rules: bool = True
    ) -> tuple[int, Candidate] | None:
        """Return the first candidate that a mover may be moved to now, with its alternative.

        Args:
            mover: One that may move, and has not yet.
            allowed: In which trees.
            by_rules: False to overlook the rules.
        """
        at_once = self.picture.call.both_at_once
        allowed = allowed & self.everywhere
        allocations = [(position, name, n) for (position, name), n in mover.allocations.items()]
        if not at_once:
            self.take([(position, name, -n) for position, name, n in allocations])
        try:
            for number, request in enumerate(mover.alternatives):
                query = self.query(request)
                # What is searched again for each move is not held together.
                with self.budget.scope():
                    candidate = next(self._found(query, mover, allowed, by_rules=by_rules), None)
                if candidate is not None:
                    return number, candidate
            return None
        finally:
            if not at_once:
                self.take(allocations)

    def _found(
        self, query: Query, mover: Mover, allowed: Mask, *, by_rules: bool
    ) -> Iterator[Candidate]:
        rules = self.picture.rules_of.get(mover, ()) if by_rules else ()
        shut = [(rule, closed(rule, mover, self.places)) for rule in rules]
        if isinstance(query, Independent) and not self.picture.sharing.any():
            for rule, domains in shut:
                mask = np.zeros(rule.domains.count, dtype=np.bool_)
                mask[list(domains)] = True
                in_some = rule.domains.in_some[rule.domains.kind]
                allowed = allowed & in_some & ~rule.domains.with_any(mask)
            first = query.first(allowed, lambda _: True)
            if first is None:
                return
            if self.picture.may_take(mover, first):
                yield first
                return
        for candidate in query.each():
            self.budget.check()
            if (
                allowed[list(candidate.trees)].all()
                and self.picture.may_take(mover, candidate)
                and all(
                    _keeps(domains, set(rule.domains.containing(candidate.trees)))
                    for rule, domains in shut
                )
            ):
                yield candidate


def _keeps(shut: set[int], domains: set[int]) -> bool:
    return bool(domains) and not domains & shut
