# SPDX-License-Identifier: Apache-2.0
"""The trees that are nearest to matching (contract page 97, section 3).

A person looks first at the trees that the request names, then at those that have what it asks for,
if too little of it. So trees are compared by these counts, one after the other: places named by
the request that they hold, classes that they have, groups that they satisfy, single constraints
that they meet; and last by how much of the amounts is free.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from treeclaim.forest.explain.constraints import Constraint
from treeclaim.forest.explain.matching_trees import MatchingTrees
from treeclaim.forest.table.columns import Mask
from treeclaim.model.extension.reasons import Reason

_PLACES = (Reason.NOT_IN_TREE, Reason.NOT_IN_SUBTREE)
_MOST = 2**62
"""Amounts beyond this one are all the same: nothing has that much."""

_Numbers = npt.NDArray[np.int64]


def nearest(trees: MatchingTrees, count: int) -> list[int]:
    """Return the indices of the trees nearest to matching that do not match, the nearest first."""
    candidates = np.flatnonzero(~trees.matching(trees.constraints))
    if not count or not len(candidates):
        return []
    keys = (_free_shares(trees), _met(trees), _groups_met(trees), _classes(trees), _places(trees))
    ranked = candidates[np.lexsort([-key[candidates] for key in keys])]
    return [int(tree) for tree in ranked[:count]]


def _places(trees: MatchingTrees) -> _Numbers:
    """Count for each tree the places it holds, or is served from by what others share."""
    return _count(
        trees,
        (
            _holding(trees, place)
            | trees.matching([*_stocks(trees, place), place], _own_names(place))
            for place in trees.constraints
            if place.reason in _PLACES
        ),
    )


def _holding(trees: MatchingTrees, place: Constraint) -> Mask:
    """Tell which trees have one of the providers that a place names."""
    order = trees.forest.order
    rows = [trees.forest.row_of(uuid) for uuid in place.detail.get("providers", ())]
    positions = [row for row in rows if row is not None]
    held: Mask = np.zeros(len(order.roots), dtype=np.bool_)
    held[order.tree[positions]] = True
    return held


def _stocks(trees: MatchingTrees, place: Constraint) -> list[Constraint]:
    group = [] if place.group is None else trees.of_group(place.group)
    return [constraint for constraint in group if constraint.reason == Reason.NO_INVENTORY]


def _own_names(constraint: Constraint) -> list[str]:
    return [] if constraint.group is None else [constraint.group]


def _classes(trees: MatchingTrees) -> _Numbers:
    return _count(
        trees,
        (
            trees.matching([constraint], _own_names(constraint))
            for constraint in trees.constraints
            if constraint.reason == Reason.NO_INVENTORY
        ),
    )


def _groups_met(trees: MatchingTrees) -> _Numbers:
    return _count(
        trees,
        (
            trees.matching(trees.of_group(group.suffix), [group.suffix])
            for group in trees.request.groups
        ),
    )


def _met(trees: MatchingTrees) -> _Numbers:
    """Count the constraints that a tree meets, each judged alone."""
    return _count(
        trees,
        (
            trees.matching([*trees.needed_by(constraint), constraint], _own_names(constraint))
            for constraint in trees.constraints
            if trees.is_judged_alone(constraint)
        ),
    )


def _count(trees: MatchingTrees, masks: Iterable[Mask]) -> _Numbers:
    counts = np.zeros(len(trees.forest.order.roots), dtype=np.int64)
    for mask in masks:
        counts += mask
    return counts


def _free_shares(trees: MatchingTrees) -> npt.NDArray[np.float64]:
    """Add up for each tree which part of each amount its freest provider has, from 0 to 1."""
    forest, order = trees.forest, trees.forest.order
    shares = np.zeros(len(order.roots))
    for group in trees.request.groups:
        for name, amount in group.resources.items():
            stocks = forest.class_inventories(name)
            living = stocks.living()
            free = np.clip(stocks.free.values[living] / min(amount, _MOST), 0, 1)
            freest = np.zeros(len(order.roots))
            np.maximum.at(freest, order.tree[stocks.row.values[living]], free)
            shares += freest
    return shares
