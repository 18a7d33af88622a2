# SPDX-License-Identifier: Apache-2.0
"""Which of the classes of a request consume others, and where these have no room (page 102, section 2)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from treeclaim.forest.explain.constraints import Constraint
from treeclaim.forest.explain.matching_trees import MatchingTrees
from treeclaim.forest.table.columns import search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.texts.fragments import writable
from treeclaim.model.reasons import Reason
from treeclaim.model.request import CandidateRequest


def consuming_classes(forest: Forest, request: CandidateRequest) -> frozenset[str]:
    """Return those classes of a request of which some inventory consumes others."""
    names = {name for group in request.groups for name in group.resources}
    if not forest.holdings.patterns.are_any:
        return frozenset()
    return frozenset(name for name in names if forest.class_inventories(name).pattern.values.any())


def told_of_consumed(
    trees: MatchingTrees, constraint: Constraint, tree: int | None
) -> tuple[Reason, Mapping[str, Any]]:
    """Return what is told of a constraint: of what is consumed, where the least is missing.

    Args:
        trees: The search that is explained.
        constraint: One of its constraints.
        tree: Number of the tree of which it is told; None for all.
    """
    if constraint.reason != Reason.CONSUMED:
        return constraint.reason, constraint.detail
    if not trees.request.knows_conditions:
        amount = constraint.detail["amount"]
        return Reason.CAPACITY, {"resource_class": constraint.value, "requested": amount}
    forest, order = trees.forest, trees.forest.order
    columns = forest.class_inventories(constraint.value)
    indices = columns.living()
    if tree is not None:
        of_tree = order.tree[order.position[columns.row.values[indices]]] == tree
        indices = indices[of_tree]
    nearest: tuple[int, int, int, int] | None = None
    for uses, some in forest.holdings.patterns.among(columns.pattern.values[indices]):
        for use in uses:
            consumed = forest.classes[use.class_id]
            rows = columns.row.values[indices[some]] + use.offset
            free = consumed.free.values[search_ascending(consumed.row.values, rows)]
            wanted = constraint.detail["amount"] * use.amount
            short = free[free < wanted]
            if len(short):
                most = int(np.max(short))
                found = (wanted - most, use.class_id, wanted, most)
                nearest = found if nearest is None else min(nearest, found)
    told = {"resource_class": constraint.value}
    if nearest is not None:
        _, class_id, wanted, free_there = nearest
        told |= {
            "consumed_class": forest.catalogue.class_by_id[class_id].name,
            "requested": writable(wanted),
            "free": writable(max(free_there, 0)),
        }
    return Reason.CONSUMED, told
