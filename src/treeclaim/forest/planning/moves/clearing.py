# SPDX-License-Identifier: Apache-2.0
"""Room made by moving others away: where it costs fewest moves first.

Room is taken before it exists, as if a consumer were placed already: what is free falls below zero, and
those that have to leave find no room there. Once nothing is below zero any more, there is room.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb

import numpy as np

from treeclaim.forest.order.totals import totals_of
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.independent import Independent, query_of
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import Allocation, Scratch
from treeclaim.forest.planning.moves.board import Board
from treeclaim.forest.planning.moves.bounds import scratch_without
from treeclaim.forest.planning.moves.picture import Cell, Mover, cells_of
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import distinct_blocks
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask
from treeclaim.model.request import CandidateRequest

_MOST_LISTED = 20_000
"""Candidates of a request that are looked at; where there are more, the first of each tree."""

_FIRST_OF_A_TREE = 32

_MOST_COMBINATIONS = 2_000
_COVERS = 6
"""Sets of consumers that are tried to make room at one place."""


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """A place for a consumer if there were room.

    Attributes:
        candidate: The place.
        allocations: What is to be free there: what it takes, and perhaps more.
        needs: The same by cell.
    """

    candidate: Candidate
    allocations: Sequence[Allocation]
    needs: Mapping[Cell, int]

    @classmethod
    def of(cls, candidate: Candidate, more: Sequence[Allocation] = ()) -> "Option":
        """Return a place where there is to be room for more besides."""
        allocations = (*candidate.allocations, *more)
        return cls(candidate, allocations, cells_of(allocations))


class Clearing:
    """Makes room on a board.

    Attributes:
        board: Where everybody is.
        end: When the time for that is over, of the monotonic clock.
        pending: Who is not moved to make room for others, as it has to move itself or stays.
        preferred: The trees that a consumer may move to, in the order in which they are tried.
    """

    def __init__(self, board: Board, end: float) -> None:
        """Find out which may move."""
        self.board = board
        self.end = end
        self.pending: set[Mover] = set()
        self.preferred: Callable[[Mover], Iterable[Mask]] = lambda _: (board.everywhere,)
        self._finds_room: dict[Sequence[CandidateRequest], bool] | None = None
        self._options: dict[CandidateRequest, Sequence[Option]] = {}
        self._capacity: dict[str, float] = {}

    @cached_property
    def _by_cell(self) -> Mapping[Cell, Sequence[Mover]]:
        """Return who may move of those who hold something somewhere."""
        movers: dict[Cell, list[Mover]] = {}
        for mover in self.board.picture.movable:
            for cell in mover.uses:
                movers.setdefault(cell, []).append(mover)
        return movers

    @cached_property
    def _freed(self) -> Scratch:
        """Return what is used if all who may move were gone."""
        return scratch_without(self.board.picture)

    def is_over(self) -> bool:
        """Tell whether the time is over."""
        return time.monotonic() >= self.end

    def size(self, mover: Mover) -> float:
        """Return the greatest share that a mover has of all there is of a class."""
        shares = [n / self.all_of(name) for (_, name), n in mover.allocations.items()]
        return max(shares, default=0.0)

    def all_of(self, name: str) -> float:
        """Return how much there is of a class in the whole cloud, at least one unit."""
        if name not in self._capacity:
            totals = totals_of(self.board.picture.forest, name)
            self._capacity[name] = max(float(totals.tree_capacity.sum()), 1.0)
        return self._capacity[name]

    # -- places ----------------------------------------------------------------------------------

    def options(self, request: CandidateRequest) -> Sequence[Option]:
        """Return places for a request as if all who may move were gone."""
        if request not in self._options:
            query = query_of(self._freed, request, self.board.budget)
            self._options[request] = self._listed(query)
        return self._options[request]

    def _listed(self, query: Query) -> Sequence[Option]:
        options = []
        for candidate in _candidates(query):
            self.board.budget.check()
            if not any(self.board.picture.cleared[at] for at, _, _ in candidate.allocations):
                options.append(Option.of(candidate))
        return options

    def ranked(self, options: Iterable[Option]) -> list[tuple[int, Option]]:
        """Return options with how many must go at least, fewest first; without those in vain."""
        pairs = []
        for option in options:
            self.board.budget.check()
            fewest = self.fewest(self.missing(option.needs))
            if fewest is not None:
                pairs.append((fewest, option))
        pairs.sort(key=lambda pair: pair[0])
        return pairs

    def missing(self, needs: Mapping[Cell, int]) -> dict[Cell, int]:
        """Return what is not free of what is needed."""
        used = self.board.picture.with_consumed(needs)
        missing = {cell: n - self.board.free_of(cell) for cell, n in used.items()}
        return {cell: n for cell, n in missing.items() if n > 0}

    def fewest(self, missing: Mapping[Cell, int]) -> int | None:
        """Return how many must go at least so that nothing is missing; None if all are not enough."""
        fewest = 0
        for cell, units in missing.items():
            left, count = units, 0
            for n in sorted((mover.uses[cell] for mover in self.going(cell)), reverse=True):
                left -= n
                count += 1
                if left <= 0:
                    break
            if left > 0:
                return None
            fewest = max(fewest, count)
        return fewest

    def going(self, cell: Cell) -> Iterator[Mover]:
        """Yield those that may be moved away from where there is too little of a class."""
        for mover in self._by_cell.get(cell, ()):
            is_free = mover not in self.board.places and mover not in self.pending
            if is_free and self._may_find_room(mover):
                yield mover

    @contextmanager
    def of_those_with_room(self) -> Iterator[None]:
        """Move only such as find room at the beginning, as long as the block runs."""
        self._finds_room = {}
        try:
            yield
        finally:
            self._finds_room = None

    def _may_find_room(self, mover: Mover) -> bool:
        known = self._finds_room
        if known is None:
            return True
        if mover.alternatives not in known:
            known[mover.alternatives] = (
                self.board.find(mover, self.board.everywhere, by_rules=False) is not None
            )
        return known[mover.alternatives]

    # -- who goes --------------------------------------------------------------------------------

    def covers(self, missing: Mapping[Cell, int], most: int) -> Iterator[Sequence[Mover]]:
        """Yield sets of consumers that leave enough if they go, small ones first."""
        if not missing:
            yield ()
            return
        fewest = self.fewest(missing)
        if fewest is None or fewest > most:
            return
        going = list(dict.fromkeys(mover for cell in missing for mover in self.going(cell)))
        going.sort(key=self.size)
        yielded = 0
        for count in range(max(fewest, 1), min(most, fewest + 1, len(going)) + 1):
            if comb(len(going), count) > _MOST_COMBINATIONS:
                break
            for some in combinations(going, count):
                if _covers(some, missing):
                    yield some
                    yielded += 1
                    if yielded == _COVERS:
                        return
        if not yielded:
            least = self._greedy(going, missing)
            if len(least) <= most:
                yield least

    def _greedy(self, going: Sequence[Mover], missing: Mapping[Cell, int]) -> Sequence[Mover]:
        left = dict(missing)
        taken: list[Mover] = []
        rest = list(going)
        while left and rest:
            best = max(
                rest,
                key=lambda mover: sum(min(mover.uses.get(c, 0), n) / n for c, n in left.items()),
            )
            rest.remove(best)
            taken.append(best)
            left = {c: n - best.uses.get(c, 0) for c, n in left.items()}
            left = {c: n for c, n in left.items() if n > 0}
        for mover in sorted(taken, key=self.size, reverse=True):
            others = [other for other in taken if other is not mover]
            if _covers(others, missing):
                taken = others
        return taken

    # -- making room -----------------------------------------------------------------------------

    def settle(self, mover: Mover) -> bool:
        """Move a consumer to where there is room, if there is any."""
        for mask in self.preferred(mover):
            place = self.board.find(mover, mask)
            if place is not None:
                self.board.move(mover, *place)
                return True
        return False

    def clear(self, option: Option, most: int) -> Sequence[Allocation] | None:
        """Make room at a place with at most this many moves of consumers that find room themselves.

        Returns:
            What is taken there by then, which is as if somebody had been placed; None if there is no
            room, and nobody was moved.
        """
        board = self.board
        before = len(board.moves)
        missing = self.missing(option.needs)
        allocations = list(option.allocations)
        board.take(allocations)
        for some in self.covers(missing, most):
            if self._go(some) and not self.missing(dict.fromkeys(option.needs, 0)):
                return allocations
            board.undo(before)
            if self.is_over():
                break
        board.take([(position, name, -n) for position, name, n in allocations])
        return None

    def _go(self, some: Sequence[Mover]) -> bool:
        """Move some away, the largest first."""
        return all(map(self.settle, sorted(some, key=self.size)[::-1]))


def _covers(some: Iterable[Mover], missing: Mapping[Cell, int]) -> bool:
    going = list(some)
    return all(
        sum(mover.uses.get(cell, 0) for mover in going) >= units for cell, units in missing.items()
    )


def _candidates(query: Query) -> Iterator[Candidate]:
    """Yield candidates of a request, if there are very many the first of each tree."""
    if not isinstance(query, Independent):
        yield from islice(query.each(), _MOST_LISTED)
        return
    problem = query.searched()
    anchors = all_anchors(problem)
    many = _most(problem) > _MOST_LISTED
    for some in [np.array([anchor]) for anchor in anchors.tolist()] if many else [anchors]:
        rows = (
            chosen for block in distinct_blocks(problem, some) for chosen in block.chosen.tolist()
        )
        for chosen in islice(rows, _FIRST_OF_A_TREE if many else None):
            yield query.made(problem, chosen)


def _most(problem: Problem) -> float:
    """Return how many candidates there are at most."""
    counts = [np.diff(relation.pairs.starts).astype(np.float64) for relation in problem.relations]
    return float(np.multiply.reduce(counts).sum())
