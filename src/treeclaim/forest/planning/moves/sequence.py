# SPDX-License-Identifier: Apache-2.0
"""An order for the moves of a solution in which each move is legal after those before it."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.move_model import Assignment, Kind, Place
from treeclaim.forest.planning.moves.picture import Cell, Mover, Picture, cells_of, closed

_MOST_STEPS = 3_000
"""Moves that are tried: enough for every order of the moves of a small world (contract page 101, section 5.3)."""


_RANDOM_ORDERS = 40
"""Orders that are tried where there are too many to try all."""


@dataclass(frozen=True, slots=True)
class MoveOrder:
    """The result of looking for an order.

    Attributes:
        moves: The moves in a legal order; None if none was found.
        is_certain: Whether there is no legal order if none was found.
    """

    moves: Sequence[Move] | None
    is_certain: bool


def order_moves(picture: Picture, assignment: Assignment) -> MoveOrder:
    """Put the moves of an assignment into a legal order.

    Any consumer of a kind may take any place of the kind, so the order also decides who takes which.
    """
    return _Sequencer(picture, assignment).order()


class _Sequencer:
    def __init__(self, picture: Picture, assignment: Assignment) -> None:
        self._picture = picture
        self._moves = list(assignment.moves)
        self._leaving: dict[Kind, list[Mover]] = {}
        self._arriving: dict[Kind, list[Place]] = {}
        for kind, movers in assignment.leaving.items():
            places = assignment.arriving.get(kind, ())
            self._leaving[kind], self._arriving[kind] = _cancel(movers, places)
        self._used: Counter[Cell] = Counter()
        self._places: dict[Mover, Sequence[int]] = {}
        self._order: list[Move] = []
        self._failed: set[tuple[object, ...]] = set()
        self._steps = 0
        self._chance: random.Random | None = None

    def order(self) -> MoveOrder:
        """Try all orders up to a number of steps, then random ones without going back."""
        if self._extend():
            return MoveOrder(self._order, is_certain=True)
        if self._steps <= _MOST_STEPS:
            return MoveOrder(None, is_certain=True)
        for seed in range(_RANDOM_ORDERS):
            self._chance = random.Random(seed)  # noqa: S311 - the same orders each time
            undo = []
            while (move := next(filter(self._is_legal, self._options()), None)) is not None:
                self._picture.budget.check()
                undo.append(self._make(move))
            if self._is_done():
                return MoveOrder(self._order, is_certain=True)
            for take_back in reversed(undo):
                take_back()
        return MoveOrder(None, is_certain=False)

    def _is_done(self) -> bool:
        return not self._moves and not any(self._leaving.values())

    def _extend(self) -> bool:
        if self._is_done():
            return True
        key = self._state()
        if key in self._failed or self._steps > _MOST_STEPS:
            return False
        for move in self._options():
            self._steps += 1
            self._picture.budget.check()
            if not self._is_legal(move):
                continue
            undo = self._make(move)
            if self._extend():
                return True
            undo()
            if self._steps > _MOST_STEPS:
                return False
        self._failed.add(key)
        return False

    def _state(self) -> tuple[object, ...]:
        """Return what decides whether the remaining moves have an order."""
        leaving = tuple(
            frozenset(Counter(frozenset(m.allocations.items()) for m in movers).items())
            for movers in self._leaving.values()
        )
        arriving = tuple(
            frozenset(Counter(map(id, places)).items()) for places in self._arriving.values()
        )
        return leaving, arriving, frozenset(map(id, self._moves))

    def _options(self) -> Iterator[Move]:
        """Yield the moves that may come next: those that free the most needed room first."""
        needed = self._needed()
        options = [(self._gain(move.mover, needed), self._random(), move) for move in self._moves]
        for kind, places in self._arriving.items():
            movers = {frozenset(m.allocations.items()): m for m in self._leaving[kind]}
            for place in {id(place): place for place in places}.values():
                for mover in movers.values():
                    change = self._picture.change(mover, place.candidate.allocations)
                    move = Move(mover, place.alternative, place.candidate, change)
                    options.append((self._gain(mover, needed), self._random(), move))
        options.sort(key=lambda option: option[:2])
        yield from (move for _, _, move in options)

    def _random(self) -> float:
        return 0.0 if self._chance is None else self._chance.random()

    def _gain(self, mover: Mover, needed: Counter[Cell]) -> float:
        """Return how much needed room a consumer frees, as a negative number; in random orders roughly."""
        gain = -sum(
            min(n, needed[cell]) / needed[cell]
            for cell, n in mover.relief.items()
            if cell in needed
        )
        return gain if self._chance is None else gain * self._chance.random()

    def _needed(self) -> Counter[Cell]:
        """Return what the arrivals lack, by cell."""
        wanted: Counter[Cell] = Counter()
        for places in self._arriving.values():
            for place in places:
                cells = cells_of(place.candidate.allocations)
                wanted.update(self._picture.with_consumed(cells))
        for move in self._moves:
            wanted.update(move.units)
        return +Counter({cell: n - self._free(cell) for cell, n in wanted.items()})

    def _free(self, cell: Cell) -> int:
        return self._picture.free_of(cell) - self._used[cell]

    def _is_legal(self, move: Move) -> bool:
        own: Mapping[Cell, int] = {} if self._picture.call.both_at_once else move.mover.uses
        if any(self._free(cell) + own.get(cell, 0) < n for cell, n in move.units.items()):
            return False
        for rule in self._picture.rules_of.get(move.mover, ()):
            domains = set(rule.domains.containing(move.candidate.trees))
            if not domains or domains & closed(rule, move.mover, self._places):
                return False
        return True

    def _make(self, move: Move) -> Callable[[], None]:
        """Make a move, and return the function that takes it back."""
        self._order.append(move)
        self._used.update(move.change.uses)
        self._places[move.mover] = move.candidate.trees
        if move in self._moves:
            at = self._moves.index(move)
            del self._moves[at]

            def restore() -> None:
                self._moves.insert(at, move)

        else:
            kind = move.mover.alternatives, move.mover.pools
            movers, places = self._leaving[kind], self._arriving[kind]
            place = next(place for place in places if place.candidate is move.candidate)
            movers.remove(move.mover)
            places.remove(place)

            def restore() -> None:
                movers.append(move.mover)
                places.append(place)

        def undo() -> None:
            restore()
            self._order.pop()
            self._used.subtract(move.change.uses)
            del self._places[move.mover]

        return undo


def _cancel(movers: Sequence[Mover], places: Sequence[Place]) -> tuple[list[Mover], list[Place]]:
    """Let consumers stay whose places are taken by consumers of their kind."""
    going, taken = list(movers), list(places)
    for place in places:
        cells = cells_of(place.candidate.allocations)
        same = next((mover for mover in going if mover.allocations == cells), None)
        if same is not None:
            going.remove(same)
            taken.remove(place)
    return going, taken
