# SPDX-License-Identifier: Apache-2.0
"""What is free and of no use to a mix (contract page 101, section 3)."""

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.order.mixes.requests import Requests, requests_of
from treeclaim.forest.order.terms.counted import sharing_by_position
from treeclaim.forest.order.totals import class_positions
from treeclaim.forest.table.columns import Integers, Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import sums_by
from treeclaim.model.extension.mixes import Mix

_MOST = 2**62
"""Sums that stay below it are made in 64 bits."""


def stranded(
    forest: Forest, mix: Mix, passes: Mask | None = None, budget: Budget = UNBOUNDED
) -> dict[str, int]:
    """Return what is stranded of each class that a mix asks for, in units.

    Args:
        forest: All providers.
        mix: What is expected.
        passes: Which rows of the table count, shape (rows,); None for all. A tree counts for a class if
            all its providers that have the class do, and none of these is a sharing one.
        budget: What it may cost.

    Raises:
        SearchGivenUpError: if the time is over.
    """
    requests = requests_of(forest, mix, budget)
    now = requests.now(forest, np.arange(len(forest.order.roots)), budget).astype(np.int64)
    sharing = sharing_by_position(forest)
    shares = {}
    for name in sorted(mix.classes & forest.catalogue.resource_classes.keys()):
        budget.check()
        # Those that fit nowhere, as a name in them is gone, count too.
        whole = sum(
            asked.weight
            for asked in mix.requests.values()
            if any(name in group.resources for group in asked.request.groups)
        )
        free = _free(forest, name, sharing, passes)
        shares[name] = _lost(requests, now, name, free, whole) // whole
    return shares


def _free(forest: Forest, name: str, sharing: Mask, passes: Mask | None) -> Integers:
    """Return what is free of a class in each tree that counts for it, 0 in the others."""
    indices, positions, trees = class_positions(forest, name)
    columns = forest.class_inventories(name)
    is_out = sharing[positions]
    if passes is not None:
        is_out = is_out | ~passes[columns.row.values[indices]]
    roots = len(forest.order.roots)
    counts = np.ones(roots, dtype=np.bool_)
    counts[trees[is_out]] = False
    return np.where(counts, sums_by(trees, columns.free.values[indices], roots), 0)


def _lost(requests: Requests, now: Integers, name: str, free: Integers, whole: int) -> int:
    """Return what is free and of no use to a request, times its weight, summed over requests and trees.

    Args:
        requests: Of the mix.
        now: How many of each fit into each tree, shape (trees, requests).
        name: The class.
        free: Of it in each tree.
        whole: The weights of all that ask for it, those that fit nowhere included.
    """
    # Consumers beyond what is free make no difference, so that no product is too large.
    kind = np.int64 if int(free.max(initial=0)) * whole < _MOST else object
    units = free.astype(kind)
    lost = units * whole
    for number, (weight, amounts) in enumerate(
        zip(requests.weights.tolist(), requests.amounts, strict=True)
    ):
        amount = amounts.get(name, 0)
        if amount:
            fits = np.minimum(now[:, number], free // amount + 1).astype(kind)
            lost = lost - int(weight) * np.minimum(units, fits * amount)
    return sum(lost.tolist())
