# SPDX-License-Identifier: Apache-2.0
"""A class with a divisible amount: offers of providers, and divisions (contract page 97, section 2.2).

An offer is the set of amounts that one provider can give: multiples of a step in a range. All offers
of a division have the same step, so a set of offers can give each multiple of the step between two
sums. Each division is over a minimal viable set of offers: no proper subset can give the amount.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import lcm
from typing import NamedTuple

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.relation import Relation, pair_all_inventories
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import search_ascending
from treeclaim.model.request import NO_GROUP, STRICT, SplitPolicy


@dataclass(frozen=True, slots=True)
class Offer:
    """The row of a provider, and the multiples of the step that it offers, `0 < least <= most`."""

    row: int
    least: int
    most: int

    @classmethod
    def of(cls, row: int, bounds: tuple[int, int], step: int) -> "Offer | None":
        """Return the offer of the multiples of a step within bounds, None if there are none."""
        least, most = -(-max(bounds[0], 1) // step) * step, bounds[1] // step * step
        return cls(row, least, most) if least <= most else None


Offers = tuple[Offer, ...]


def is_viable(offers: Sequence[Offer], amount: int) -> bool:
    """Return whether a multiple of the step is the sum of a part of each offer."""
    return sum(offer.least for offer in offers) <= amount <= sum(offer.most for offer in offers)


def pack(offers: Sequence[Offer], amount: int, step: int) -> tuple[int, ...]:
    """Divide an amount over a viable set into the lexicographically greatest parts."""
    del step
    parts = []
    least_remaining = sum(offer.least for offer in offers)
    for offer in offers:
        least_remaining -= offer.least
        parts.append(min(offer.most, amount - least_remaining))
        amount -= parts[-1]
    return tuple(parts)


def even(offers: Sequence[Offer], amount: int, step: int) -> tuple[int, ...]:
    """Divide an amount over a viable set: the smallest part that can grow grows, step by step.

    Each part begins with the least of its offer. Parts that can grow reach a common level; the
    remaining steps go one each to the first parts at that level.
    """

    def parts_at(level: int) -> list[int]:
        return [min(offer.most, max(offer.least, level)) for offer in offers]

    low, high = 0, max(offer.most for offer in offers) // step
    while low < high:
        middle = (low + high + 1) // 2
        if sum(parts_at(middle * step)) <= amount:
            low = middle
        else:
            high = middle - 1
    parts = parts_at(low * step)
    remaining_steps = (amount - sum(parts)) // step
    for number, offer in enumerate(offers):
        if remaining_steps and parts[number] == low * step < offer.most:
            parts[number] += step
            remaining_steps -= 1
    return tuple(parts)


_CANDIDATE_BYTES = 400
_PART_BYTES = 200
"""Memory that is counted for a candidate, and for each part of its divisions."""


@dataclass(frozen=True, slots=True)
class SplitCandidate:
    """A candidate with divisions: rows by slot, and class, row and units of each part."""

    chosen_rows: tuple[int, ...]
    parts: tuple[tuple[str, int, int], ...]

    @property
    def rows(self) -> list[int]:
        """Return the rows of all its providers."""
        return [*self.chosen_rows, *(row for _, row, _ in self.parts)]

    @property
    def key(self) -> Hashable:
        """Return the key for detecting repetitions: the order of parts depends on the anchor."""
        return self.chosen_rows, frozenset(self.parts)

    @property
    def nbytes(self) -> int:
        """Return the memory that is counted for the candidate."""
        return _CANDIDATE_BYTES + _PART_BYTES * len(self.parts)


def minimal_sets(
    offers: Sequence[Offer], amount: int, budget: Budget = UNBOUNDED
) -> Iterator[Offers]:
    """Yield the minimal viable sets lazily, small ones first, each in the order of the offers.

    All offers have the same step, of which the amount is a multiple.
    """
    if sum(offer.most for offer in offers) < amount:
        return
    for size in range(1, len(offers) + 1):
        finder = _Finder(offers, amount, size, budget)
        yield from finder.sets((), 0)
        if not finder.may_grow:
            return


class _Finder:
    """Finds the minimal sets of one size.

    Attributes:
        may_grow: Whether a rejected set could become viable with more members.
    """

    def __init__(self, offers: Sequence[Offer], amount: int, size: int, budget: Budget) -> None:
        self.may_grow = False
        self._offers = offers
        self._amount = amount
        self._size = size
        self._budget = budget
        places = range(len(offers) + 1)
        self._greatest = [sorted((o.most for o in offers[at:]), reverse=True) for at in places]
        self._smallest = [sorted(o.least for o in offers[at:]) for at in places]

    def sets(self, chosen_offers: Offers, start: int) -> Iterator[Offers]:
        """Yield the sets that begin with the chosen offers and continue from an index."""
        missing = self._size - len(chosen_offers) - 1
        for at in range(start, len(self._offers) - missing):
            self._budget.check()
            members = (*chosen_offers, self._offers[at])
            most = sum(offer.most for offer in members)
            least = sum(offer.least for offer in members)
            if most + sum(self._greatest[at + 1][:missing]) < self._amount:
                self.may_grow = True
            elif least + sum(self._smallest[at + 1][:missing]) > self._amount:
                continue
            elif missing:
                # A set that covers the amount is complete.
                if most < self._amount:
                    yield from self.sets(members, at + 1)
            elif self._is_minimal(members, most):
                yield members
            elif most < self._amount:
                self.may_grow = True

    def _is_minimal(self, members: Offers, most: int) -> bool:
        spare = most - self._amount
        return is_viable(members, self._amount) and spare < min(offer.most for offer in members)


Division = tuple[tuple[int, int], ...]
"""Row and units of each part."""

_ANCHORS_KEPT = 64
"""Anchors whose providers are cached, as each anchor has many combinations."""


class _Giver(NamedTuple):
    """The row of a provider, its free units, and the limits of its inventory."""

    row: int
    free_units: int
    min_unit: int
    max_unit: int
    step_size: int


class SplitClass:
    """A class to split: the offers of providers under an anchor, and their divisions.

    `is_any_amount` ignores the units of inventories, to explain a search.
    """

    def __init__(self, problem: Problem, name: str, relation: Relation) -> None:
        plan = problem.plan
        self.name = name
        self.amount = plan.split[name]
        (group,) = [group for group in plan.request.groups if group.suffix == NO_GROUP]
        self.is_any_amount = group.leniency.get(name, STRICT).ignore_units
        self._divide = even if plan.request.split_policy == SplitPolicy.EVEN else pack
        self._forest = problem.forest
        self._budget = problem.budget
        self._relation = relation
        self._columns = problem.forest.class_inventories(name)
        self._givers = lru_cache(_ANCHORS_KEPT)(self._givers_at)
        self._step = lru_cache(_ANCHORS_KEPT)(self._step_at)

    def divisions(self, anchor: int, used_units: Mapping[int, int]) -> Iterator[Division]:
        """Yield the row and units of each part of a division, one division for each set; see `sets`."""
        for offers in self.sets(anchor, used_units):
            parts = self._divide(offers, self.amount, self._step(anchor))
            yield tuple((offer.row, part) for offer, part in zip(offers, parts, strict=True))

    def sets(self, anchor: int, used_units: Mapping[int, int]) -> Iterator[Offers]:
        """Yield the minimal viable sets of an anchor, each in the order of a vector of parts.

        `used_units` holds the units of the class that other groups use, by row.
        """
        step, givers = self._step(anchor), self._givers(anchor)
        if self.amount % step:
            for giver in givers:
                if self._gives_all(giver, used_units):
                    yield (Offer(giver.row, self.amount, self.amount),)
            return
        offers = self._offers(givers, used_units, step)
        yield from minimal_sets(offers, self.amount, self._budget)

    def _rank(self, row: int, anchor: int) -> tuple[bool, int | str]:
        """Return the sort key of providers: the tree in pre-order, then sharing ones by UUID."""
        order = self._forest.order
        if order.tree[row] == anchor:
            return False, row
        return True, self._forest.uuid_of(row)

    def _offers(
        self, givers: Sequence[_Giver], used_units: Mapping[int, int], step: int
    ) -> Offers:
        offers = (Offer.of(giver.row, self._bounds(giver, used_units), step) for giver in givers)
        return tuple(offer for offer in offers if offer is not None)

    def _bounds(self, giver: _Giver, used_units: Mapping[int, int]) -> tuple[int, int]:
        free_units = min(giver.free_units - used_units.get(giver.row, 0), self.amount)
        return (
            (1, free_units)
            if self.is_any_amount
            else (giver.min_unit, min(free_units, giver.max_unit))
        )

    def _gives_all(self, giver: _Giver, used_units: Mapping[int, int]) -> bool:
        least, most = self._bounds(giver, used_units)
        return least <= self.amount <= most and not self.amount % giver.step_size

    def admits_units(self, row: int, units: int) -> bool:
        """Return whether a provider's `max_unit` admits the units of all groups together."""
        index = self._columns.index_of(row)
        return self.is_any_amount or units <= int(self._columns.max_unit.values[index])

    def _step_at(self, anchor: int) -> int:
        if self.is_any_amount:
            return 1
        pairs = pair_all_inventories(self._forest, self.name, self._budget)
        of_anchor = slice(pairs.starts[anchor], pairs.starts[anchor + 1])
        indices = search_ascending(self._columns.row.values, pairs.provider[of_anchor])
        return lcm(*np.unique(self._columns.step_size.values[indices]).tolist())

    def _givers_at(self, anchor: int) -> list[_Giver]:
        columns = self._columns
        rows = self._relation.providers_of(anchor).tolist()
        rows.sort(key=lambda row: self._rank(row, anchor))
        indices = search_ascending(columns.row.values, rows)
        limits = (columns.free, columns.min_unit, columns.max_unit, columns.step_size)
        numbers = [column.values[indices].tolist() for column in limits]
        return [_Giver(*row) for row in zip(rows, *numbers, strict=True)]
