# SPDX-License-Identifier: Apache-2.0
"""Bounds that no plan can exceed, counted without a search: a world without any consumer that may move."""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from math import ceil

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import Counted, counted_now
from treeclaim.forest.placing.independent import query_of
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.planning.consumers import demand
from treeclaim.forest.planning.moves.board import Move
from treeclaim.forest.planning.moves.picture import Cell, Mover, Picture, cells_of
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.moves import Fit, Keep

MOST_OPTIONS = 64
"""Candidates of a consumer of a small world. What the page promises is for 16."""

_MOST_LISTED = 4096


def without_movable(picture: Picture) -> Forest:
    """Return the Forest as if all who may move were gone."""
    scratch = scratch_without(picture)
    for mover in picture.movable:
        if mover.drawn:
            scratch.take([(position, name, n) for (_, (position, name)), n in mover.drawn.items()])
    return scratch.forest


class FitBound:
    """The least number of moves after which this many consumers of a request fit.

    For each tree: so many consumers must leave it at least that it has what more would take in all,
    of each class. A plan can do no better than the cheapest steps of all trees together.
    """

    def __init__(self, picture: Picture, goal: Fit, budget: Budget) -> None:
        """Count now, and as if all that may move were gone."""
        self._picture = picture
        self._goal = goal
        self._budget = budget
        self.now = counted_now(picture.forest, goal.request, budget)
        self.at_most = counted_now(without_movable(picture), goal.request, budget)

    @property
    def is_in_vain(self) -> bool:
        """Tell whether no number of moves is enough."""
        return self.at_most.at_most < self._goal.amount

    def at_least(self) -> int:
        """Return the bound."""
        if self.now.fits >= self._goal.amount:
            return 0
        missing = self._goal.amount - self.now.at_most
        if missing <= 0 or self.now.by_tree is None or self.at_most.by_tree is None:
            return 1
        if self._goal.request.from_holds:
            return 1
        # In another order as many may fit as any could place, without a move out of the tree.
        fits, most = self.now.by_tree[1], self.at_most.by_tree[1]
        steps: list[tuple[float, int]] = []
        leaving = self._leaving()
        trees = np.flatnonzero(most > fits)
        free = {name: self._free(name) for name in demand(self._goal.request)}
        for tree in trees.tolist():
            self._budget.check()
            wanted = min(int(most[tree]) - int(fits[tree]), missing)
            costs = [
                self._cost(tree, int(fits[tree]) + more, leaving.get(tree, {}), free)
                for more in range(1, wanted + 1)
            ]
            steps += _slopes(costs)
        steps.sort()
        total, left = 0.0, missing
        for slope, count in steps:
            taken = min(count, left)
            total += slope * taken
            left -= taken
        span = max((len(mover.occupied) for mover in self._picture.movable), default=1)
        return max(1, ceil(total / span - 1e-9))

    def _leaving(self) -> dict[int, dict[str, list[int]]]:
        """Return by tree and class what each who may move has there, greatest first."""
        tree = self._picture.forest.order.tree
        amounts_at: dict[int, dict[str, list[int]]] = {}
        for mover in self._picture.movable:
            mine: dict[tuple[int, str], int] = {}
            for (position, name), n in mover.uses.items():
                place = int(tree[position]), name
                mine[place] = mine.get(place, 0) + n
            for (at, name), n in mine.items():
                amounts_at.setdefault(at, {}).setdefault(name, []).append(n)
        for by_class in amounts_at.values():
            for amounts in by_class.values():
                amounts.sort(reverse=True)
        return amounts_at

    def _free(self, name: str) -> np.ndarray:
        """Return what is free of a class by tree."""
        forest = self._picture.forest
        columns = forest.class_inventories(name)
        living = columns.living()
        trees = forest.order.tree[forest.order.position[columns.row.values[living]]]
        free = np.maximum(columns.free.values[living], 0).astype(np.float64)
        return np.bincount(trees, free, minlength=len(forest.order.roots))

    def _cost(
        self,
        tree: int,
        fits: int,
        leaving: Mapping[str, Sequence[int]],
        free: Mapping[str, np.ndarray],
    ) -> int:
        """Return how many must leave a tree at least so that so many fit."""
        most = 1
        for name, amount in demand(self._goal.request).items():
            missing = fits * amount - float(free[name][tree])
            count = 0
            for n in leaving.get(name, ()):
                if missing <= 0:
                    break
                missing -= n
                count += 1
            most = max(most, count)
        return most


def _slopes(costs: Sequence[int]) -> list[tuple[float, int]]:
    """Return the steps of the greatest convex function that is nowhere above some costs."""
    points: list[tuple[int, int]] = [(0, 0)]
    for at, cost in enumerate(costs, 1):
        while len(points) > 1 and (points[-1][1] - points[-2][1]) * (at - points[-1][0]) >= (
            cost - points[-1][1]
        ) * (points[-1][0] - points[-2][0]):
            points.pop()
        points.append((at, cost))
    return [
        ((second[1] - first[1]) / (second[0] - first[0]), second[0] - first[0])
        for first, second in pairwise(points)
    ]


def keep_bounds(picture: Picture, goal: Keep, most: int, budget: Budget) -> dict[str, int]:
    """Return how many empty trees there can be at most, and how much of the mix fits at most."""
    by_tree: dict[int, list[Mover]] = {}
    for mover in picture.movers.values():
        for tree in mover.occupied:
            by_tree.setdefault(tree, []).append(mover)
    costs = sorted(
        # Who is in several trees may leave them by one move.
        sum(len(mover.occupied) == 1 for mover in movers)
        for movers in by_tree.values()
        if all(mover.stays is None for mover in movers)
    )
    empty, left = len(picture.forest.order.roots) - len(by_tree), most
    for cost in costs:
        left -= cost
        if left < 0:
            break
        empty += 1
    empty = min(empty, len(picture.forest.order.roots))
    forest = without_movable(picture)
    fits = 0
    for request, weight in goal.requests:
        now = counted_now(picture.forest, request, budget)
        gone = counted_now(forest, request, budget)
        fits += weight * _most_by(now, gone, picture, most)
    return {"empty_trees": empty, "fits": fits}


def _most_by(now: Counted, gone: Counted, picture: Picture, moves: int) -> int:
    """Return how many fit at most after this many moves: each may empty one tree, or what it spans."""
    if now.by_tree is None or gone.by_tree is None:
        return gone.at_most
    fits, most = now.by_tree[1], gone.by_tree[1]
    span = max((len(mover.occupied) for mover in picture.movable), default=1)
    gains: list[int] = heapq.nlargest(moves * span, np.maximum(most - fits, 0).tolist())
    return int(fits.sum()) + sum(gains)


def options_of(picture: Picture, budget: Budget) -> dict[Mover, Sequence[Move]] | None:
    """Return all moves of each mover, as if all others were gone.

    Returns:
        None where there are too many, or where they depend on who else has moved: where an amount
        is split, by how much is free.
    """
    moves_of: dict[Mover, Sequence[Move]] = {}
    freed = scratch_without(picture)
    for mover in picture.movable:
        moves: dict[frozenset[tuple[tuple[int, str], int]], Move] = {}
        for alternative, request in enumerate(mover.alternatives):
            if request.can_split:
                return None
            with budget.scope():
                query = query_of(freed, request, budget)
                candidates = list(islice(query.each(), _MOST_LISTED))
            if len(candidates) == _MOST_LISTED:
                return None
            for candidate in candidates:
                budget.check()
                if picture.may_take(mover, candidate):
                    cells = cells_of(candidate.allocations)
                    change = picture.change(mover, candidate.allocations)
                    if cells != mover.allocations:
                        key = frozenset(cells.items())
                        moves.setdefault(key, Move(mover, alternative, candidate, change))
        if len(moves) > MOST_OPTIONS:
            return None
        moves_of[mover] = list(moves.values())
    return moves_of


def scratch_without(picture: Picture) -> Scratch:
    """Return what would be used if all that may move were gone, with what they have drawn."""
    scratch = Scratch(picture.forest)
    units: Counter[Cell] = Counter()
    for mover in picture.movable:
        units.update(mover.allocations)
    scratch.give_back([(position, name, n) for (position, name), n in units.items()])
    return scratch
