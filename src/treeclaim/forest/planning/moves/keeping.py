# SPDX-License-Identifier: Apache-2.0
"""Trees emptied, and room kept for a mix, in a large world: step by step, what gains most per move."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from treeclaim.forest.placing.capacity import counted_now
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.planning.moves.board import Board, Move
from treeclaim.forest.planning.moves.clearing import Clearing, Option
from treeclaim.forest.planning.moves.picture import Mover
from treeclaim.forest.table.columns import Integers, Mask
from treeclaim.model.extension.moves import Keep
from treeclaim.model.request import CandidateRequest

_FIRST = 150
"""Places of each request of the mix that are looked at."""

_MOST_TOGETHER = 12
"""Moves that make room for one together."""

_ANEW = 4
"""Steps after which the gain of single moves is counted again."""

_COUNTED_ANEW = 8
"""Moves after which losses are counted again; until then, trees that changed are not preferred."""

_UNKNOWN = np.iinfo(np.int64).max


@dataclass(order=True, slots=True)
class _Idea:
    """A place to be cleared, or a consumer to be moved, and its last gain for each move."""

    cost: float
    number: int
    round: int = field(compare=False)
    option: Option | None = field(compare=False, default=None)
    mover: Mover | None = field(compare=False, default=None)


class Keeping:
    """Makes moves while they gain something."""

    def __init__(self, board: Board, clearing: Clearing, goal: Keep, most: int) -> None:
        self._board = board
        self._clearing = clearing
        self._goal = goal
        self._most = most
        self._losses = Losses(board, goal)
        self._number = 0
        clearing.preferred = self._losses.masks

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
        """Empty trees, those with fewest consumers first, into trees that stay in use."""
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
            self._board.keep()

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
            place = None
            if mover not in self._board.places:
                for mask in masks:
                    place = place or self._board.find(mover, mask)
            if place is None:
                self._board.undo(before)
                return False
            self._board.move(mover, *place)
        if self._board.empty_trees <= empty:
            self._board.undo(before)
            return False
        return True

    # -- room for the mix ------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Make the moves that gain most for each, again and again."""
        worth, empty = self.worth(), self._board.empty_trees
        ideas = [*self._of_many(), *self._of_one()]
        heapq.heapify(ideas)
        made = counted = 0
        while ideas and len(self._board.moves) < self._most and not self._clearing.is_over():
            idea = heapq.heappop(ideas)
            before = len(self._board.moves)
            gain = self._tried(idea, worth, empty)
            moves = len(self._board.moves) - before
            if gain <= 0 or not moves:
                self._board.undo(before)
                continue
            idea.cost = -gain / moves
            if idea.round == made or not ideas or idea.cost <= ideas[0].cost:
                worth += gain
                made += 1
                self._board.keep()
                self._losses.note(self._board.moves[before:])
                if made - counted >= _ANEW:
                    counted = made
                    ideas = [
                        *(other for other in ideas if other.option is not None),
                        *self._of_one(),
                    ]
                    heapq.heapify(ideas)
            else:
                self._board.undo(before)
            idea.round = made
            heapq.heappush(ideas, idea)

    def _of_one(self) -> Iterator[_Idea]:
        """Yield moves of single consumers with what is gained where they are."""
        alike: dict[CandidateRequest, dict[tuple[int, ...], Mover]] = {}
        for mover in self._board.picture.movable:
            if mover not in self._board.places:
                alike.setdefault(mover.alternatives[0], {}).setdefault(mover.trees, mover)
        base = self._losses.worth(Scratch(self._board.forest))
        if base is None:
            return
        for movers in alike.values():
            scratch = Scratch(self._board.forest)
            for mover in movers.values():
                scratch.give_back([(at, name, n) for (at, name), n in mover.allocations.items()])
            after = self._losses.worth(scratch)
            if after is None:
                return
            for mover in movers.values():
                gain = int((after - base)[list(mover.trees)].sum())
                if gain > 0:
                    self._number += 1
                    yield _Idea(-gain, self._number, -1, mover=mover)

    def _of_many(self) -> Iterator[_Idea]:
        """Yield places that more than one has to leave, as if they gained all that is hoped for."""
        hoped = sum(weight for _, weight in self._goal.requests)
        for request, _ in self._goal.requests:
            placed = self._placed(request)
            options = [
                Option.of(option.candidate, placed.get(option.candidate.trees, ()))
                for option in self._clearing.options(request)
            ]
            ranked = self._clearing.ranked(options)
            some = [pair for pair in ranked if 1 < pair[0] <= _MOST_TOGETHER][:_FIRST]
            for fewest, option in some:
                self._number += 1
                yield _Idea(-hoped / fewest, self._number, -1, option=option)

    def _placed(self, request: CandidateRequest) -> Mapping[tuple[int, ...], Sequence[Allocation]]:
        """Return what as many consumers of a request as fit now would take, by their trees."""
        board, by_trees = self._board, dict[tuple[int, ...], list[Allocation]]()
        query = board.query(request)
        while not self._clearing.is_over():
            with board.budget.scope():
                candidate = query.first(board.everywhere, lambda _: True)
            if candidate is None:
                break
            board.take(list(candidate.allocations))
            by_trees.setdefault(candidate.trees, []).extend(candidate.allocations)
        for allocations in by_trees.values():
            board.take([(position, name, -n) for position, name, n in allocations])
        return by_trees

    def _tried(self, idea: _Idea, worth: int, empty: int) -> int:
        """Try one; return what is gained, none where a tree is not empty any more."""
        left = self._most - len(self._board.moves)
        if idea.mover is not None:
            if idea.mover in self._board.places or not self._clearing.settle(idea.mover):
                return 0
        elif idea.option is not None:
            fewest = self._clearing.fewest(self._clearing.missing(idea.option.needs))
            if not fewest or fewest > min(left, _MOST_TOGETHER):
                return 0
            allocations = self._clearing.clear(idea.option, fewest)
            if allocations is None:
                return 0
            self._board.take([(position, name, -n) for position, name, n in allocations])
        if self._goal.empty_trees and self._board.empty_trees < empty:
            return 0
        return self.worth() - worth


class Losses:
    """How much of a mix fits less where a consumer of a request is placed, by tree."""

    def __init__(self, board: Board, goal: Keep) -> None:
        self._board = board
        self._goal = goal
        self._known: dict[CandidateRequest, Integers] = {}
        self._moves = 0

    def note(self, moves: Iterable[Move]) -> None:
        """Take into account that some moves were made for good."""
        changed = []
        for move in moves:
            self._moves += 1
            changed += [*move.mover.occupied, *move.candidate.trees]
        if self._moves >= _COUNTED_ANEW:
            self._moves = 0
            self._known.clear()
        for losses in self._known.values():
            losses[changed] = _UNKNOWN

    def masks(self, mover: Mover) -> Iterator[Mask]:
        """Yield the trees that a consumer should be moved to: where least is lost, and then any."""
        losses = self._of(mover.alternatives[0])
        some = np.unique(losses[losses < _UNKNOWN])
        for most in some[: 1 + len(some) // 2].tolist():
            yield losses <= most
        yield self._board.everywhere

    def _of(self, request: CandidateRequest) -> Integers:
        if request not in self._known:
            board = self._board
            losses: Integers = np.full(len(board.everywhere), _UNKNOWN, dtype=np.int64)
            before = self.worth(Scratch(board.forest))
            if before is not None:
                scratch = Scratch(board.forest)
                trees = []
                for candidate in board.query(request).each():
                    board.budget.check()
                    if len(candidate.trees) == 1 and losses[candidate.trees[0]] == _UNKNOWN:
                        losses[candidate.trees[0]] = 0
                        trees.append(candidate.trees[0])
                        scratch.take(candidate.allocations)
                after = self.worth(scratch)
                if after is not None:
                    losses[trees] = (before - after)[trees]
            self._known[request] = losses
        return self._known[request]

    def worth(self, scratch: Scratch) -> Integers | None:
        """Return what fits of the mix, by tree and weight; None where trees concern each other."""
        worth: Integers = np.zeros(len(self._board.everywhere), dtype=np.int64)
        for request, weight in self._goal.requests:
            by_tree = counted_now(scratch.forest, request, self._board.budget).by_tree
            if by_tree is None:
                return None
            worth += weight * by_tree[0]
        return worth
