# SPDX-License-Identifier: Apache-2.0
"""What a goal comes to, for the exact search: what a state is worth, and what it may be worth yet.

Values are tuples of whole numbers; the greater one is better.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.counts import Counts
from treeclaim.forest.planning.moves.picture import Cell, Mover, Picture
from treeclaim.model.extension.moves import Empty, Fit, Goal, Keep

Value = tuple[int, ...]


class State:
    """Which consumers move and which stay, as far as decided; the order is not decided yet.

    Attributes:
        moved: Those that move, and how.
        undecided: Those for which it is not decided.
        units: What is held more than at the beginning, by cell.
        uses: The same with what is consumed.
        arrivals: How many moves bring anything to a cell.
    """

    def __init__(self, movers: Collection[Mover]) -> None:
        self.moved: dict[Mover, Move] = {}
        self.undecided = dict.fromkeys(movers)
        self.units: dict[Cell, int] = {}
        self.uses: dict[Cell, int] = {}
        self.arrivals: dict[Cell, int] = {}

    def decide(self, move: Move) -> None:
        """Let an undecided consumer move."""
        del self.undecided[move.mover]
        self.moved[move.mover] = move
        self._change(move, 1)

    def take_back(self, move: Move) -> None:
        """Let the one whose move was decided last be undecided again."""
        self._change(move, -1)
        del self.moved[move.mover]
        self.undecided[move.mover] = None

    def _change(self, move: Move, sign: int) -> None:
        for cell, n in move.change.units.items():
            self.units[cell] = self.units.get(cell, 0) + sign * n
        for cell, n in move.change.uses.items():
            self.uses[cell] = self.uses.get(cell, 0) + sign * n
            if n > 0:
                self.arrivals[cell] = self.arrivals.get(cell, 0) + sign

    def without_undecided(self) -> dict[Cell, int]:
        """Return by how much usage would change if the undecided were gone."""
        units = dict(self.units)
        for mover in self.undecided:
            for cell, n in mover.allocations.items():
                units[cell] = units.get(cell, 0) - n
            for (_, cell), n in mover.drawn.items():
                units[cell] = units.get(cell, 0) + n
        return units


class Aim(ABC):
    """A goal.

    Attributes:
        reached: From which value on it is reached; None where it is to be as great as can be.
    """

    reached: Value | None = None

    @abstractmethod
    def value(self, state: State) -> Value:
        """Return what a state is worth if all who are undecided stay."""

    @abstractmethod
    def ceiling(self, state: State, moves: int) -> Value:
        """Return what it is worth at most after this many more moves of the undecided."""

    @abstractmethod
    def wanted(self, state: State, floor: Value) -> Sequence[Mover]:
        """Return undecided ones, one of which must move for the plan to be worth more than a value."""


class Presence:
    """Who is in which tree, for any state."""

    def __init__(self, picture: Picture) -> None:
        self._tree = picture.forest.order.tree
        self._staying = {
            (tree, mover.consumer.uuid)
            for mover in picture.movers.values()
            if mover.stays is not None
            for tree in mover.occupied
        }

    def in_trees(self, state: State, undecided: Collection[Mover]) -> set[tuple[int, str]]:
        """Return trees with the uuids of their consumers, including those that stay and some of the undecided."""
        pairs = set(self._staying)
        for mover, move in state.moved.items():
            uuid = mover.consumer.uuid
            pairs |= {
                (int(self._tree[position]), uuid) for position, _, _ in move.candidate.allocations
            }
            pairs |= {(int(self._tree[at]), hold) for hold, at in move.change.returned}
        return pairs | {
            (tree, mover.consumer.uuid) for mover in undecided for tree in mover.occupied
        }


class EmptyAim(Aim):
    """Few consumers are left in trees that are to be empty; the value is their number, negated."""

    reached = (0,)

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    def value(self, state: State) -> Value:
        """Count the consumers left."""
        moved = {mover.consumer.uuid for mover in state.moved}
        returned = {
            hold
            for move in state.moved.values()
            for hold, at in move.change.returned
            if self._picture.cleared[at]
        }
        return (-len((self._picture.left_ones - moved) | returned),)

    def ceiling(self, state: State, moves: int) -> Value:
        """Let as many as can go."""
        return (self.value(state)[0] + min(moves, len(self._going(state))),)

    def _going(self, state: State) -> list[Mover]:
        left = self._picture.left_ones
        return [mover for mover in state.undecided if mover.consumer.uuid in left]

    def wanted(self, state: State, floor: Value) -> Sequence[Mover]:
        """Return those that may go: where all must, the first one."""
        going = self._going(state)
        needed = floor[0] + 1 - self.value(state)[0]
        return going[:1] if needed == len(going) else going


class FitAim(Aim):
    """So many consumers of a request fit; more are worth nothing."""

    def __init__(self, picture: Picture, goal: Fit, budget: Budget) -> None:
        self.reached = (goal.amount,)
        self._amount = goal.amount
        self._counts = Counts(picture.forest, [goal.request], budget)

    def value(self, state: State) -> Value:
        """Count what fits."""
        return (min(self._counts.counted(state.units)[0][0], self._amount),)

    def ceiling(self, state: State, moves: int) -> Value:
        """Count what any order could place if the undecided were gone."""
        if not moves:
            return self.value(state)
        return (min(self._counts.counted(state.without_undecided())[0][1], self._amount),)

    def wanted(self, state: State, floor: Value) -> Sequence[Mover]:
        """Return all who are undecided."""
        del floor
        return list(state.undecided)


class KeepAim(Aim):
    """Most empty trees, if they count, and then most room for a mix."""

    def __init__(self, picture: Picture, goal: Keep, budget: Budget) -> None:
        self._goal = goal
        self._presence = Presence(picture)
        self._movable = picture.movable
        self._trees = len(picture.forest.order.roots)
        self._counts = Counts(picture.forest, [request for request, _ in goal.requests], budget)

    def _sum(self, units: Mapping[Cell, int], which: int) -> int:
        counted = self._counts.counted(units)
        pairs = zip(self._goal.requests, counted, strict=True)
        return sum(weight * some[which] for (_, weight), some in pairs)

    def _empty(self, state: State, undecided: Collection[Mover]) -> int:
        if not self._goal.empty_trees:
            return 0
        occupied = {tree for tree, _ in self._presence.in_trees(state, undecided)}
        return self._trees - len(occupied)

    def value(self, state: State) -> Value:
        """Count both."""
        staying = [mover for mover in self._movable if mover not in state.moved]
        return self._empty(state, staying), self._sum(state.units, 0)

    def ceiling(self, state: State, moves: int) -> Value:
        """Count both as if the undecided were gone."""
        if not moves:
            return self.value(state)
        fixed = [
            mover
            for mover in self._movable
            if mover not in state.moved and mover not in state.undecided
        ]
        return self._empty(state, fixed), self._sum(state.without_undecided(), 1)

    def wanted(self, state: State, floor: Value) -> Sequence[Mover]:
        """Return all who are undecided."""
        del floor
        return list(state.undecided)


def aim_of(picture: Picture, goal: Goal, budget: Budget) -> Aim:
    """Return what a goal comes to."""
    if isinstance(goal, Empty):
        return EmptyAim(picture)
    if isinstance(goal, Fit):
        return FitAim(picture, goal, budget)
    return KeepAim(picture, goal, budget)
