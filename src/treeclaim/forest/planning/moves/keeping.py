# SPDX-License-Identifier: Apache-2.0
"""Trees emptied, and room kept for a mix, in a large world: step by step what gains most for a move."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from treeclaim.forest.placing.counting.capacity import counted_now
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.clearing import Clearing, Option
from treeclaim.forest.planning.moves.picture import Mover
from treeclaim.model.extension.moves import Keep
from treeclaim.model.request import CandidateRequest

_FIRST = 150
"""Places of each request of the mix that are looked at."""

_MOST_TOGETHER = 12
"""Moves that make room for one together."""


@dataclass(order=True, slots=True)
class _Idea:
    """A place to be cleared, with what it gained for each move when it was tried last."""

    cost: float
    number: int
    round: int = field(compare=False)
    option: Option = field(compare=False)
    fewest: int = field(compare=False)


class Keeping:
    """Makes moves while they gain something."""

    def __init__(self, board: Board, clearing: Clearing, goal: Keep, most: int) -> None:
        """Begin where everybody is."""
        self._board = board
        self._clearing = clearing
        self._goal = goal
        self._most = most

    def worth(self) -> int:
        """Return how much of the mix fits now, by weight."""
        return sum(
            weight * counted_now(self._board.forest, request, self._board.budget).fits
            for request, weight in self._goal.requests
        )

    def make(self) -> None:
        """Make the moves."""
        if self._goal.empty_trees:
            self._empty_trees()
        self._make_room()

    # -- empty trees -----------------------------------------------------------------------------

    def _empty_trees(self) -> None:
        """Empty trees, those with fewest consumers first, into such as stay in use."""
        by_tree: dict[int, list[Mover]] = {}
        fixed: set[int] = set()
        for mover in self._board.picture.movers.values():
            if mover.stays is None and len(mover.occupied) == 1:
                by_tree.setdefault(next(iter(mover.occupied)), []).append(mover)
            else:
                fixed.update(mover.occupied)
        order = sorted(
            by_tree.keys() - fixed,
            key=lambda tree: (len(by_tree[tree]), sum(map(self._clearing.size, by_tree[tree]))),
        )
        used = self._board.everywhere.copy()
        used[[tree for tree in range(len(used)) if not self._board.occupants(tree)]] = False
        later = used.copy()
        later[order[: self._few(by_tree, order)]] = False
        for tree in order:
            movers = by_tree[tree]
            if len(self._board.moves) + len(movers) > self._most or self._clearing.is_over():
                break
            used[tree] = later[tree] = False
            if len(movers) != self._board.occupants(tree) or not self._emptied(
                movers, (later, used)
            ):
                used[tree] = True

    def _few(self, by_tree: dict[int, list[Mover]], order: Sequence[int]) -> int:
        """Return how many trees could be emptied by so many moves."""
        left = self._most
        for number, tree in enumerate(order):
            left -= len(by_tree[tree])
            if left < 0:
                return number
        return len(order)

    def _emptied(self, movers: Sequence[Mover], masks: Sequence[np.ndarray]) -> bool:
        before, empty = len(self._board.moves), self._board.empty_trees
        for mover in sorted(movers, key=self._clearing.size, reverse=True):
            found = None
            if mover not in self._board.places:
                for mask in masks:
                    found = found or self._board.find(mover, mask)
            if found is None:
                self._board.undo(before)
                return False
            self._board.move(mover, *found)
        if self._board.empty_trees <= empty:
            self._board.undo(before)
            return False
        return True

    # -- room for the mix ------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Clear the place that gains most for a move, again and again."""
        worth, empty = self.worth(), self._board.empty_trees
        ideas = self._ideas()
        heapq.heapify(ideas)
        made = 0
        while ideas and len(self._board.moves) < self._most and not self._clearing.is_over():
            idea = heapq.heappop(ideas)
            before = len(self._board.moves)
            gain = self._tried(idea, worth, empty)
            moves = len(self._board.moves) - before
            if gain <= 0 or not moves:
                self._board.undo(before)
                continue
            cost = -gain / moves
            if idea.round == made or not ideas or cost <= ideas[0].cost:
                worth += gain
                made += 1
                idea.round, idea.cost = made, cost
            else:
                self._board.undo(before)
                idea.round, idea.cost = made, cost
            heapq.heappush(ideas, idea)

    def _ideas(self) -> list[_Idea]:
        """Return places that nobody has tried yet, as if they gained what is hoped for."""
        ideas: list[_Idea] = []
        for request, weight in self._goal.requests:
            ranked = self._clearing.ranked(self._clearing.options(request))
            some = [pair for pair in ranked if 0 < pair[0] <= _MOST_TOGETHER][:_FIRST]
            for fewest, option in some:
                number = len(ideas)
                ideas.append(_Idea(-weight / fewest, number, -1, option, fewest))
        return ideas

    def _tried(self, idea: _Idea, worth: int, empty: int) -> int:
        """Clear a place; return what is gained, none where a tree is not empty any more."""
        fewest = self._clearing.fewest(self._clearing.missing(idea.option.needs))
        left = self._most - len(self._board.moves)
        if not fewest or fewest > min(left, _MOST_TOGETHER):
            return 0
        gifts = self._clearing.clear(idea.option, fewest)
        if gifts is None:
            return 0
        self._board.take([(position, name, -n) for position, name, n in gifts])
        if self._goal.empty_trees and self._board.empty_trees < empty:
            return 0
        return self.worth() - worth


def requests_of(goal: Keep) -> list[CandidateRequest]:
    """Return the requests of the mix of a goal."""
    return [request for request, _ in goal.requests]
