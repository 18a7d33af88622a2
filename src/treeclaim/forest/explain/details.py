# SPDX-License-Identifier: Apache-2.0
"""Reads the details of an explanation's reasons from the Forest: consumption and conditions."""

from collections.abc import Iterator, Mapping, Sequence
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


def details_of(
    trees: MatchingTrees, constraint: Constraint, tree: int | None
) -> Sequence[ReasonDetail]:
    """Return the details of a constraint in a tree (None for all): one for each condition key, else exactly one."""
    if constraint.reason == Reason.CONSUMED:
        return [_detail_of_consumption(trees, constraint, tree)]
    if constraint.reason == Reason.CONDITION:
        return _details_of_conditions(trees, constraint, tree)
    return [(constraint.reason, constraint.detail)]


def _detail_of_consumption(
    trees: MatchingTrees, constraint: Constraint, tree: int | None
) -> ReasonDetail:
    """Return the amounts of the consumed inventory with the smallest shortage."""
    forest = trees.forest
    rows = _rows_of(forest, constraint.value, tree)
    group = next(group for group in trees.request.groups if group.suffix == constraint.group)
    alone = {constraint.value: group.resources[constraint.value]}
    nearest = _least_missing(forest, rows, constraint.value, alone)
    if nearest is None:
        # The class fits alone, but not together with the group's other classes.
        nearest = _least_missing(forest, rows, constraint.value, group.resources)
    detail = {"resource_class": constraint.value}
    if nearest is not None:
        _, class_id, requested_units, free_there = nearest
        detail |= {
            "consumed_class": forest.catalogue.class_by_id[class_id].name,
            "requested": cap_count(requested_units),
            "free": cap_count(max(free_there, 0)),
        }
    return Reason.CONSUMED, detail


def _rows_of(forest: Forest, name: str, tree: int | None) -> Rows:
    columns = forest.class_inventories(name)
    if tree is None:
        return columns.row.values[columns.living_indices()]
    root = forest.order.roots[tree]
    first, end = search_ascending(columns.row.values, [root, forest.end.values[root]])
    return columns.row.values[first:end]


_Missing = tuple[int, int, int, int]
"""The missing amount, the id of the consumed class, the requested and free amounts."""


def _least_missing(
    forest: Forest, rows: Rows, consuming: str, amounts: Mapping[str, int]
) -> _Missing | None:
    """Return the smallest shortage of an inventory that a class consumes; None without a shortage.

    `rows` are the providers with the class; each is requested to give `amounts`, by class.
    """
    shortages: list[_Missing] = []
    for use, consuming_rows in forest.uses_at(consuming, rows):
        users = rows[consuming_rows]
        consumed = forest.classes[use.class_id]
        free = consumed.free.values[search_ascending(consumed.row.values, users + use.offset)]
        # Amounts may be beyond 64 bits.
        requested_units = np.zeros(len(users), dtype=np.object_)
        for name, amount in amounts.items():
            if forest.catalogue.resource_classes[name].id == use.class_id and not use.offset:
                requested_units += amount
            for consuming_use, at in forest.uses_at(name, users):
                if consuming_use[:2] == use[:2]:
                    requested_units[at] += consuming_use.amount * amount
        missing = requested_units - free
        short = np.flatnonzero(missing > 0)
        if len(short):
            at = short[np.argmin(missing[short])]
            shortages.append(
                (int(missing[at]), use.class_id, int(requested_units[at]), int(free[at]))
            )
    return min(shortages, default=None)


def _details_of_conditions(
    trees: MatchingTrees, constraint: Constraint, tree: int | None
) -> Sequence[ReasonDetail]:
    (group,) = [each for each in trees.request.groups if each.suffix == constraint.group]
    reasons: dict[str, str] = {}
    for each in (tree, None):
        for key, reason in _barring(trees, constraint, list(group.resources), each):
            reasons.setdefault(key, reason)
            if tree is None:
                break
        if reasons:
            break
    return [(Reason.CONDITION, {"key": key, "reason": reasons[key]}) for key in sorted(reasons)]


def _barring(
    trees: MatchingTrees, constraint: Constraint, classes: Sequence[str], tree: int | None
) -> Iterator[tuple[str, str]]:
    """Yield keys and reasons of the untolerated conditions of the classes' providers and their ancestors."""
    forest = trees.forest
    tolerated = constraint.value
    visited_rows: set[int] = set()
    for row in _rows(trees, classes, tree).tolist():
        at = row
        while at != NO_ROW and at not in visited_rows:
            visited_rows.add(at)
            for condition in forest.conditions(at):
                if tolerated is not None and condition.counts(tolerated):
                    yield condition.key, condition.reason
            at = int(forest.parent.values[at])


def _rows(trees: MatchingTrees, classes: Sequence[str], tree: int | None) -> Rows:
    """Return the rows of providers with an inventory of the classes, or consumed by one, in canonical order."""
    forest, order = trees.forest, trees.forest.order
    has = np.zeros(forest.row_count, dtype=np.bool_)
    for name in classes:
        columns = forest.class_inventories(name)
        having = columns.row.values[columns.living_indices()]
        has[having] = True
        for use, users in forest.uses_at(name, having):
            has[having[users] + use.offset] = True
    if tree is not None:
        first = int(order.roots[tree])
        return first + np.flatnonzero(has[first : order.end[first]])
    return order.in_order(np.flatnonzero(has))
