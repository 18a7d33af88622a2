# SPDX-License-Identifier: Apache-2.0
"""Counts the consumers of a request that fit (contract page 98, section 5).

A count is the number of consumers that can be placed until nothing fits. Independent trees are counted together
(`tree_counts`). If trees interact, consumers are placed one after the other.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import count_joint_fits, include_consumed_classes
from treeclaim.forest.domains.followed import follow
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.queries import Query, TreePredicate
from treeclaim.forest.placing.rules import RuleDomains
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.placing.tree_counts import (
    bound_by_tree,
    count_at_once,
    fill_trees,
)
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.tree_kinds import TreeKinds, find_kinds_if_slow
from treeclaim.forest.table.columns import GREATEST, Integers, Mask, Trees, cap_count, sum_capped
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import free_holds
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """The limits of a count, which ends at `end` by the monotonic clock; None for never.

    `domains` are aggregates to count separately; empty for each tree, None for no domains.
    """

    domains: tuple[str, ...] | None
    limit: int
    end: float | None = None

    def share(self, requests: int) -> "CapacityLimits":
        """Return limits with an equal share of the remaining time for one of several requests."""
        if self.end is None:
            return self
        now = time.monotonic()
        return replace(self, end=now + max(self.end - now, 0.0) / requests)


def count_capacity(
    forest: Forest, request: CandidateRequest, limits: CapacityLimits, budget: Budget
) -> dict[str, Any]:
    """Count the consumers of a request that fit, now and without any allocations.

    If the time ends first, the numbers are incomplete, and an unproven bound is None.
    """
    count = CapacityCount(*free_holds(forest, request, budget), limits.end, budget)
    count.run(with_empty=True)
    document: dict[str, Any] = {
        "fits": count.fits,
        "at_most": count.at_most,
        "when_empty": count.when_empty,
    }
    if limits.domains is not None:
        document["domains"] = count.list_domains(limits.domains, limits.limit)
    return document | {"complete": count.is_complete}


def count_now(
    forest: Forest, request: CandidateRequest, budget: Budget, end: float | None = None
) -> "CapacityCount":
    """Count the consumers of a request that fit now.

    At `end`, by the monotonic clock, the count is returned incomplete; None means never.

    Raises:
        SearchGivenUpError: if the budget is used up before `end`.
    """
    count = CapacityCount(*free_holds(forest, request, budget), end, budget)
    count.run(with_empty=False)
    return count


class _TreesInteractError(Exception):
    """The count in a tree depends on other trees: they share providers or a mix, or an amount is split."""


class CapacityCount:
    """The number of consumers of one request that fit; `is_complete` is false if the time ended first."""

    def __init__(
        self, forest: Forest, request: CandidateRequest, end: float | None, budget: Budget
    ) -> None:
        self.is_complete = True
        self._bound: int | None = None
        self._forest = forest
        self._request = request
        self._end = end
        self._budget = budget
        self._counts: list[Integers] = []
        """Consumers counted so far, now and without allocations: by root, or a single sum."""
        self._is_by_tree = False

    @property
    def fits(self) -> int:
        """Return the number of consumers that fit, as far as counted."""
        return sum_capped(self._counts[0]) if self._counts else 0

    @property
    def at_most(self) -> int | None:
        """Return an upper bound for any order of placing; None if none is proven."""
        return None if self._bound is None else max(self._bound, self.fits)

    @property
    def when_empty(self) -> int:
        """Return the number of consumers that fit without any allocations, as far as counted."""
        return sum_capped(self._counts[-1]) if self._counts else 0

    @contextmanager
    def _until_end(self) -> Iterator[None]:
        try:
            with self._budget.ending(self._end), self._budget.scope():
                yield
        except SearchGivenUpError:
            if self._end is None:
                raise
            self.is_complete = False

    def run(self, *, with_empty: bool) -> None:
        """Count now, and optionally without any allocations."""
        with self._until_end():
            self._budget.check()
            try:
                self._count_trees(with_empty=with_empty)
            except _TreesInteractError:
                self._count_together(with_empty=with_empty)

    def _count_trees(self, *, with_empty: bool) -> None:
        """Count in each tree; `with_empty` updates cached counts, in the trees written since."""
        forest, request = self._forest, replace(self._request, limit=None)
        every = np.arange(len(forest.order.roots))
        if with_empty:
            names = include_consumed_classes(forest, request.classes)

            def recount(numbers: Integers, trees: Trees) -> Integers:
                numbers = numbers.copy()
                numbers[:, trees] = self._count_and_bound(trees)
                return numbers

            numbers = follow(
                forest,
                ("counts", request),
                map(forest.class_inventories, sorted(names)),
                lambda: self._count_and_bound(every),
                recount,
            )
        else:
            numbers = self._count_in(forest, every)
        self._is_by_tree = True
        self._bound = sum_capped(numbers[1])
        self._counts = [numbers[0], numbers[-1] if with_empty else numbers[0]]

    def _count_and_bound(self, trees: Trees) -> Integers:
        """Return `fits`, `at_most` and `when_empty` of trees, int64, shape (3, trees)."""
        now = self._count_in(self._forest, trees)
        if len(trees) == now.shape[1]:
            self._bound = sum_capped(now[1])
        empty = self._count_in(self._forest.view_emptied(), trees)
        return np.stack([*now, empty[0]])[:, trees]

    def _count_in(self, forest: Forest, trees: Trees) -> Integers:
        """Return the counts in trees and their upper bounds, shape (2, roots)."""
        problem = relate_request(forest, self._request, self._budget)
        # The first candidate of a tree depends on the mix's room in other trees.
        if not problem.are_trees_apart or (self._request.order and self._request.order.mixes):
            raise _TreesInteractError
        counts, remaining_trees = count_at_once(problem, trees)
        self._counts.append(counts)
        if not len(remaining_trees):
            return np.stack([counts, counts])
        self._fill_trees(problem, remaining_trees, counts)
        if len(problem.plan.slots) == 1 and not problem.consumes:
            # Any order of consumers gives the same count.
            return np.stack([counts, counts])
        bounds = bound_by_tree(forest, self._request, self._budget)
        most = counts.copy()
        most[remaining_trees] = np.maximum(bounds[remaining_trees], counts[remaining_trees])
        return np.stack([counts, most])

    def _count_together(self, *, with_empty: bool) -> None:
        self._counts.clear()
        self._bound = int(
            bound_by_tree(self._forest, self._request, self._budget, are_joined=True)[0]
        )
        everywhere = np.ones(len(self._forest.order.roots), dtype=np.bool_)
        for forest in [self._forest, *([self._forest.view_emptied()] if with_empty else [])]:
            self._counts.append(np.zeros(1, dtype=np.int64))
            self._fill(forest, everywhere, self._counts[-1], 0)

    def _fill_trees(self, problem: Problem, trees: Trees, counts: Integers) -> None:
        """Place consumers in trees until nothing fits; where that is slow, in one tree of each kind."""
        # With an order, each consumer needs a search.
        kinds = (
            find_kinds_if_slow(problem, trees)
            if self._request.order is None
            else TreeKinds(problem).first_trees(trees)
        )
        if kinds is None:
            kinds = np.arange(len(trees))
        _, first, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
        first_trees = trees[first]
        query = Query(ScratchForest(problem.forest), self._request, self._budget)
        for filled_trees, times in fill_trees(query, np.sort(first_trees)):
            counts[filled_trees] = np.minimum(counts[filled_trees] + times, GREATEST)
            counts[trees] = counts[first_trees][kind_of]

    def _fill(
        self,
        forest: Forest,
        allowed: Mask,
        counts: Integers,
        number: int,
        permits: TreePredicate = lambda _: True,
    ) -> None:
        """Place consumers until nothing fits, and add them to the count with a number."""
        query = Query(ScratchForest(forest), self._request, self._budget)
        while counts[number] < GREATEST:
            self._budget.check()
            with self._budget.scope():
                candidate = query.find_first(allowed, permits)
            if candidate is None:
                return
            times = self._count_times(query.scratch, candidate)
            query.scratch.take([(row, name, times * n) for row, name, n in candidate.allocations])
            query.scratch.begin_conditions(candidate.allocations)
            counts[number] = cap_count(int(counts[number]) + times)

    def _count_times(self, scratch: ScratchForest, candidate: Candidate) -> int:
        """Return the number of consecutive consumers for which a candidate is the first."""
        # Scores, and the division of the next amount, depend on the free amounts.
        is_single = self._request.order is not None or self._request.can_split
        if is_single or scratch.find_begun_heads(candidate.allocations):
            return 1
        return count_joint_fits(scratch.forest, candidate.allocations)

    def list_domains(self, names: Sequence[str], limit: int) -> list[dict[str, Any]]:
        """Count in each aggregate, or in each tree without `names`; return those with the most consumers first."""
        domains = RuleDomains(self._forest, tuple(names) or None, self._budget)
        counts = np.zeros(domains.count, dtype=np.int64)
        with self._until_end():
            self._count_domains(domains, counts)
        # Completed counts are returned even after the time for counting has ended.
        shown_domains = np.flatnonzero(counts > 0)
        if len(shown_domains) > limit:
            # Domains that equal the last shown domain are compared by UUID.
            least = np.partition(counts[shown_domains], -limit)[-limit]
            shown_domains = shown_domains[counts[shown_domains] >= least]
        documents = []
        for domain in shown_domains.tolist():
            self._budget.check()
            fits: dict[str, Any] = {"fits": cap_count(int(counts[domain]))}
            if names:
                documents.append({"uuid": names[domain], "name": None} | fits)
            else:
                provider = self._forest.provider(int(self._forest.order.roots[domain]))
                documents.append({"uuid": provider.uuid, "name": provider.name} | fits)
        return sorted(documents, key=lambda each: (-each["fits"], each["uuid"]))[:limit]

    def _count_domains(self, domains: RuleDomains, counts: Integers) -> None:
        if self._is_by_tree:
            counts[:] = domains.sum_by_domain(self._counts[0])
            return
        for domain in range(domains.count):
            allowed = domains.find_trees_in_any(np.arange(domains.count) == domain)

            def permits(trees: Sequence[int], domain: int = domain) -> bool:
                return domain in domains.find_containing(trees)

            self._fill(self._forest, allowed, counts, domain, permits)
