# SPDX-License-Identifier: Apache-2.0
"""Plans that move each consumer to its first candidate with room: fast, and without a promise."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from treeclaim.forest.order.mixes.tree_counter import Take, TreeCounter
from treeclaim.forest.order.totals import Floats, totals_of
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.movers import Cell, Mover, MoveSituation, cells_of
from treeclaim.forest.planning.moves.places import Places
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.moves import Fit

_MOST_PLACES = 50
"""Places that are tried for one consumer of the goal `fit`, those that need the fewest moves first."""

_MOST_RELEASED = 20
"""Consumers that are tried for one move of the goal `keep`, those whose release gains most first."""


def largest_first(forest: Forest, movers: Sequence[Mover]) -> list[Mover]:
    """Sort consumers by their greatest share of a class in the whole cloud, descending."""
    names = {name for mover in movers for _, name in mover.allocations}
    capacity = {name: max(float(totals_of(forest, name).tree_capacity.sum()), 1) for name in names}

    def size(mover: Mover) -> float:
        shares = (n / capacity[name] for (_, name), n in mover.allocations.items())
        return max(shares, default=0.0)

    return sorted(movers, key=size, reverse=True)


def move_away(board: Board, movers: Sequence[Mover], most: int) -> bool:
    """Move consumers to their first candidates, the largest first.

    Returns:
        Whether all of them were moved. If not, those that found room stay moved.
    """
    is_complete = True
    for mover in largest_first(board.situation.forest, movers):
        place = None if len(board.moves) >= most else board.find(mover)
        if place is None:
            is_complete = False
        else:
            board.move(mover, *place)
    return is_complete


class RoomEstimate:
    """Estimates how many consumers must leave before a place has room."""

    def __init__(self, situation: MoveSituation) -> None:
        self._situation = situation
        self._by_cell: dict[Cell, list[tuple[int, Mover]]] = {}
        for mover in situation.movable:
            for cell, n in mover.relief.items():
                self._by_cell.setdefault(cell, []).append((n, mover))
        for amounts in self._by_cell.values():
            amounts.sort(key=lambda pair: -pair[0])

    def fewest_moves(self, board: Board, candidate: Candidate) -> int | None:
        """Return a lower bound of the moves that make room at a place; None if no moves are enough."""
        fewest = 0
        for cell, units in self.missing(board, candidate).items():
            missing, count = units, 0
            for n, mover in self._by_cell.get(cell, ()):
                if missing <= 0:
                    break
                if mover not in board.places:
                    missing -= n
                    count += 1
            if missing > 0:
                return None
            fewest = max(fewest, count)
        return fewest

    def missing(self, board: Board, candidate: Candidate) -> Counter[Cell]:
        """Return the units that a place lacks, by cell."""
        needed_units = self._situation.with_consumed(cells_of(candidate.allocations))
        return +Counter({cell: n - board.free_of(cell) for cell, n in needed_units.items()})

    def cover(self, board: Board, candidate: Candidate) -> list[Mover]:
        """Return consumers that free enough if they leave: always the one that frees most of what is missing."""
        missing = self.missing(board, candidate)
        cover: dict[Mover, None] = {}
        while missing:
            leaving = dict.fromkeys(
                mover
                for cell in missing
                for _, mover in self._by_cell.get(cell, ())
                if mover not in board.places and mover not in cover
            )
            if not leaving:
                return []
            best = max(leaving, key=lambda mover: _relief_share(mover, missing))
            cover[best] = None
            missing = +Counter({cell: n - best.relief.get(cell, 0) for cell, n in missing.items()})
        return list(cover)


def _relief_share(mover: Mover, missing: Mapping[Cell, int]) -> float:
    return sum(min(mover.relief.get(cell, 0), n) / n for cell, n in missing.items())


def make_room(board: Board, places: Places, goal: Fit, most: int) -> None:
    """Make room for the consumers of a goal, as far as consumers that leave find room themselves."""
    estimate = RoomEstimate(board.situation)
    candidates = places.first_of_each_tree(goal.request)
    query = board.query(goal.request)
    placed_units: Counter[Cell] = Counter()
    try:
        for _ in range(goal.amount):
            with board.budget.scope():
                place = query.first(board.open_trees, lambda _: True)
            place = place or _make_room_for_one(board, estimate, candidates, most)
            if place is None:
                return
            cells = cells_of(place.allocations)
            placed_units.update(cells)
            board.take(cells)
    finally:
        board.take(placed_units, -1)


def _make_room_for_one(
    board: Board, estimate: RoomEstimate, candidates: Sequence[Candidate], most: int
) -> Candidate | None:
    ranked = [
        (fewest, number)
        for number, candidate in enumerate(candidates)
        if (fewest := estimate.fewest_moves(board, candidate)) is not None
    ]
    for _, number in sorted(ranked)[:_MOST_PLACES]:
        before, candidate = len(board.moves), candidates[number]
        cover, cells = estimate.cover(board, candidate), cells_of(candidate.allocations)
        board.take(cells)
        is_clear = move_away(board, cover, most)
        board.take(cells, -1)
        if is_clear and not estimate.missing(board, candidate):
            return candidate
        board.undo(before)
    return None


class RoomGainer:
    """Moves consumers whose release gains most of the goal `keep` to trees where they cost least."""

    def __init__(
        self, board: Board, places: Places, counter: TreeCounter, weights: Sequence[int]
    ) -> None:
        self._board = board
        self._places = places
        self._counter = counter
        self._weights = np.array(weights, dtype=np.float64)
        self._cells: dict[Candidate, Mapping[Cell, int]] = {}

    def move_all(self, most: int) -> None:
        """Move one consumer after the other while that gains anything."""
        equal: defaultdict[object, list[Mover]] = defaultdict(list)
        for mover in self._board.situation.movable:
            if len(mover.occupied) == 1:
                equal[frozenset(mover.allocations.items()), mover.alternatives[0]].append(mover)
        while len(self._board.moves) < most and equal:
            keys = list(equal)
            movers = [equal[key][-1] for key in keys]
            trees = [tree for mover in movers for tree in mover.occupied]
            released = [{cell: -n for cell, n in mover.relief.items()} for mover in movers]
            gains = self._changes(trees, released)
            best = np.argsort(-gains, kind="stable")[:_MOST_RELEASED].tolist()
            moved = next((at for at in best if self._move(movers[at], gains[at])), None)
            if moved is None:
                return
            equal[keys[moved]].pop()
            if not equal[keys[moved]]:
                del equal[keys[moved]]

    def _move(self, mover: Mover, gain: float) -> bool:
        """Move a consumer to the tree that loses least, if that is less than the gain."""
        board = self._board
        candidates = [
            candidate
            for candidate in self._places.first_of_each_tree(mover.alternatives[0])
            if gain > 0
            and mover.occupied.isdisjoint(candidate.trees)
            and all(board.free_of(cell) >= n for cell, n in self._cells_of(candidate).items())
        ]
        if not candidates:
            return False
        trees = [candidate.trees[0] for candidate in candidates]
        changes = self._changes(trees, list(map(self._cells_of, candidates)))
        best = int(changes.argmax())
        allowed = np.zeros(len(board.open_trees), dtype=np.bool_)
        allowed[trees[best]] = True
        place = board.find(mover, allowed) if gain + changes[best] > 0 else None
        if place is not None:
            board.move(mover, *place)
        return place is not None

    def _cells_of(self, candidate: Candidate) -> Mapping[Cell, int]:
        if candidate not in self._cells:
            cells = cells_of(candidate.allocations)
            self._cells[candidate] = self._board.situation.with_consumed(cells)
        return self._cells[candidate]

    def _changes(self, trees: Sequence[int], cells: Sequence[Mapping[Cell, int]]) -> Floats:
        """Return the change of the goal in each tree once some units are taken, or freed if negative."""
        self._board.budget.check()
        columns: defaultdict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
        for state, units in enumerate(cells):
            count: Counter[str] = Counter()
            for (position, name), n in units.items():
                columns[name, count[name]].append((state, position, n))
                count[name] += 1
        takes = []
        for (name, _), column in columns.items():
            state_numbers, positions, amounts = np.array(column).T
            takes.append(Take(state_numbers, positions, name, amounts))
        states = np.array(trees)
        now = self._counter.count(self._board.forest, states)
        then = self._counter.count(self._board.forest, states, takes)
        changes: Floats = (then - now) @ self._weights
        return changes
