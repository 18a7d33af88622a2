# SPDX-License-Identifier: Apache-2.0
"""Reads the details of an explanation's reasons from the Forest: consumption and conditions."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from treeclaim.forest.explain.constraints import Constraint, Reason
from treeclaim.forest.explain.matching_trees import MatchingTrees
from treeclaim.forest.table.columns import NO_ROW, Rows, cap_count, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest

ReasonDetail = tuple[Reason, Mapping[str, Any]]
"""A reason with its detail."""


def consuming_classes(forest: Forest, request: CandidateRequest) -> frozenset[str]:
    """Return the request's classes that have an inventory consuming others."""
    names = {name for group in request.groups for name in group.resources}
    if not forest.holdings.patterns.are_any:
        return frozenset()
    classes = {name: forest.class_inventories(name) for name in names}
    return frozenset(
        name
        for name, columns in classes.items()
        if columns.pattern.values[columns.living_indices()].any()
    )


def find_details(
    trees: MatchingTrees, constraint: Constraint, tree: int | None
) -> Sequence[ReasonDetail]:
    """Return the details of a constraint in a tree (None for all): one for each condition key, else exactly one."""
    if constraint.reason == Reason.CONSUMED:
        return [_describe_shortage(trees, constraint, tree)]
    if constraint.reason == Reason.CONDITION:
        return _describe_conditions(trees, constraint, tree)
    return [(constraint.reason, constraint.detail)]


def _describe_shortage(
    trees: MatchingTrees, constraint: Constraint, tree: int | None
) -> ReasonDetail:
    """Return the amounts of the consumed inventory with the smallest shortage."""
    forest = trees.forest
    rows = _rows_of(forest, constraint.value, tree)
    group = next(group for group in trees.request.groups if group.suffix == constraint.group)
    single_amount = {constraint.value: group.resources[constraint.value]}
    shortage = _find_least_shortage(forest, rows, constraint.value, single_amount)
    if shortage is None:
        # The class fits alone, but not together with the group's other classes.
        shortage = _find_least_shortage(forest, rows, constraint.value, group.resources)
    detail = {"resource_class": constraint.value}
    if shortage is not None:
        _, class_id, requested_units, free_units = shortage
        detail |= {
            "consumed_class": forest.catalogue.class_by_id[class_id].name,
            "requested": cap_count(requested_units),
            "free": cap_count(max(free_units, 0)),
        }
    return Reason.CONSUMED, detail


def _rows_of(forest: Forest, name: str, tree: int | None) -> Rows:
    columns = forest.class_inventories(name)
    if tree is None:
        return columns.row.values[columns.living_indices()]
    root = forest.order.roots[tree]
    first, end = search_ascending(columns.row.values, [root, forest.end.values[root]])
    return columns.row.values[first:end]


_Shortage = tuple[int, int, int, int]
"""The missing amount, the id of the consumed class, the requested and free amounts."""


def _find_least_shortage(
    forest: Forest, rows: Rows, consuming: str, amounts: Mapping[str, int]
) -> _Shortage | None:
    """Return the smallest shortage of an inventory that a class consumes; None without a shortage.

    `rows` are the providers with the class; each is requested to give `amounts`, by class.
    """
    shortages: list[_Shortage] = []
    for use, consuming_rows in forest.uses_at(consuming, rows):
        users = rows[consuming_rows]
        consumed = forest.classes[use.class_id]
        free_units = consumed.free.values[
            search_ascending(consumed.row.values, users + use.offset)
        ]
        # Amounts may be beyond 64 bits.
        requested_units = np.zeros(len(users), dtype=np.object_)
        for name, amount in amounts.items():
            if forest.catalogue.resource_classes[name].id == use.class_id and not use.offset:
                requested_units += amount
            for consuming_use, at in forest.uses_at(name, users):
                if consuming_use[:2] == use[:2]:
                    requested_units[at] += consuming_use.amount * amount
        missing = requested_units - free_units
        short = np.flatnonzero(missing > 0)
        if len(short):
            at = short[np.argmin(missing[short])]
            shortages.append(
                (int(missing[at]), use.class_id, int(requested_units[at]), int(free_units[at]))
            )
    return min(shortages, default=None)


def _describe_conditions(
    trees: MatchingTrees, constraint: Constraint, tree: int | None
) -> Sequence[ReasonDetail]:
    """Return the first condition for all trees, or each condition in a tree, else in all trees."""
    (group,) = [group for group in trees.request.groups if group.suffix == constraint.group]
    classes = list(group.resources)
    everywhere = _find_untolerated(trees, constraint, classes, None)
    if tree is None:
        conditions = list(islice(everywhere, 1))
    else:
        conditions = list(_find_untolerated(trees, constraint, classes, tree)) or list(everywhere)
    # The first reason of each key.
    reasons = dict(reversed(conditions))
    return [(Reason.CONDITION, {"key": key, "reason": reasons[key]}) for key in sorted(reasons)]


def _find_untolerated(
    trees: MatchingTrees, constraint: Constraint, classes: Sequence[str], tree: int | None
) -> Iterator[tuple[str, str]]:
    """Yield keys and reasons of the untolerated conditions of the classes' providers and their ancestors."""
    forest = trees.forest
    tolerated = constraint.value
    visited_rows: set[int] = set()
    for row in _find_supplying_rows(trees, classes, tree).tolist():
        ancestor = row
        while ancestor != NO_ROW and ancestor not in visited_rows:
            visited_rows.add(ancestor)
            for condition in forest.conditions(ancestor):
                if tolerated is not None and condition.affects(tolerated):
                    yield condition.key, condition.reason
            ancestor = int(forest.parent.values[ancestor])


def _find_supplying_rows(trees: MatchingTrees, classes: Sequence[str], tree: int | None) -> Rows:
    """Return the rows of providers with an inventory of the classes, or consumed by one, in canonical order."""
    forest, order = trees.forest, trees.forest.order
    mask = np.zeros(forest.row_count, dtype=np.bool_)
    for name in classes:
        columns = forest.class_inventories(name)
        rows = columns.row.values[columns.living_indices()]
        mask[rows] = True
        for use, users in forest.uses_at(name, rows):
            mask[rows[users] + use.offset] = True
    if tree is not None:
        first = int(order.roots[tree])
        return first + np.flatnonzero(mask[first : order.end[first]])
    return order.in_order(np.flatnonzero(mask))
