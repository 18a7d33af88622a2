# SPDX-License-Identifier: Apache-2.0
"""How far a call comes at most where all of it has to be in one domain: counted, without a search.

Only amounts are looked at: what is free of each class in the trees of a domain, and how many slots its
providers have room for. A domain in which a call comes no further than it came in another one already
need not be tried.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.totals import Floats, class_positions, totals_of
from treeclaim.forest.placing.domains import Domains
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Placing
from treeclaim.model.request import NO_GROUP, CandidateRequest

_EXACT = 2.0**52
"""Sums of amounts that are not below are rounded, so that they bound nothing."""


@dataclass(frozen=True, slots=True)
class _Demand:
    """What a consumer takes of a class.

    Attributes:
        units: In all.
        slots: In how many parts at least.
        least: The smallest of them.
    """

    units: int
    slots: int
    least: int


class Reach:
    """Bounds how many consumers of a call can be placed in single domains."""

    def __init__(self, forest: Forest, domains: Domains, sharing: Mask, budget: Budget) -> None:
        """Take where to look.

        Args:
            forest: What is free.
            domains: Those of the rule that wants all in one.
            sharing: Who is lent to other trees, by position.
            budget: What the call may cost.
        """
        self._forest = forest
        self._domains = domains
        self._sharing = sharing
        self._budget = budget
        self._free: dict[tuple[str, int], Floats | None] = {}

    def most(self, placing: Placing, concerned: Collection[int], held: Collection[str]) -> Rows:
        """Return for each domain how many consumers are looked at, at most, before one finds nothing.

        Args:
            placing: The call.
            concerned: Numbers of the requests that the rule is for.
            held: Consumers that hold something already, and find it.
        """
        # The place of each new consumer in the call; the end follows the last one.
        places: list[int] = []
        places_reached = np.zeros(self._domains.count, dtype=np.int64)
        goes_on = np.ones(self._domains.count, dtype=np.bool_)
        seen = 0
        for number, request in enumerate(placing.requests):
            new = [at for at, name in enumerate(request.consumers, seen) if name not in held]
            seen += len(request.consumers)
            places += new
            fit = np.full(self._domains.count, float(len(new)))
            if number in concerned:
                np.minimum(fit, self._fitting(request.alternatives), out=fit)
            places_reached[goes_on] += fit[goes_on].astype(np.int64)
            goes_on &= fit >= len(new)
        return np.array([*places, seen], dtype=np.int64)[places_reached]

    def _fitting(self, alternatives: Sequence[CandidateRequest]) -> Floats:
        """Return how many consumers of a request fit into each domain, if there were no others."""
        most: Floats = np.zeros(self._domains.count)
        for request in alternatives:
            fit = np.full(self._domains.count, np.inf)
            for name, demand in _demands(request).items():
                self._budget.check()
                for least, wanted in ((1, demand.units), (demand.least, demand.slots)):
                    free = self._free_for(name, least)
                    if free is not None:
                        np.minimum(fit, free // wanted, out=fit)
            np.maximum(most, fit, out=most)
        return most

    def _free_for(self, name: str, least: int) -> Floats | None:
        """Return how many parts of a size are free of a class in each domain; None for no bound."""
        key = name, least
        if key not in self._free:
            self._free[key] = self._counted(name, least)
        return self._free[key]

    def _counted(self, name: str, least: int) -> Floats | None:
        _, positions, trees = class_positions(self._forest, name)
        if self._sharing[positions].any():
            # What is lent may come from anywhere.
            return None
        totals = totals_of(self._forest, name)
        free = np.maximum(totals.some_capacity - totals.some_used, 0) // least
        kinds = self._domains.kind[trees]
        by_kind: Floats = np.zeros(len(self._domains.kinds))
        by_kind += np.bincount(kinds, free, minlength=len(by_kind))
        sums = self._domains.summed(by_kind)
        return sums if sums.max(initial=0) < _EXACT else None


def _demands(request: CandidateRequest) -> dict[str, _Demand]:
    """Return what a consumer takes of each class."""
    parts: dict[str, list[int]] = {}
    is_split: set[str] = set()
    for group in request.groups:
        for name, amount in group.resources.items():
            parts.setdefault(name, []).append(amount)
            if group.suffix == NO_GROUP and name in request.can_split:
                is_split.add(name)
    return {
        name: _Demand(sum(amounts), len(amounts), 1 if name in is_split else min(amounts))
        for name, amounts in parts.items()
    }
