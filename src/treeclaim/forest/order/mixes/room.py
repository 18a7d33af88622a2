# SPDX-License-Identifier: Apache-2.0
"""Computes the room that candidates cost a mix, and amounts that are useless to it (contract page 101, section 3).

The requests of the mix, and their counts in each unallocated tree, change only with shapes, inventories, traits
and aggregates. They are computed once and cached. The counts now, and after a candidate is taken, are computed for
the requested trees each time, so no answer depends on earlier questions or changes.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.filters import require_known_names, sharing_rows
from treeclaim.forest.order.mixes.request_counts import RequestCounts, relate_request
from treeclaim.forest.order.mixes.tree_counter import Counts, Take, TreeCounter, with_consumed
from treeclaim.forest.order.totals import Floats, class_rows, totals_of
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Mask, Rows, shown, sums_by
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.planning import Mix
from treeclaim.model.request import CandidateRequest

_next_serial = count().__next__

TOGETHER = 4_096
"""States that are counted between two checks of the deadline."""


@dataclass(frozen=True, slots=True, eq=False)
class MixRequests:
    """The requests of a mix whose names exist.

    Attributes:
        weights: By request, float64.
        requests: The requests.
        amounts: Amount of each class by request.
        counter: Counts them.
        are_apart: Whether no tree is served by providers of another one.
        written: How often the inventories of each class were written when this was read.
        catalogue: The names that existed then.
        serial: Stands for them in keys of caches.
    """

    weights: Floats
    requests: tuple[CandidateRequest, ...]
    amounts: tuple[Mapping[str, int], ...]
    counter: TreeCounter
    are_apart: bool
    written: tuple[int, ...]
    catalogue: Catalogue
    serial: int = field(default_factory=_next_serial)

    @property
    def nbytes(self) -> int:
        """Return the memory that they take, except for the mix's own."""
        return self.weights.nbytes + self.counter.nbytes

    def count(self, forest: Forest, trees: Rows, budget: Budget) -> Counts:
        """Return the counts in some trees, shape (trees, requests)."""
        counts = np.zeros((len(trees), len(self.weights)))
        for first in range(0, len(trees), TOGETHER):
            budget.check()
            part = slice(first, first + TOGETHER)
            counts[part] = self.counter.count(forest, trees[part])
        return counts


def requests_of(forest: Forest, mix: Mix, budget: Budget = UNBOUNDED) -> MixRequests:
    """Return the requests of a mix whose names exist, from the cache if they still hold.

    Limits of inventories are part of the counts, so each write of these makes them new.
    """
    classes = sorted(mix.classes & forest.catalogue.resource_classes.keys())
    written = tuple(forest.class_inventories(name).refreshed for name in classes)
    overlooks_conditions = forest.has_conditions and forest.overlooks_conditions
    key = ("requests of a mix", mix, overlooks_conditions, forest.overlooks_units)
    cached = forest.cache.find(key)
    if (
        isinstance(cached, MixRequests)
        and cached.written == written
        and cached.catalogue is forest.catalogue
    ):
        return cached
    requests = _read(forest, mix, written, budget)
    forest.cache.keep(key, requests, replaces=True)
    return requests


def _read(forest: Forest, mix: Mix, written: tuple[int, ...], budget: Budget) -> MixRequests:
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
        written,
        forest.catalogue,
    )


_ONE = 2.0**52
"""A loss of 1 in whole units: sums of whole numbers are the same in any order."""


class MixRoom:
    """The room of a mix in one Forest, whose use may change."""

    def __init__(self, forest: Forest, mix: Mix, resource_class: str, budget: Budget) -> None:
        """Prepare to judge candidates.

        Args:
            forest: The Forest to search.
            mix: The mix.
            resource_class: The scarce class.
            budget: The budget of the search.
        """
        self._forest = forest
        self._budget = budget
        self._requests = requests_of(forest, mix, budget)
        self._costs: Floats = forest.cache.get(
            ("costs of a mix", self._requests.serial, resource_class),
            lambda: self._compute_costs(mix, resource_class),
        )

    def _compute_costs(self, mix: Mix, name: str) -> Floats:
        """Return the cost of one consumer less in parts of the greatest loss, by tree and request; 0 where none ever fits."""
        sizes = np.zeros(len(self._forest.order.roots))
        if name in self._forest.catalogue.resource_classes:
            sizes = totals_of(self._forest, name).tree_capacity
        nothing_used = self._forest.emptied()
        requests = requests_of(nothing_used, mix, self._budget)
        empty = requests.count(nothing_used, np.arange(len(sizes)), self._budget)
        fits = empty > 0
        room = (sizes[:, None] * fits).sum(axis=0)
        worth = np.where(
            fits, self._requests.weights * sizes[:, None] / np.where(room > 0, room, 1), 0.0
        )
        most = max((sum(row) for row in worth.tolist()), default=0.0)
        costs: Floats = worth / np.where(fits, empty, 1) / (most or 1.0)
        return costs

    def related(self) -> Sequence[Problem] | None:
        """Return the requests related to the Forest; None if what is taken in a tree concerns others."""
        if not self._requests.are_apart:
            return None
        return [
            relate_request(self._forest, request, self._budget)
            for request in self._requests.requests
        ]

    def values(self, count: int, candidates: Rows, trees: Rows, takes: Sequence[Take]) -> Floats:
        """Return the value of the term for some candidates.

        Args:
            count: Number of candidates.
            candidates: The number of the candidate in each state, ascending, shape (states,).
            trees: The tree of each state: a candidate has a state for each of its trees.
            takes: What the candidates take.
        """
        takes = with_consumed(self._forest, takes)
        loss = np.zeros(count, dtype=np.int64)
        for first in range(0, len(trees), TOGETHER):
            self._budget.check()
            batch = slice(first, first + TOGETHER)
            batch_takes = [take.of(candidates[batch]) for take in takes]
            np.add.at(loss, candidates[batch], self._losses(trees[batch], batch_takes))
        values: Floats = np.maximum(1 - loss / _ONE, 0.0)
        return values

    def _losses(self, trees: Rows, takes: Sequence[Take]) -> Integers:
        count = self._requests.counter.count
        distinct, at = np.unique(trees, return_inverse=True)
        less = np.maximum(count(self._forest, distinct)[at] - count(self._forest, trees, takes), 0)
        less *= self._costs[trees]
        less *= _ONE
        loss: Integers = np.rint(less, out=less).astype(np.int64).sum(axis=1)
        return loss


_MOST = 2**62
"""Sums that stay below it are made in 64 bits."""


def stranded_by_group(
    forest: Forest,
    mix: Mix,
    group: Integers,
    rows: Rows,
    *,
    count: int,
    budget: Budget = UNBOUNDED,
) -> dict[str, list[int]]:
    """Return the stranded units of each class of a mix, in each group of providers.

    A tree counts for a class in a group if the group has all its providers with the class, and none of
    these is a sharing one.

    Args:
        forest: All providers.
        mix: The mix.
        group: The number of the group of each membership.
        rows: The provider of each membership; none is twice in a group.
        count: The number of groups.
        budget: The budget of the count.

    Raises:
        SearchGivenUpError: if the time is over.
    """
    requests = requests_of(forest, mix, budget)
    now = requests.count(forest, np.arange(len(forest.order.roots)), budget).astype(np.int64)
    sharing = sharing_rows(forest)
    stranded = {}
    for name in sorted(mix.classes & forest.catalogue.resource_classes.keys()):
        budget.check()
        # Requests that fit nowhere, because a name in them is unknown, count too.
        whole = sum(
            entry.weight
            for entry in mix.requests.values()
            if any(name in wanted.resources for wanted in entry.request.groups)
        )
        lost = _lost(requests, now, name, _free(forest, name, sharing), whole)
        sums = np.zeros(count, dtype=object)
        np.add.at(sums, *_whole_trees(forest, name, group, rows, lost))
        stranded[name] = [shown(amount // whole) for amount in sums.tolist()]
    return stranded


def _whole_trees(
    forest: Forest, name: str, group: Integers, rows: Rows, lost: Integers
) -> tuple[Integers, Integers]:
    """Return for each group, and each tree whose providers with a class it has, what is lost there."""
    _, positions, trees = class_rows(forest, name)
    width = max(len(lost), 1)
    tree = np.full(forest.row_count, -1)
    tree[positions] = trees
    has_class = np.flatnonzero(tree[rows] >= 0)
    keys, counts = np.unique(group[has_class] * width + tree[rows[has_class]], return_counts=True)
    number, tree_number = np.divmod(keys, width)
    is_whole = counts == np.bincount(trees, minlength=width)[tree_number]
    return number[is_whole], lost[tree_number[is_whole]].astype(object)


def _free(forest: Forest, name: str, sharing: Mask) -> Integers:
    """Return what is free of a class in each tree, 0 in those where a sharing provider has it."""
    indices, positions, trees = class_rows(forest, name)
    roots = len(forest.order.roots)
    free = sums_by(trees, forest.class_inventories(name).free.values[indices], roots)
    free[trees[sharing[positions]]] = 0
    return free


def _lost(requests: MixRequests, now: Integers, name: str, free: Integers, whole: int) -> Integers:
    """Return the free units that are useless to a request, times its weight, summed over requests, by tree.

    Args:
        requests: The requests of the mix.
        now: Count of each request in each tree, shape (trees, requests).
        name: The class.
        free: Free units in each tree.
        whole: The sum of the weights of all requests for the class, including those that fit nowhere.
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
    return lost
