# SPDX-License-Identifier: Apache-2.0
"""The room of a mix: its loss by candidates, and stranded amounts (contract page 101, section 3).

The counts of a mix's requests in unallocated trees are cached, because they change only with shapes, inventories,
traits and aggregates. Current counts are computed for each question, so no answer depends on earlier questions.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.filters import require_known_names, sharing_rows
from treeclaim.forest.order.mixes.request_counts import RequestCounts, relate_request
from treeclaim.forest.order.mixes.tree_counter import (
    Counts,
    TakenAmounts,
    TreeCounter,
    add_consumption,
)
from treeclaim.forest.order.totals import Floats, find_class_rows, get_totals
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Mask, Rows, Trees, cap_count, sum_by_part
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.planning import Mix
from treeclaim.model.request import CandidateRequest

_next_serial = count().__next__

TOGETHER = 4_096
"""States of trees that are counted between two checks of the deadline."""


@dataclass(frozen=True, slots=True, eq=False)
class MixRequests:
    """The requests of a mix that name only existing classes and traits.

    Attributes:
        amounts: Units by class of each request.
        are_apart: Whether no provider serves another tree than its own.
        overwrite_counts: The state of the inventories of each class: `ClassInventories.overwrite_count`.
        serial: Identifies this object in keys of caches.
    """

    weights: Floats
    requests: tuple[CandidateRequest, ...]
    amounts: tuple[Mapping[str, int], ...]
    counter: TreeCounter
    are_apart: bool
    overwrite_counts: tuple[int, ...]
    catalogue: Catalogue
    serial: int = field(default_factory=_next_serial)

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays."""
        return self.weights.nbytes + self.counter.nbytes

    def count(self, forest: Forest, trees: Rows, budget: Budget) -> Counts:
        """Return the current counts, shape (trees, requests)."""
        counts = np.zeros((len(trees), len(self.weights)))
        for first in range(0, len(trees), TOGETHER):
            budget.check()
            part = slice(first, first + TOGETHER)
            counts[part] = self.counter.count(forest, trees[part])
        return counts


def find_mix_requests(forest: Forest, mix: Mix, budget: Budget) -> MixRequests:
    """Return the requests of a mix, cached until existing names, or inventories of its classes, change."""
    classes = sorted(mix.classes & forest.catalogue.resource_classes.keys())
    overwrite_counts = tuple(forest.class_inventories(name).overwrite_count for name in classes)
    ignores_conditions = forest.has_conditions and forest.ignores_conditions
    key = ("requests of a mix", mix, ignores_conditions, forest.ignores_units)
    cached = forest.cache.find(key)
    if (
        isinstance(cached, MixRequests)
        and cached.overwrite_counts == overwrite_counts
        and cached.catalogue is forest.catalogue
    ):
        return cached
    requests = _read(forest, mix, overwrite_counts, budget)
    forest.cache.keep(key, requests, replaces=True)
    return requests


def _read(
    forest: Forest, mix: Mix, overwrite_counts: tuple[int, ...], budget: Budget
) -> MixRequests:
    counts: list[RequestCounts] = []
    known_entries = []
    for entry in mix.requests.values():
        with suppress(TraitsNotFoundError, ResourceClassNotFoundError):
            require_known_names(forest, entry.request)
            counts.append(RequestCounts(forest, entry.request, budget))
            known_entries.append(entry)
        budget.check()
    counter = TreeCounter(forest, counts)
    budget.check()
    return MixRequests(
        np.array([float(entry.weight) for entry in known_entries]),
        tuple(entry.request for entry in known_entries),
        tuple(request.amounts for request in counts),
        counter,
        all(request.are_apart for request in counts),
        overwrite_counts,
        forest.catalogue,
    )


_UNITS_PER_LOSS = 2.0**52
"""A loss of 1 in integer units, because sums of integers do not depend on the order of summands."""


class MixRoom:
    """The room of a mix, measured in a scarce resource class."""

    def __init__(self, forest: Forest, mix: Mix, resource_class: str, budget: Budget) -> None:
        self._forest = forest
        self._budget = budget
        self._requests = find_mix_requests(forest, mix, budget)
        self._costs: Floats = forest.cache.get(
            ("costs of a mix", self._requests.serial, resource_class),
            lambda: self._compute_costs(mix, resource_class),
        )

    def _compute_costs(self, mix: Mix, name: str) -> Floats:
        """Return the loss by one consumer less, as a share of the greatest loss, shape (trees, requests)."""
        sizes = np.zeros(len(self._forest.order.roots))
        if name in self._forest.catalogue.resource_classes:
            sizes = get_totals(self._forest, name).tree_capacity
        empty_forest = self._forest.view_emptied()
        requests = find_mix_requests(empty_forest, mix, self._budget)
        counts = requests.count(empty_forest, np.arange(len(sizes)), self._budget)
        fits = counts > 0
        room = (sizes[:, None] * fits).sum(axis=0)
        losses = np.where(
            fits, self._requests.weights * sizes[:, None] / np.where(room > 0, room, 1), 0.0
        )
        greatest = max((sum(row) for row in losses.tolist()), default=0.0)
        costs: Floats = losses / np.where(fits, counts, 1) / (greatest or 1.0)
        return costs

    def relate_requests(self) -> Sequence[Problem] | None:
        """Return the requests related to the Forest; None if an amount taken in a tree affects other trees."""
        if not self._requests.are_apart:
            return None
        return [
            relate_request(self._forest, request, self._budget)
            for request in self._requests.requests
        ]

    def compute_values(
        self, count: int, candidates: Rows, trees: Rows, takes: Sequence[TakenAmounts]
    ) -> Floats:
        """Return the value of the term `keep` for `count` candidates, which take some amounts.

        A candidate has a state for each of its trees. `candidates` (ascending numbers) and `trees` have the candidate
        and the tree of each state.
        """
        takes = add_consumption(self._forest, takes)
        loss = np.zeros(count, dtype=np.int64)
        for first in range(0, len(trees), TOGETHER):
            self._budget.check()
            batch = slice(first, first + TOGETHER)
            batch_takes = [take.select(candidates[batch]) for take in takes]
            np.add.at(loss, candidates[batch], self._compute_losses(trees[batch], batch_takes))
        values: Floats = np.maximum(1 - loss / _UNITS_PER_LOSS, 0.0)
        return values

    def _compute_losses(self, trees: Rows, takes: Sequence[TakenAmounts]) -> Integers:
        count = self._requests.counter.count
        distinct, at = np.unique(trees, return_inverse=True)
        counts_now = count(self._forest, distinct)[at]
        losses = np.maximum(counts_now - count(self._forest, trees, takes), 0)
        losses *= self._costs[trees]
        losses *= _UNITS_PER_LOSS
        sums: Integers = np.rint(losses, out=losses).astype(np.int64).sum(axis=1)
        return sums


_MOST = 2**62
"""Sums below it are computed in 64 bits."""


def compute_stranded(
    forest: Forest,
    mix: Mix,
    group: Integers,
    rows: Rows,
    *,
    count: int,
    budget: Budget = UNBOUNDED,
) -> dict[str, list[int]]:
    """Return the stranded units by class of a mix and group of providers.

    A tree counts for a class in a group if the group has all providers of the tree with the class. None of these may
    be a sharing provider.

    `group` and `rows` have the group number and the provider of each membership; no group has a provider twice.

    Raises:
        SearchGivenUpError: if the time is over.
    """
    requests = find_mix_requests(forest, mix, budget)
    now = requests.count(forest, np.arange(len(forest.order.roots)), budget).astype(np.int64)
    sharing = sharing_rows(forest)
    stranded = {}
    for name in sorted(mix.classes & forest.catalogue.resource_classes.keys()):
        budget.check()
        # Requests that fit nowhere, because a name in them is unknown, count too.
        total_weight = sum(
            entry.weight
            for entry in mix.requests.values()
            if any(name in group.resources for group in entry.request.groups)
        )
        weighted = _compute_stranded_by_tree(
            requests, now, name, _sum_free(forest, name, sharing), total_weight
        )
        sums = np.zeros(count, dtype=object)
        numbers, trees = _find_whole_trees(forest, name, group, rows, len(weighted))
        np.add.at(sums, numbers, weighted[trees].astype(object))
        stranded[name] = [cap_count(amount // total_weight) for amount in sums.tolist()]
    return stranded


def _find_whole_trees(
    forest: Forest, name: str, group: Integers, rows: Rows, tree_count: int
) -> tuple[Integers, Trees]:
    """Return the pairs of a group and a tree where the group has all providers of the tree with a class."""
    _, class_members, trees = find_class_rows(forest, name)
    width = max(tree_count, 1)
    tree = np.full(forest.row_count, -1)
    tree[class_members] = trees
    has_class = np.flatnonzero(tree[rows] >= 0)
    keys, counts = np.unique(group[has_class] * width + tree[rows[has_class]], return_counts=True)
    number, tree_number = np.divmod(keys, width)
    is_whole = counts == np.bincount(trees, minlength=width)[tree_number]
    return number[is_whole], tree_number[is_whole]


def _sum_free(forest: Forest, name: str, sharing: Mask) -> Integers:
    """Return the free units of a class in each tree; 0 in a tree with a sharing provider of the class."""
    indices, rows, trees = find_class_rows(forest, name)
    roots = len(forest.order.roots)
    free_units = sum_by_part(trees, forest.class_inventories(name).free.values[indices], roots)
    free_units[trees[sharing[rows]]] = 0
    return free_units


def _compute_stranded_by_tree(
    requests: MixRequests, now: Integers, name: str, free_units: Integers, total_weight: int
) -> Integers:
    """Return the weighted sum over requests of the free units that are useless to a request, by tree.

    `now` has the current counts, shape (trees, requests). `total_weight` includes requests that fit nowhere.
    """
    dtype = np.int64 if int(free_units.max(initial=0)) * total_weight < _MOST else object
    units = free_units.astype(dtype)
    stranded = units * total_weight
    for number, (weight, amounts) in enumerate(
        zip(requests.weights.tolist(), requests.amounts, strict=True)
    ):
        amount = amounts.get(name, 0)
        if amount:
            # A count above the free units makes no difference, but its product could overflow.
            fits = np.minimum(now[:, number], free_units // amount + 1).astype(dtype)
            stranded = stranded - int(weight) * np.minimum(units, fits * amount)
    return stranded
