# SPDX-License-Identifier: Apache-2.0
"""An order for the moves of a solution in which each move is legal after those before it."""

from collections import Counter
from collections.abc import Sequence

from treeclaim.forest.placing.candidate import Candidate, no_trees
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.move_model import Assignment, CandidatePlace, MoverKind
from treeclaim.forest.planning.moves.movers import Cell, Mover, cells_of, free_of


def make_moves(board: Board, assignment: Assignment) -> bool:
    """Make the moves of an assignment in a legal order, those that free the most needed room first.

    Any consumer of a kind may take any place of the kind, so the order also decides which takes which.

    Returns:
        Whether a legal order was found; no further move is made otherwise. There may be an order nevertheless.
    """
    before = len(board.moves)
    sequencer = _Sequencer(board, assignment)
    while sequencer.advance():
        board.budget.check()
    if not sequencer.is_done:
        board.undo(before)
    return sequencer.is_done


class _Sequencer:
    def __init__(self, board: Board, assignment: Assignment) -> None:
        self._board = board
        self._leaving: dict[MoverKind, list[Mover]] = {}
        self._arriving: dict[MoverKind, list[CandidatePlace]] = {}
        for kind, (movers, places) in assignment.items():
            self._leaving[kind], self._arriving[kind] = _without_equal(movers, places)

    @property
    def is_done(self) -> bool:
        return not any(self._leaving.values())

    def advance(self) -> bool:
        """Make the first legal move of those that are left, and return whether there is any."""
        for kind, mover, place in self._options():
            target = self._target(mover, place)
            if target is not None:
                self._board.move(mover, *target)
                self._leaving[kind].remove(mover)
                self._arriving[kind].remove(place)
                return True
        return False

    def _options(self) -> list[tuple[MoverKind, Mover, CandidatePlace]]:
        """Return the moves that are left, those that free the most needed room first."""
        needed = self._needed()
        options = [
            (kind, mover, place)
            for kind, places in self._arriving.items()
            for place in dict.fromkeys(places)
            for mover in {
                frozenset(m.allocations.items()): m for m in self._leaving[kind]
            }.values()
        ]

        def gain(option: tuple[MoverKind, Mover, CandidatePlace]) -> float:
            relief = option[1].relief.items()
            return sum(min(n, needed[cell]) / needed[cell] for cell, n in relief if needed[cell])

        return sorted(options, key=gain, reverse=True)

    def _needed(self) -> Counter[Cell]:
        """Return the units that the arrivals lack, by cell."""
        needed_units: Counter[Cell] = Counter()
        for places in self._arriving.values():
            for place in places:
                needed_units.update(self._board.situation.used_at(place.candidate))
        forest = self._board.forest
        return +Counter({cell: n - free_of(forest, cell) for cell, n in needed_units.items()})

    def _target(self, mover: Mover, place: CandidatePlace) -> tuple[int, Candidate] | None:
        """Return the alternative and candidate by which a mover takes a place now; None if that is not legal."""
        board, candidate = self._board, place.candidate
        if mover.alternatives[place.alternative].can_split:
            # How an amount is divided depends on the room that there is now.
            trees = no_trees(board.forest)
            trees[list(candidate.trees)] = True
            target = board.find(mover, trees)
            is_move = target is not None and cells_of(target[1].allocations) != mover.allocations
            return target if is_move else None
        released = (
            {}
            if board.situation.call.both_at_once
            else board.situation.with_consumed(mover.allocations)
        )
        if any(
            free_of(board.forest, cell) + released.get(cell, 0) < n
            for cell, n in board.situation.used_at(candidate).items()
        ):
            return None
        is_kept = all(rule.keeps(candidate.trees, {}) for rule in board.rules_for(mover))
        return (place.alternative, candidate) if is_kept else None


def _without_equal(
    movers: Sequence[Mover], places: Sequence[CandidatePlace]
) -> tuple[list[Mover], list[CandidatePlace]]:
    """Return the movers and places that are left if those stay whose own allocations are a place."""
    leaving, arriving = list(movers), list(places)
    for place in places:
        cells = cells_of(place.candidate.allocations)
        same = next((mover for mover in leaving if mover.allocations == cells), None)
        if same is not None:
            leaving.remove(same)
            arriving.remove(place)
    return leaving, arriving
