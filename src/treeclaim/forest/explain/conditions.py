# SPDX-License-Identifier: Apache-2.0
"""Which conditions of providers are in the way (contract page 102, section 3)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from treeclaim.forest.explain.constraints import Constraint
from treeclaim.forest.explain.matching_trees import MatchingTrees
from treeclaim.forest.table.columns import NO_ROW, Rows
from treeclaim.model.reasons import Reason

Told = tuple[Reason, Mapping[str, Any]]
"""A reason with its detail."""


def told_of(trees: MatchingTrees, constraint: Constraint, tree: int | None) -> Sequence[Told]:
    """Return what is told of a constraint, at least one thing: of conditions, one for each key.

    Args:
        trees: The search that is explained.
        constraint: One of its constraints.
        tree: Number of the tree of which it is told; None for all.
    """
    if constraint.reason != Reason.CONDITION:
        return [(constraint.reason, constraint.detail)]
    (group,) = [one for one in trees.request.groups if one.suffix == constraint.group]
    if not trees.request.knows_conditions:
        return [(Reason.NO_INVENTORY, {"resource_class": next(iter(group.resources))})]
    found: dict[str, str] = {}
    for each in (tree, None):
        for key, reason in _barring(trees, constraint, list(group.resources), each):
            found.setdefault(key, reason)
            if tree is None:
                break
        if found:
            break
    return [(Reason.CONDITION, {"key": key, "reason": found[key]}) for key in sorted(found)]


def _barring(
    trees: MatchingTrees, constraint: Constraint, classes: Sequence[str], tree: int | None
) -> Iterator[tuple[str, str]]:
    """Yield keys and reasons of the conditions of providers with some classes, and of those above them."""
    forest = trees.forest
    tolerated = constraint.value
    seen: set[int] = set()
    for row in _rows(trees, classes, tree).tolist():
        at = row
        while at != NO_ROW and at not in seen:
            seen.add(at)
            for condition in forest.conditions(at):
                if tolerated is not None and condition.counts(tolerated):
                    yield condition.key, condition.reason
            at = int(forest.parent.values[at])


def _rows(trees: MatchingTrees, classes: Sequence[str], tree: int | None) -> Rows:
    """Return the rows, in the canonical order, of the providers with some of some classes."""
    forest, order = trees.forest, trees.forest.order
    has = np.zeros(forest.row_count, dtype=np.bool_)
    for name in classes:
        columns = forest.class_inventories(name)
        has[columns.row.values[columns.living()]] = True
    first, end = 0, len(order.row)
    if tree is not None:
        first = int(order.roots[tree])
        end = int(order.end[first])
    rows: Rows = order.row[first:end]
    return rows[has[rows]]
