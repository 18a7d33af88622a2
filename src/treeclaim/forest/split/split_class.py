# SPDX-License-Identifier: Apache-2.0
"""A class whose amount may be divided: what each provider can give, and the divisions (contract page 97, 2.2)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import lcm
from typing import NamedTuple

import numpy as np

from treeclaim.forest.domains.relation import Relation, all_inventories
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.division import Offer, Offers, even, is_viable, pack
from treeclaim.forest.split.minimal_sets import minimal_sets
from treeclaim.forest.table.columns import search_ascending
from treeclaim.model.request import NO_GROUP, STRICT, SplitPolicy

Worth = Callable[[str, Offer], int]
"""Returns what an offer of a class is worth."""

Division = tuple[tuple[int, int], ...]
"""Row and units of each part."""


class _Giver(NamedTuple):
    """A provider and the limits of its inventory.

    Attributes:
        position: The row of the provider.
        free: Units.
        min_unit, max_unit, step_size: Those of the inventory.
    """

    position: int
    free: int
    min_unit: int
    max_unit: int
    step_size: int


class SplitClass:
    """A class to split: how much each provider may give under an anchor.

    Attributes:
        name: Of the class.
        amount: What is to be divided.
        is_any_amount: Whether the units of inventories are ignored, to explain a search.
    """

    def __init__(self, problem: Problem, name: str, relation: Relation) -> None:
        plan = problem.plan
        self.name = name
        self.amount = plan.split[name]
        (group,) = [group for group in plan.request.groups if group.suffix == NO_GROUP]
        self.is_any_amount = group.leniency.get(name, STRICT).any_amount
        self._divide = even if plan.request.split_policy == SplitPolicy.EVEN else pack
        self._forest = problem.forest
        self._budget = problem.budget
        self._relation = relation
        self._columns = problem.forest.class_inventories(name)
        self._givers_of: tuple[int, list[_Giver]] = (-1, [])
        self._steps: dict[int, int] = {}

    def divisions(
        self, anchor: int, taken: Mapping[int, int], worth: Worth | None = None
    ) -> Iterator[Division]:
        """Yield position and units of each part, one division for each minimal viable set.

        Args:
            anchor: Number of the anchor.
            taken: What other groups take, by row.
            worth: Returns what an offer is worth: sets of those that are worth most come first.
        """
        step = self._step(anchor)
        givers = self._givers(anchor)
        if self.amount % step:
            for giver in givers:
                if self._gives_all(giver, taken):
                    yield ((giver.position, self.amount),)
            return
        offers = self._offers(givers, taken, step)
        rank = {offer: number for number, offer in enumerate(offers)}
        if worth is not None:
            value = {offer: worth(self.name, offer) for offer in offers}
            offers = tuple(sorted(offers, key=lambda offer: -value[offer]))
        for members in minimal_sets(offers, self.amount, self._budget):
            yield self._divide_class(sorted(members, key=rank.__getitem__), step)

    def count_sets(self, anchor: int, taken: Mapping[int, int], most: int) -> int:
        """Return the number of minimal viable sets, or a number above `most` if there are more."""
        step = self._step(anchor)
        if self.amount % step:
            return sum(self._gives_all(giver, taken) for giver in self._givers(anchor))
        offers = self._offers(self._givers(anchor), taken, step)
        sets = minimal_sets(offers, self.amount, self._budget)
        return sum(1 for _ in islice(sets, most + 1))

    def _divide_class(self, offers: Sequence[Offer], step: int) -> Division:
        parts = self._divide(offers, self.amount, step)
        return tuple((offer.position, part) for offer, part in zip(offers, parts, strict=True))

    def division_at(
        self, other: int, anchor: int, division: Division, taken: Mapping[int, int]
    ) -> Division | None:
        """Return the division of the same providers under another anchor; None if they have none there.

        Args:
            other: Number of the other anchor, which all the providers may serve.
            anchor: Number of the anchor under which they were divided.
            division: Their division there.
            taken: What other groups take, by row.
        """
        if len(division) == 1:
            return division
        step = self._step(other)
        positions = {position for position, _ in division}
        givers = [giver for giver in self._givers(anchor) if giver.position in positions]
        givers.sort(key=lambda giver: self._rank(giver.position, other))
        offers = self._offers(givers, taken, step)
        most = sum(offer.most for offer in offers)
        is_minimal = (
            not self.amount % step
            and len(offers) == len(division)
            and is_viable(offers, self.amount)
            and most - self.amount < min(offer.most for offer in offers)
        )
        return self._divide_class(offers, step) if is_minimal else None

    def _rank(self, position: int, anchor: int) -> tuple[bool, int | str]:
        """Return what providers are ordered by: the tree in pre-order, then sharing ones by UUID."""
        order = self._forest.order
        if order.tree[position] == anchor:
            return False, position
        return True, self._forest.uuid_of(position)

    def _offers(
        self, givers: Sequence[_Giver], used_units: Mapping[int, int], step: int
    ) -> Offers:
        """Return what some providers can give besides the amounts of other groups."""
        offers = (
            Offer.of(giver.position, self._bounds(giver, used_units), step) for giver in givers
        )
        return tuple(offer for offer in offers if offer is not None)

    def _bounds(self, giver: _Giver, used_units: Mapping[int, int]) -> tuple[int, int]:
        free = min(giver.free - used_units.get(giver.position, 0), self.amount)
        return (1, free) if self.is_any_amount else (giver.min_unit, min(free, giver.max_unit))

    def _gives_all(self, giver: _Giver, used_units: Mapping[int, int]) -> bool:
        least, most = self._bounds(giver, used_units)
        return least <= self.amount <= most and not self.amount % giver.step_size

    def may_give(self, position: int, units: int) -> bool:
        """Return whether a provider's `max_unit` permits what all groups take there."""
        index = self._columns.index_of(position)
        return self.is_any_amount or units <= int(self._columns.max_unit.values[index])

    def _step(self, anchor: int) -> int:
        """Return the least common multiple of the steps of all inventories that an anchor reaches."""
        if self.is_any_amount:
            return 1
        if anchor not in self._steps:
            pairs = all_inventories(self._forest, self.name, self._budget)
            of_anchor = slice(int(pairs.starts[anchor]), int(pairs.starts[anchor + 1]))
            rows = pairs.provider[of_anchor]
            indices = search_ascending(self._columns.row.values, rows)
            steps = np.unique(self._columns.step_size.values[indices]).tolist()
            self._steps[anchor] = lcm(*steps)
        return self._steps[anchor]

    def _givers(self, anchor: int) -> list[_Giver]:
        """Return the providers that may give something, in the order of a vector of parts."""
        if self._givers_of[0] != anchor:
            columns = self._columns
            positions = self._relation.providers_of(anchor).tolist()
            positions.sort(key=lambda position: self._rank(position, anchor))
            indices = search_ascending(columns.row.values, positions)
            limits = (columns.free, columns.min_unit, columns.max_unit, columns.step_size)
            numbers = [column.values[indices].tolist() for column in limits]
            self._givers_of = (
                anchor,
                [_Giver(*row) for row in zip(positions, *numbers, strict=True)],
            )
        return self._givers_of[1]
