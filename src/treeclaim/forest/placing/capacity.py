# SPDX-License-Identifier: Apache-2.0
"""How many consumers of a request fit (contract page 98, section 5).

Counting is placing until nothing fits. Where each tree gives a number by itself it is worked out at
once: with one provider for each slot nothing is chosen, and with one slot each provider gives what
it has. Elsewhere consumers are placed, in trees that are alike only once; in the usual order, where
a candidate stays the first one as long as it fits, as often as it fits.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.alike import alone, likenesses
from treeclaim.forest.placing.bound import at_most
from treeclaim.forest.placing.candidate import Candidate
from treeclaim.forest.placing.closed import counts_at_once
from treeclaim.forest.placing.domains import AggregateDomains, Domains, TreeDomains
from treeclaim.forest.placing.queries import Independent, query_of
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.solve.relate import relate
from treeclaim.forest.table.columns import Integers, Mask, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest, SearchOptions

GREATEST = 2**53 - 1
"""No number shown is greater (page 98, section 1)."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """What is asked of each request.

    Attributes:
        domains: Aggregates, or none for every tree; None where no parts are asked.
        limit: Most parts shown.
        end: When counting ends, of the monotonic clock; None for never.
    """

    domains: tuple[str, ...] | None
    limit: int
    end: float | None = None


class TimeUpError(Exception):
    """Counting takes too long: what was counted is told."""


def fitting(
    forest: Forest, request: CandidateRequest, asked: Fitting, budget: Budget
) -> dict[str, Any]:
    """Count how many consumers of a request fit, now and if nothing were allocated."""
    counter = _Counter(forest, request, asked, budget)
    full = counter.total(Scratch(forest))
    most = full
    if not counter.was_at_once:
        most = max(full, at_most(Scratch(forest), request, budget))
    empty = counter.total(Scratch.emptied(forest))
    document: dict[str, Any] = {
        "fits": shown(full),
        "at_most": shown(most),
        "when_empty": shown(empty),
        "complete": counter.is_complete,
    }
    if asked.domains is not None:
        document["domains"] = counter.parts()
        document["complete"] = counter.is_complete
    return document


def shown(count: int) -> int:
    """Return a number as it may be shown."""
    return min(count, GREATEST)


class _Counter:
    """Counts for one request."""

    def __init__(
        self, forest: Forest, request: CandidateRequest, asked: Fitting, budget: Budget
    ) -> None:
        self.is_complete = True
        self.was_at_once = False
        self._forest = forest
        self._request = request
        self._asked = asked
        self._budget = budget

    def total(self, scratch: Scratch) -> int:
        """Return how many fit in all."""
        counts = self._by_tree(scratch)
        if counts is not None:
            return sum(counts.tolist())
        return self._placed(scratch, np.ones(len(self._forest.order.roots), dtype=np.bool_), None)

    def _by_tree(self, scratch: Scratch) -> Integers | None:
        """Return how many fit in each tree; None where trees share something."""
        found = counts_at_once(scratch, self._request, self._budget)
        self.was_at_once = found is not None and not len(found[1])
        if found is None:
            return None
        counts, rest = found
        if len(rest):
            self._place_in_each(scratch, rest, counts)
        return counts

    def _place_in_each(self, scratch: Scratch, trees: Trees, counts: Integers) -> None:
        """Place consumers in some trees until they are full; in trees that are alike only once."""
        request = replace(self._request, limit=None)
        problem = relate(scratch.forest, request, SearchOptions(), self._budget)
        counts[trees] = 0
        known: dict[bytes, int] = {}
        for tree, likeness in zip(trees.tolist(), likenesses(problem, trees), strict=True):
            self._budget.check()
            if likeness not in known:
                self._budget.hold(len(likeness))
                only = Scratch(alone(scratch.forest, tree))
                known[likeness] = self._placed(only, np.ones(1, dtype=np.bool_), None)
                if not self.is_complete:
                    return
            counts[tree] = known[likeness]

    def _placed(
        self, scratch: Scratch, allowed: Mask, keeps: Callable[[Sequence[int]], bool] | None
    ) -> int:
        """Place consumers until nothing fits."""
        count = np.zeros(1, dtype=np.int64)
        query = query_of(scratch, self._request, self._budget)
        try:
            self._fill(query, allowed, keeps, count, 0)
        except TimeUpError:
            self.is_complete = False
        return int(count[0])

    def _fill(
        self,
        query: Any,
        allowed: Mask,
        keeps: Callable[[Sequence[int]], bool] | None,
        counts: Integers,
        at: int,
    ) -> None:
        while (found := query.first(allowed, keeps or (lambda _: True))) is not None:
            if self._asked.end is not None and time.monotonic() > self._asked.end:
                raise TimeUpError
            times = 1 if self._request.order is not None else self._times(query.scratch, found)
            query.scratch.take([(place, name, times * n) for place, name, n in found.gifts])
            if isinstance(query, Independent):
                query.note(found.trees)
            counts[at] += times

    def _times(self, scratch: Scratch, candidate: Candidate) -> int:
        """Return how often a candidate fits before another one comes first."""
        taken: dict[tuple[int, str], int] = {}
        for place, name, amount in candidate.gifts:
            taken[place, name] = taken.get((place, name), 0) + amount
        if self._request.can_split:
            # What is left changes how the next one is divided.
            return 1
        times = []
        for (place, name), amount in taken.items():
            columns = scratch.forest.class_inventories(name)
            slot = columns.index_of(int(scratch.forest.order.row[place]))
            times.append(int(columns.free.values[slot]) // amount)
        return min(times)

    def parts(self) -> list[dict[str, Any]]:
        """Return how many fit in each domain alone, those with most first."""
        names = self._asked.domains or ()
        domains: Domains = (
            AggregateDomains(self._forest, names) if names else TreeDomains(self._forest)
        )
        counts = self._of_domains(domains)
        order = np.argsort(-counts, kind="stable")[: self._asked.limit]
        return [
            self._part(names, domain, int(counts[domain]))
            for domain in order.tolist()
            if counts[domain] > 0
        ]

    def _of_domains(self, domains: Domains) -> Integers:
        by_tree = self._by_tree(Scratch(self._forest))
        if by_tree is not None:
            return by_tree if isinstance(domains, TreeDomains) else _summed(domains, by_tree)
        counts = np.zeros(domains.count, dtype=np.int64)
        for domain in range(domains.count):
            self._budget.check()
            members = np.array([domain in kind for kind in domains.kinds], dtype=np.bool_)
            counts[domain] = self._placed(
                Scratch(self._forest),
                members[domains.kind],
                lambda trees, domain=domain: domain in domains.of(trees),  # type: ignore[misc]
            )
        return counts

    def _part(self, names: Sequence[str], domain: int, count: int) -> dict[str, Any]:
        if names:
            return {"uuid": names[domain], "fits": shown(count)}
        order = self._forest.order
        provider = self._forest.provider(int(order.row[order.roots[domain]]))
        return {"uuid": provider.uuid, "name": provider.name, "fits": shown(count)}


def _summed(domains: Domains, by_tree: Integers) -> Integers:
    """Return the sum of the trees in each domain."""
    counts = np.zeros(domains.count, dtype=np.int64)
    of_kinds = np.zeros(len(domains.kinds), dtype=np.int64)
    np.add.at(of_kinds, domains.kind, by_tree)
    for kind, count in zip(domains.kinds, of_kinds.tolist(), strict=True):
        counts[list(kind)] += count
    return counts
