# SPDX-License-Identifier: Apache-2.0
"""Counts of the consumers of a request that fit (contract page 98, section 5).

Counting is placing until nothing fits. Where each tree gives a number by itself it is worked out at
once: with one provider for each slot nothing is chosen, and with one slot each provider gives what
it has. Elsewhere consumers are placed, in trees that are alike only once; in the usual order, where
a candidate stays the first one as long as it fits, as often as it fits.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.consumed import times_together
from treeclaim.forest.order.mixes.request_counts import relate_request
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.filling import fill_trees
from treeclaim.forest.placing.queries import query_of
from treeclaim.forest.placing.rules import Domains
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.placing.tree_counts import (
    TreeCounts,
    at_most,
    at_most_by_tree,
    counts_at_once,
    remembered,
)
from treeclaim.forest.solve.tree_kinds import kinds_of_trees
from treeclaim.forest.table.columns import Integers, Mask, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import free_holds
from treeclaim.forest.table.sums import GREATEST, shown, sum_of
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """The limits of a count of capacity.

    Attributes:
        domains: Aggregates, or none for every tree; None where no parts are asked.
        limit: Most parts shown.
        end: When counting ends, of the monotonic clock; None for never.
    """

    domains: tuple[str, ...] | None
    limit: int
    end: float | None = None

    def share(self, requests: int) -> "CapacityLimits":
        """Return the same for the first of some requests, with its share of the time."""
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
    counter = _Counter(*free_holds(forest, request, budget), limits, budget)
    with counter.until_the_end():
        counter.count()
    document: dict[str, Any] = {
        "fits": shown(counter.fits),
        "at_most": None if counter.at_most is None else shown(max(counter.at_most, counter.fits)),
        "when_empty": shown(counter.when_empty),
    }
    if limits.domains is not None:
        document["domains"] = counter.parts()
    return document | {"complete": counter.is_complete}


class CapacityCount(NamedTuple):
    """The number of consumers of a request that fit now.

    Attributes:
        fits: How many `placements` would place.
        at_most: How many any order could place.
        is_complete: Whether there was time to count all.
    """

    fits: int
    at_most: int
    is_complete: bool


def count_now(
    forest: Forest, request: CandidateRequest, budget: Budget, end: float | None = None
) -> CapacityCount:
    """Count how many consumers of a request fit now, and nothing else.

    Args:
        forest: Where.
        request: What each of them asks for.
        budget: What it may cost.
        end: When counting ends with what was counted by then, of the monotonic clock; None for never.

    Raises:
        SearchGivenUpError: if there is not the time for it, and it has no end of its own.
    """
    limits = CapacityLimits(None, 0, end)
    counter = _Counter(*free_holds(forest, request, budget), limits, budget, with_empty=False)
    with counter.until_the_end():
        counter.count()
    most = GREATEST if counter.at_most is None else counter.at_most
    return CapacityCount(counter.fits, max(counter.fits, most), counter.is_complete)


class _Counter:
    """Counts for one request.

    Attributes:
        fits: How many fit, as far as they were counted.
        at_most: How many any order could place; None while that is not proven.
        when_empty: How many would fit if nothing were allocated, as far as they were counted; `fits` if that is
            not asked for.
        is_complete: Whether there was time to count all.
    """

    def __init__(
        self,
        forest: Forest,
        request: CandidateRequest,
        limits: CapacityLimits,
        budget: Budget,
        *,
        with_empty: bool = True,
    ) -> None:
        self.fits = self.when_empty = 0
        self.at_most: int | None = None
        self.is_complete = True
        self._forest = forest
        self._request = request
        self._limits = limits
        self._budget = budget
        self._by_tree: TreeCounts | None = None
        self._with_empty = with_empty

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Let the block run until counting ends, and say then that it is not complete."""
        try:
            with self._budget.ending(self._limits.end), self._budget.scope():
                yield
        except SearchGivenUpError:
            if self._limits.end is None:
                raise
            self.is_complete = False

    def count(self) -> None:
        """Count now, and as if nothing were allocated."""
        self._budget.check()
        if self._with_empty:
            unlimited = replace(self._request, limit=None)
            counts = remembered(self._forest, unlimited, self._count)
        else:
            counts = self._count(np.arange(len(self._forest.order.roots)))
        self._by_tree = counts
        if counts is not None:
            self.fits, self.at_most, self.when_empty = map(sum_of, counts.numbers)
            return
        self.at_most = at_most(self._forest, self._request, self._budget)
        self.fits = self.when_empty = self._placed_everywhere(Scratch(self._forest))
        if self.is_complete and self._with_empty:
            self.when_empty = self._placed_everywhere(Scratch(self._forest.emptied()))

    def _placed_everywhere(self, scratch: Scratch) -> int:
        """Place consumers until nothing fits in any tree; return how many."""
        return self._place_until_full(
            scratch, np.ones(len(self._forest.order.roots), dtype=np.bool_), None
        )

    def _count(self, trees: Trees) -> TreeCounts | None:
        """Count in each of some trees; return None where trees concern each other."""
        now = self._in_each(self._forest, trees)
        if now is None:
            return None
        fits = when_empty = now[0][trees]
        if self.is_complete and self._with_empty:
            empty = self._in_each(self._forest.emptied(), trees)
            if empty is None:
                return None
            when_empty = empty[0][trees]
        numbers = np.stack([fits, now[1][trees], when_empty])
        return TreeCounts(numbers, self.is_complete)

    def _in_each(self, forest: Forest, trees: Trees) -> tuple[Integers, Integers] | None:
        """Return how many fit into each of some trees, and an upper bound of that, by root.

        Returns:
            None where trees concern each other, as they share providers or a mix.
        """
        order = self._request.order
        if order is not None and order.mixes:
            # What a mix has room for elsewhere decides which candidate of a tree comes first.
            return None
        counted = counts_at_once(forest, self._request, trees, self._budget)
        if counted is None:
            return None
        counts, remaining_trees = counted
        if not len(remaining_trees):
            return counts, counts
        bounds = at_most_by_tree(forest, self._request, self._budget)
        scratch = Scratch(forest)
        counts[remaining_trees] = 0
        with self.until_the_end():
            if order is not None:
                self._place_in_each(scratch, remaining_trees, counts)
            else:
                for filled_trees, times in fill_trees(
                    scratch, self._request, remaining_trees, self._budget
                ):
                    counts[filled_trees] = np.minimum(counts[filled_trees] + times, GREATEST)
        at_most_each = counts.copy()
        at_most_each[remaining_trees] = np.maximum(
            bounds[remaining_trees], counts[remaining_trees]
        )
        return counts, at_most_each

    def _place_in_each(self, scratch: Scratch, trees: Trees, counts: Integers) -> None:
        """Place consumers in some trees until they are full; in trees that are alike only once."""
        problem = relate_request(scratch.forest, self._request, self._budget)
        query = query_of(scratch, self._request, self._budget)
        _, first, kinds = np.unique(
            kinds_of_trees([problem], trees), return_index=True, return_inverse=True
        )
        for kind, tree in enumerate(trees[first].tolist()):
            self._budget.check()
            only = np.zeros(len(counts), dtype=np.bool_)
            only[tree] = True
            self._fill(query, only, None, counts, tree)
            counts[trees[kinds == kind]] = counts[tree]

    def _place_until_full(
        self, scratch: Scratch, allowed: Mask, keeps: Callable[[Sequence[int]], bool] | None
    ) -> int:
        """Place consumers until nothing fits."""
        count = np.zeros(1, dtype=np.int64)
        query = query_of(scratch, self._request, self._budget)
        with self.until_the_end():
            self._fill(query, allowed, keeps, count, 0)
        return int(count[0])

    def _fill(
        self,
        query: Any,
        allowed: Mask,
        keeps: Callable[[Sequence[int]], bool] | None,
        counts: Integers,
        at: int,
    ) -> None:
        while True:
            with self._budget.scope():
                candidate = query.first(allowed, keeps or (lambda _: True))
            if candidate is None:
                return
            self._budget.check()
            scratch = query.scratch
            is_single = self._request.order is not None or scratch.heads_begun_by(
                candidate.allocations
            )
            times = 1 if is_single else self._times(scratch, candidate)
            scratch.take(
                [(position, name, times * n) for position, name, n in candidate.allocations]
            )
            scratch.begin_conditions(candidate.allocations)
            counts[at] = shown(int(counts[at]) + times)
            if counts[at] == GREATEST:
                return

    def _times(self, scratch: Scratch, candidate: Candidate) -> int:
        """Return how often a candidate fits before another one comes first."""
        if self._request.can_split:
            # What is left changes how the next one is divided.
            return 1
        return times_together(scratch.forest, candidate.allocations)

    def parts(self) -> list[dict[str, Any]]:
        """Return how many fit in each domain by itself, those with most first."""
        names = self._limits.domains or ()
        domains = Domains(self._forest, names or None, self._budget)
        counts = np.zeros(domains.count, dtype=np.int64)
        with self.until_the_end():
            counts = self._of_domains(domains)
        # What was counted is reported, although the time for counting is over.
        shown_domains = np.flatnonzero(counts > 0)
        if len(shown_domains) > self._limits.limit:
            # All that are equal to the last one shown are compared by their UUIDs.
            least = np.partition(counts[shown_domains], -self._limits.limit)[-self._limits.limit]
            shown_domains = shown_domains[counts[shown_domains] >= least]
        parts = [
            self._part(names, domain, int(counts[domain])) for domain in shown_domains.tolist()
        ]
        parts.sort(key=lambda part: (-part["fits"], part["uuid"]))
        return parts[: self._limits.limit]

    def _of_domains(self, domains: Domains) -> Integers:
        if self._by_tree is not None:
            return domains.sums(self._by_tree.numbers[0])
        counts = np.zeros(domains.count, dtype=np.int64)
        for domain in range(domains.count):
            self._budget.check()
            counts[domain] = self._place_until_full(
                Scratch(self._forest),
                domains.with_any(np.arange(domains.count) == domain),
                lambda trees, domain=domain: domain in domains.containing(trees),  # type: ignore[misc]
            )
        return counts

    def _part(self, names: Sequence[str], domain: int, count: int) -> dict[str, Any]:
        self._budget.check()
        if names:
            return {"uuid": names[domain], "name": None, "fits": shown(count)}
        order = self._forest.order
        provider = self._forest.provider(int(order.roots[domain]))
        return {"uuid": provider.uuid, "name": provider.name, "fits": shown(count)}
