# SPDX-License-Identifier: Apache-2.0
"""Trees emptied in a large world, and room made for more consumers of a request: one after the other."""

import random
import time
from collections.abc import Iterator, Sequence
from itertools import islice

from treeclaim.forest.placing.scratch import Allocation
from treeclaim.forest.planning.moves.board import Board, Move
from treeclaim.forest.planning.moves.chains import Chains
from treeclaim.forest.planning.moves.clearing import Clearing, Option
from treeclaim.forest.planning.moves.picture import Mover, RuleOf
from treeclaim.model.request import CandidateRequest

_MORE = 4
"""Moves beyond the fewest for plans that need no room made for those that leave."""

_SECONDS = 1.0
"""For such plans of a certain length."""

_TRIES = 12
"""Orders in which those that are to leave are moved, if not all find room."""

_DOMAINS = 64
"""Domains that are tried for consumers that stay together."""


class RoomMaking:
    """Makes room for consumers of a request, which are placed for the time being."""

    def __init__(self, board: Board, clearing: Clearing, request: CandidateRequest) -> None:
        self._board = board
        self._clearing = clearing
        self._request = request
        self._placed: list[Allocation] = []

    def make(self, more: int, most: int) -> None:
        """Make room for this many more than fit now, with at most this many moves."""
        query = self._board.query(self._request)
        while not self._clearing.is_over():
            with self._board.budget.scope():
                candidate = query.first(self._board.everywhere, lambda _: True)
            if candidate is None:
                break
            self._take(candidate.allocations)
        for _ in range(more):
            allocations = self._for_one(most - len(self._board.moves))
            if allocations is None:
                break
            self._placed += allocations
            self._board.keep()
        self._board.take([(position, name, -n) for position, name, n in self._placed])
        self._placed.clear()

    def _take(self, allocations: Sequence[Allocation]) -> None:
        self._board.take(list(allocations))
        self._placed += allocations

    def _for_one(self, most: int) -> Sequence[Allocation] | None:
        """Make room for one, by as few moves as possible."""
        board, before = self._board, len(self._board.moves)
        options = self._clearing.options(self._request)
        fewest, allocations = self._directly(options, most)
        moves = board.moves[before:]
        if allocations is not None:
            if len(moves) <= fewest:
                return allocations
            board.take([(position, name, -n) for position, name, n in allocations])
            most = len(moves) - 1
        board.undo(before)
        chained: Option | None = None
        try:
            chained = Chains(board, self._clearing).clear(options, most)
        finally:
            # What was found is kept, wherever the time is over.
            if chained is None and allocations is not None:
                board.undo(before)
                board.replay(moves)
                board.keep()
        taken = allocations if chained is None else chained.allocations
        if taken is not None:
            board.take(list(taken))
        return taken

    def _directly(
        self, options: Sequence[Option], most: int
    ) -> tuple[int, Sequence[Allocation] | None]:
        """Make room by moves of consumers that find room themselves; return how few could do it too."""
        with self._clearing.of_those_with_room():
            ranked = self._clearing.ranked(options)
            fewest = max(ranked[0][0], 1) if ranked else most
            for moves in range(fewest, min(most, fewest + _MORE) + 1):
                just = [option for count, option in ranked if count in (moves, moves - 1)]
                step = self._first(just, moves)
                if step is not None:
                    return fewest, step
        return fewest, None

    def _first(self, options: Sequence[Option], moves: int) -> Sequence[Allocation] | None:
        end = time.monotonic() + _SECONDS
        for option in options:
            if self._clearing.is_over() or time.monotonic() >= end:
                return None
            allocations = self._clearing.clear(option, moves)
            if allocations is not None:
                return allocations
        return None


class Emptying:
    """Finds the moves that leave fewest in the trees that are to be empty.

    Attributes:
        best: The best ones found.
    """

    def __init__(self, board: Board, clearing: Clearing, most: int) -> None:
        self._board = board
        self._clearing = clearing
        self._most = most
        self._best: tuple[int, int] | None = None
        self.best: Sequence[Move] = ()

    def find(self) -> None:
        """Try orders, then making room for those that find none, then moving whole groups."""
        movers = map(self._board.picture.mover, self._board.picture.left)
        going = [mover for mover in movers if mover is not None and mover.stays is None]
        self._clearing.pending.update(going)
        going.sort(key=self._clearing.size, reverse=True)
        for order in islice(_orders(going), _TRIES):
            if self._tries(order) or self._clearing.is_over():
                return
        if self._tries_chains(going):
            return
        for rule in self._board.picture.rules:
            if rule.most is None and any(member in going for member in rule.members):
                self._try_domains(rule, going)

    def _try_domains(self, rule: RuleOf, going: Sequence[Mover]) -> None:
        """Move all that stay together into another domain, one domain after the other."""
        for domain in range(min(rule.domains.count, _DOMAINS)):
            away = [
                member
                for member in rule.members
                if domain not in rule.domains.containing(member.trees)
            ]
            if any(member.stays for member in away) or self._clearing.is_over():
                continue
            self._board.targets[rule] = domain
            order = list(dict.fromkeys([*away, *going]))
            is_found = self._tries(order)
            del self._board.targets[rule]
            if is_found:
                return

    def _tries(self, order: Sequence[Mover]) -> bool:
        """Move some in an order; tell whether none are left."""
        board = self._board
        for mover in order:
            place = board.find(mover, board.everywhere) if len(board.moves) < self._most else None
            if place is not None:
                board.move(mover, *place)
        return self._noted()

    def _tries_chains(self, going: Sequence[Mover]) -> bool:
        """Also move those that the best plan leaves, and others to make room for them."""
        board = self._board
        board.replay(self.best)
        try:
            for mover in going:
                if mover not in board.places and not self._clearing.is_over():
                    Chains(board, self._clearing).settle(mover, self._most - len(board.moves))
        finally:
            # What was found is kept, wherever the time is over.
            is_found = self._noted()
        return is_found

    def _noted(self) -> bool:
        """Keep the moves if they are the best, and take them back; tell whether nobody is left."""
        board = self._board
        value = len(board.left()), len(board.moves)
        if board.keeps_rules() and (self._best is None or value < self._best):
            self._best, self.best = value, tuple(board.moves)
        board.undo(0)
        return value[0] == 0 and self._best == value


def _orders(going: Sequence[Mover]) -> Iterator[Sequence[Mover]]:
    yield going
    yield going[::-1]
    shuffled = list(going)
    chance = random.Random(0)  # noqa: S311 - the same each time
    while True:
        chance.shuffle(shuffled)
        yield tuple(shuffled)
