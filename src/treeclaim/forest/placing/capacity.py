# SPDX-License-Identifier: Apache-2.0
"""Counts of the consumers of a request that fit (contract page 98, section 5).

Counting is placing until nothing fits. Trees that share nothing are counted together (`tree_counts`). Otherwise
consumers are placed one after the other.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import classes_with_consumed, times_together
from treeclaim.forest.domains.followed import follow
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import Keeps, Query
from treeclaim.forest.placing.rules import Domains
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.placing.tree_counts import (
    bounds_by_tree,
    counts_at_once,
    fill_trees,
)
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.tree_kinds import TreeKinds, kinds_where_slow
from treeclaim.forest.table.columns import GREATEST, Integers, Mask, Trees, shown, sum_of
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import free_holds
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """The limits of a count of capacity.

    Attributes:
        domains: Aggregates to count separately; empty for each tree, None for no domains.
        limit: The most domains shown.
        end: When counting ends, by the monotonic clock; None for never.
    """

    domains: tuple[str, ...] | None
    limit: int
    end: float | None = None

    def share(self, requests: int) -> "CapacityLimits":
        """Return the limits of the first of some requests, which gets its share of the time."""
        if self.end is None:
            return self
        now = time.monotonic()
        return replace(self, end=now + max(self.end - now, 0.0) / requests)


def count_capacity(
    forest: Forest, request: CandidateRequest, limits: CapacityLimits, budget: Budget
) -> dict[str, Any]:
    """Count how many consumers of a request fit, now and if nothing were allocated.

    Where counting ends before all is counted, numbers are what was counted by then, and the bound is None
    if it was not proven by then.
    """
    count = CapacityCount(*free_holds(forest, request, budget), limits.end, budget)
    count.run(with_empty=True)
    document: dict[str, Any] = {
        "fits": count.fits,
        "at_most": count.at_most,
        "when_empty": count.when_empty,
    }
    if limits.domains is not None:
        document["domains"] = count.parts(limits.domains, limits.limit)
    return document | {"complete": count.is_complete}


def count_now(
    forest: Forest, request: CandidateRequest, budget: Budget, end: float | None = None
) -> "CapacityCount":
    """Count how many consumers of a request fit now.

    Args:
        forest: The Forest.
        request: The request.
        budget: The time and memory of the count.
        end: When an incomplete count is returned, by the monotonic clock; None for never.

    Raises:
        SearchGivenUpError: if the budget is used up first.
    """
    count = CapacityCount(*free_holds(forest, request, budget), end, budget)
    count.run(with_empty=False)
    return count


class _TreesInteractError(Exception):
    """The count in one tree depends on others, as they share providers or a mix, or an amount is split."""


class CapacityCount:
    """The number of consumers of one request that fit, and how it is counted.

    Attributes:
        is_complete: Whether there was time to count all.
    """

    def __init__(
        self, forest: Forest, request: CandidateRequest, end: float | None, budget: Budget
    ) -> None:
        """Take the request, and when counting ends by the monotonic clock; None for no end."""
        self.is_complete = True
        self._bound: int | None = None
        self._forest = forest
        self._request = request
        self._end = end
        self._budget = budget
        self._counts: list[Integers] = []
        """The consumers counted so far, now and if nothing were allocated: by root, or all together."""
        self._is_by_tree = False

    @property
    def fits(self) -> int:
        """Return how many fit, as far as counted."""
        return sum_of(self._counts[0]) if self._counts else 0

    @property
    def at_most(self) -> int | None:
        """Return how many any order could place; None if that is not proven."""
        return None if self._bound is None else max(self._bound, self.fits)

    @property
    def when_empty(self) -> int:
        """Return how many would fit if nothing were allocated, as far as counted."""
        return sum_of(self._counts[-1]) if self._counts else 0

    @contextmanager
    def _until_the_end(self) -> Iterator[None]:
        """Run the block until counting ends."""
        try:
            with self._budget.ending(self._end), self._budget.scope():
                yield
        except SearchGivenUpError:
            if self._end is None:
                raise
            self.is_complete = False

    def run(self, *, with_empty: bool) -> None:
        """Count now, and if so wanted as if nothing were allocated."""
        with self._until_the_end():
            self._budget.check()
            try:
                self._count_trees(with_empty=with_empty)
            except _TreesInteractError:
                self._count_together(with_empty=with_empty)

    def _count_trees(self, *, with_empty: bool) -> None:
        """Count in each tree by itself; with an empty Forest too, only those written since the last time."""
        forest, request = self._forest, replace(self._request, limit=None)
        every = np.arange(len(forest.order.roots))
        if with_empty:
            names = classes_with_consumed(forest, request.classes)

            def recount(numbers: Integers, trees: Trees) -> Integers:
                numbers = numbers.copy()
                numbers[:, trees] = self._numbers_of(trees)
                return numbers

            numbers = follow(
                forest,
                ("counts", request),
                map(forest.class_inventories, sorted(names)),
                lambda: self._numbers_of(every),
                recount,
            )
        else:
            numbers = self._count_in(forest, every)
        self._is_by_tree = True
        self._bound = sum_of(numbers[1])
        self._counts = [numbers[0], numbers[-1] if with_empty else numbers[0]]

    def _numbers_of(self, trees: Trees) -> Integers:
        """Return `fits`, `at_most` and `when_empty` of some trees, int64, shape (3, trees)."""
        now = self._count_in(self._forest, trees)
        if len(trees) == now.shape[1]:
            self._bound = sum_of(now[1])
        empty = self._count_in(self._forest.emptied(), trees)
        return np.stack([*now, empty[0]])[:, trees]

    def _count_in(self, forest: Forest, trees: Trees) -> Integers:
        """Return how many fit into each of some trees, and an upper bound of that, shape (2, roots)."""
        problem = relate_request(forest, self._request, self._budget)
        # The room of a mix in other trees decides which candidate of a tree comes first.
        if not problem.are_trees_apart or (self._request.order and self._request.order.mixes):
            raise _TreesInteractError
        counts, remaining_trees = counts_at_once(problem, trees)
        self._counts.append(counts)
        if not len(remaining_trees):
            return np.stack([counts, counts])
        bounds = bounds_by_tree(forest, self._request, self._budget)
        self._fill_trees(problem, remaining_trees, counts)
        most = counts.copy()
        if len(problem.plan.slots) == 1 and not problem.consumes:
            # Any order of consumers gives the same count.
            return np.stack([counts, most])
        most[remaining_trees] = np.maximum(bounds[remaining_trees], counts[remaining_trees])
        return np.stack([counts, most])

    def _count_together(self, *, with_empty: bool) -> None:
        """Place consumers one after the other, wherever there is room."""
        self._counts.clear()
        self._bound = int(
            bounds_by_tree(self._forest, self._request, self._budget, are_joined=True)[0]
        )
        everywhere = np.ones(len(self._forest.order.roots), dtype=np.bool_)
        for forest in [self._forest, *([self._forest.emptied()] if with_empty else [])]:
            self._counts.append(np.zeros(1, dtype=np.int64))
            self._fill(forest, everywhere, self._counts[-1], 0)

    def _fill_trees(self, problem: Problem, trees: Trees, counts: Integers) -> None:
        """Place consumers in some trees until they are full; in trees that are alike only once where that is slow."""
        # With an order, each consumer takes a search.
        kinds = (
            kinds_where_slow(problem, trees)
            if self._request.order is None
            else TreeKinds(problem).first_trees(trees)
        )
        if kinds is None:
            kinds = np.arange(len(trees))
        _, first, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
        first_trees = trees[first]
        query = Query(Scratch(problem.forest), self._request, self._budget)
        for filled_trees, times in fill_trees(query, np.sort(first_trees)):
            counts[filled_trees] = np.minimum(counts[filled_trees] + times, GREATEST)
            counts[trees] = counts[first_trees][kind_of]

    def _fill(
        self,
        forest: Forest,
        allowed: Mask,
        counts: Integers,
        number: int,
        keeps: Keeps = lambda _: True,
    ) -> None:
        """Place consumers until nothing fits, and add them to one of the counts."""
        query = Query(Scratch(forest), self._request, self._budget)
        while counts[number] < GREATEST:
            self._budget.check()
            with self._budget.scope():
                candidate = query.first(allowed, keeps)
            if candidate is None:
                return
            times = self._times(query.scratch, candidate)
            query.scratch.take([(row, name, times * n) for row, name, n in candidate.allocations])
            query.scratch.begin_conditions(candidate.allocations)
            counts[number] = shown(int(counts[number]) + times)

    def _times(self, scratch: Scratch, candidate: Candidate) -> int:
        """Return how often a candidate fits before another one comes first."""
        # The free amounts determine scores, and how the next amount is divided.
        is_single = self._request.order is not None or self._request.can_split
        if is_single or scratch.heads_begun_by(candidate.allocations):
            return 1
        return times_together(scratch.forest, candidate.allocations)

    def parts(self, names: Sequence[str], limit: int) -> list[dict[str, Any]]:
        """Return how many fit in each domain by itself, those with most first.

        Args:
            names: Aggregates, or none for every tree.
            limit: Most domains.
        """
        domains = Domains(self._forest, tuple(names) or None, self._budget)
        counts = np.zeros(domains.count, dtype=np.int64)
        with self._until_the_end():
            self._count_domains(domains, counts)
        # Completed counts are reported, although the time for counting is over.
        shown_domains = np.flatnonzero(counts > 0)
        if len(shown_domains) > limit:
            # All that are equal to the last one shown are compared by their UUIDs.
            least = np.partition(counts[shown_domains], -limit)[-limit]
            shown_domains = shown_domains[counts[shown_domains] >= least]
        parts = []
        for domain in shown_domains.tolist():
            self._budget.check()
            part: dict[str, Any] = {"fits": shown(int(counts[domain]))}
            if names:
                parts.append({"uuid": names[domain], "name": None} | part)
            else:
                provider = self._forest.provider(int(self._forest.order.roots[domain]))
                parts.append({"uuid": provider.uuid, "name": provider.name} | part)
        return sorted(parts, key=lambda part: (-part["fits"], part["uuid"]))[:limit]

    def _count_domains(self, domains: Domains, counts: Integers) -> None:
        if self._is_by_tree:
            counts[:] = domains.sums(self._counts[0])
            return
        for domain in range(domains.count):
            allowed = domains.with_any(np.arange(domains.count) == domain)

            def keeps(trees: Sequence[int], domain: int = domain) -> bool:
                return domain in domains.containing(trees)

            self._fill(self._forest, allowed, counts, domain, keeps)
