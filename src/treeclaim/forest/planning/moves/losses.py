# SPDX-License-Identifier: Apache-2.0
"""Where a consumer costs a mix least room."""

from collections.abc import Iterable, Iterator

import numpy as np

from treeclaim.forest.placing.counting.capacity import counted_now
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.moves.board import Board, Move
from treeclaim.forest.planning.moves.picture import Mover
from treeclaim.forest.table.columns import Integers, Mask
from treeclaim.model.extension.moves import Keep
from treeclaim.model.request import CandidateRequest

_ANEW = 8
"""Moves after which losses are counted anew; until then, trees that changed are not preferred."""

_UNKNOWN = np.iinfo(np.int64).max


class Losses:
    """How much of a mix fits less where a consumer of a request is placed, by tree."""

    def __init__(self, board: Board, goal: Keep) -> None:
        """Begin where everybody is."""
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
        if self._moves >= _ANEW:
            self._moves = 0
            self._known.clear()
        for losses in self._known.values():
            losses[changed] = _UNKNOWN

    def masks(self, mover: Mover) -> Iterator[Mask]:
        """Yield the trees that somebody should be moved to: where least is lost, and then any."""
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
                        scratch.take(candidate.gifts)
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
