# SPDX-License-Identifier: Apache-2.0
"""An order for the moves of a solution in which each move is legal after those before it."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.move_model import Assignment, MoverKind, Place
from treeclaim.forest.planning.moves.movers import Cell, Mover, MoveSituation, cells_of

_MOST_ORDERS = 40
"""Orders that are tried: one by the room that moves free, the others with this room weighted at random."""


def order_moves(situation: MoveSituation, assignment: Assignment) -> Sequence[Move] | None:
    """Put the moves of an assignment into a legal order, those that free the most needed room first.

    Any consumer of a kind may take any place of the kind, so the order also decides which takes which.

    Returns:
        The moves; None if no legal order was found. There may be one nevertheless.
    """
    for seed in range(_MOST_ORDERS):
        chance = random.Random(seed) if seed else None  # noqa: S311 - the same orders each time
        sequencer = _Sequencer(situation, assignment, chance)
        while (move := next(filter(sequencer.is_legal, sequencer.options()), None)) is not None:
            situation.budget.check()
            sequencer.make(move)
        if sequencer.is_done:
            return sequencer.order
    return None


class _Sequencer:
    def __init__(
        self, situation: MoveSituation, assignment: Assignment, chance: random.Random | None
    ) -> None:
        self._chance = chance
        self._situation = situation
        self._leaving: dict[MoverKind, list[Mover]] = {}
        self._arriving: dict[MoverKind, list[Place]] = {}
        for kind, movers in assignment.leaving.items():
            places = assignment.arriving.get(kind, ())
            self._leaving[kind], self._arriving[kind] = _without_equal(movers, places)
        self._used: Counter[Cell] = Counter()
        self._places: dict[Mover, Sequence[int]] = {}
        self.order: list[Move] = []

    @property
    def is_done(self) -> bool:
        return not any(self._leaving.values())

    def options(self) -> list[Move]:
        """Return the moves that are left, those that free the most needed room first."""
        needed, chance = self._needed(), self._chance

        def gain(move: Move) -> tuple[float, float]:
            relief = move.mover.relief.items()
            room = sum(min(n, needed[cell]) / needed[cell] for cell, n in relief if needed[cell])
            return (room, 0.0) if chance is None else (room * chance.random(), chance.random())

        return sorted(self._moves(), key=gain, reverse=True)

    def _moves(self) -> Iterator[Move]:
        for kind, places in self._arriving.items():
            movers = {frozenset(m.allocations.items()): m for m in self._leaving[kind]}
            for place in dict.fromkeys(places):
                for mover in movers.values():
                    change = self._situation.change(mover, place.candidate.allocations)
                    yield Move(mover, place.alternative, place.candidate, change)

    def _needed(self) -> Counter[Cell]:
        """Return the units that the arrivals lack, by cell."""
        needed_units: Counter[Cell] = Counter()
        for places in self._arriving.values():
            for place in places:
                cells = cells_of(place.candidate.allocations)
                needed_units.update(self._situation.with_consumed(cells))
        return +Counter({cell: n - self._free(cell) for cell, n in needed_units.items()})

    def _free(self, cell: Cell) -> int:
        return self._situation.free_of(cell) - self._used[cell]

    def is_legal(self, move: Move) -> bool:
        """Return whether a move may be made next."""
        both_at_once = self._situation.call.both_at_once
        released: Mapping[Cell, int] = {} if both_at_once else move.mover.uses
        needed_units = move.change.taken.items()
        if any(self._free(cell) + released.get(cell, 0) < n for cell, n in needed_units):
            return False
        for rule in self._situation.rules_of.get(move.mover, ()):
            domains = rule.domains.containing(move.candidate.trees)
            closed = rule.closed_domains(move.mover, self._places)
            if not domains or not closed.isdisjoint(domains):
                return False
        return True

    def make(self, move: Move) -> None:
        """Make a move."""
        self.order.append(move)
        self._used.update(move.change.uses)
        self._places[move.mover] = move.candidate.trees
        kind = next(kind for kind, movers in self._leaving.items() if move.mover in movers)
        self._leaving[kind].remove(move.mover)
        places = self._arriving[kind]
        places.remove(next(place for place in places if place.candidate is move.candidate))


def _without_equal(
    movers: Sequence[Mover], places: Sequence[Place]
) -> tuple[list[Mover], list[Place]]:
    """Return the movers and places that are left if those stay whose own allocations are a place."""
    leaving, arriving = list(movers), list(places)
    for place in places:
        cells = cells_of(place.candidate.allocations)
        same = next((mover for mover in leaving if mover.allocations == cells), None)
        if same is not None:
            leaving.remove(same)
            arriving.remove(place)
    return leaving, arriving
