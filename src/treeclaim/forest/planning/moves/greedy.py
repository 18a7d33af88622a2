# SPDX-License-Identifier: Apache-2.0
"""Plans that move each consumer to its first candidate with room: fast, and without a promise."""

from collections.abc import Mapping, Sequence

from treeclaim.forest.order.totals import totals_of
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.scratch import Allocation
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.picture import Cell, Mover, Picture, cells_of
from treeclaim.forest.planning.moves.places import Places
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.moves import Fit

_MOST_PLACES = 50
"""Places that are tried for one consumer of the goal `fit`, those that need the fewest moves first."""


class Sizes:
    """Sizes of consumers: the greatest share of a class in the whole cloud."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._capacity: dict[str, float] = {}

    def of(self, mover: Mover) -> float:
        """Return the size of a consumer."""
        return max(
            (n / self._capacity_of(name) for (_, name), n in mover.allocations.items()),
            default=0.0,
        )

    def _capacity_of(self, name: str) -> float:
        if name not in self._capacity:
            capacity = float(totals_of(self._forest, name).tree_capacity.sum())
            self._capacity[name] = max(capacity, 1.0)
        return self._capacity[name]


def move_away(board: Board, movers: Sequence[Mover], most: int) -> bool:
    """Move consumers to their first candidates, the largest first.

    Returns:
        Whether all of them were moved. If not, those that found room stay moved.
    """
    sizes = Sizes(board.picture.forest)
    is_complete = True
    for mover in sorted(movers, key=sizes.of, reverse=True):
        place = None if len(board.moves) >= most else board.find(mover, board.everywhere)
        if place is None:
            is_complete = False
        else:
            board.move(mover, *place)
    return is_complete


class MissingMoves:
    """Estimates how many consumers must leave before a place has room."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._by_cell: dict[Cell, list[tuple[int, Mover]]] = {}
        for mover in picture.movable:
            for cell, n in mover.relief.items():
                self._by_cell.setdefault(cell, []).append((n, mover))
        for amounts in self._by_cell.values():
            amounts.sort(key=lambda pair: -pair[0])

    def fewest(self, board: Board, candidate: Candidate) -> int | None:
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

    def missing(self, board: Board, candidate: Candidate) -> Mapping[Cell, int]:
        """Return what a place lacks, by cell."""
        wanted = self._picture.with_consumed(cells_of(candidate.allocations))
        missing = {cell: n - board.free_of(cell) for cell, n in wanted.items()}
        return {cell: n for cell, n in missing.items() if n > 0}

    def cover(self, board: Board, candidate: Candidate) -> list[Mover]:
        """Return consumers that leave enough if they go: those that leave most of what is missing first."""
        missing = dict(self.missing(board, candidate))
        cover: list[Mover] = []
        while missing:
            going = {
                mover: None
                for cell in missing
                for _, mover in self._by_cell.get(cell, ())
                if mover not in board.places and mover not in cover
            }
            if not going:
                return []
            best = max(
                going,
                key=lambda mover: sum(
                    min(mover.relief.get(cell, 0), n) / n for cell, n in missing.items()
                ),
            )
            cover.append(best)
            missing = {cell: n - best.relief.get(cell, 0) for cell, n in missing.items()}
            missing = {cell: n for cell, n in missing.items() if n > 0}
        return cover


def make_room(board: Board, places: Places, goal: Fit, most: int) -> None:
    """Make room for the consumers of a goal, as far as consumers that go find room themselves."""
    estimate = MissingMoves(board.picture)
    candidates = places.first_of_each_tree(goal.request)
    query = board.query(goal.request)
    taken: list[Allocation] = []
    try:
        for _ in range(goal.amount):
            with board.budget.scope():
                place = query.first(board.everywhere, lambda _: True)
            place = place or _make_room_for_one(board, estimate, candidates, most)
            if place is None:
                return
            taken += place.allocations
            board.take(list(place.allocations))
    finally:
        board.take([(position, name, -n) for position, name, n in taken])


def _make_room_for_one(
    board: Board, estimate: MissingMoves, candidates: Sequence[Candidate], most: int
) -> Candidate | None:
    ranked = [
        (fewest, number)
        for number, candidate in enumerate(candidates)
        if (fewest := estimate.fewest(board, candidate)) is not None
    ]
    for _, number in sorted(ranked)[:_MOST_PLACES]:
        before = len(board.moves)
        candidate = candidates[number]
        cover = estimate.cover(board, candidate)
        room = list(candidate.allocations)
        board.take(room)
        is_clear = move_away(board, cover, most)
        board.take([(position, name, -n) for position, name, n in room])
        if is_clear and not estimate.missing(board, candidate):
            return candidate
        board.undo(before)
    return None
