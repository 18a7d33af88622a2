# SPDX-License-Identifier: Apache-2.0
"""Slots that compete for providers, what these are worth to them, and the prices that prove it.

Two kinds of rivals are known: suffixed groups that are isolated, and slots that want the same. Of the
latter a provider takes as many as it has room for; for `spread_providers` each is worth less than the one
before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.competing.assignment import Matrix, Potentials, potentials
from treeclaim.forest.order.terms.pack import PackProvidersOfSlot
from treeclaim.forest.order.terms.term import Sum, Units, ValueOfSlot, units
from treeclaim.forest.order.totals import ClassTotals
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Positions, search_ascending


@dataclass(frozen=True, slots=True)
class RivalSlots:
    """Slots that compete.

    Attributes:
        slots: The slots.
        most: How many of them a provider may serve at most, whatever room it has.
        least: The smallest amount that any of them wants of each class, where what they take of
            one provider adds up; else empty.
        are_alike: Whether all want the same amounts.
    """

    slots: tuple[int, ...]
    most: int
    least: Mapping[str, int]
    are_alike: bool


@dataclass(frozen=True, slots=True)
class RivalMarket:
    """What providers are worth to some rivals under an anchor, and the potentials of that.

    Attributes:
        providers: Positions, ascending.
        worth: What serving the first, the second, ... of them is worth, shape (rivals, providers, most).
        allowed: Which provider may serve which slot, and as which, of the same shape.
        claims: By rival.
        prices: The price of the first, the second, ... of each provider, shape (providers, most).
    """

    providers: Positions
    worth: npt.NDArray[np.int64]
    allowed: npt.NDArray[np.bool_]
    claims: Units
    prices: Matrix

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        arrays = (self.providers, self.worth, self.allowed, self.claims, self.prices)
        return sum(array.nbytes for array in arrays)


class RivalMarkets:
    """The rivals of one search, and their market under each anchor."""

    def __init__(self, problem: Problem, value: Sum, totals: Callable[[str], ClassTotals]) -> None:
        """Take what a search has, as `RivalBounds` does."""
        self._problem = problem
        self._value = value
        self._totals = totals
        self._known: dict[int, list[RivalMarket] | None] = {}

    @cached_property
    def parts(self) -> Mapping[int, Sequence[int]]:
        """Return the numbers of the parts of the score that depend on each slot."""
        parts: dict[int, list[int]] = {}
        for number, part in enumerate(self._value.parts):
            if isinstance(part.value, ValueOfSlot):
                parts.setdefault(part.value.slot, []).append(number)
        return parts

    @cached_property
    def rivals(self) -> Sequence[RivalSlots]:
        """Return the slots that compete for what counts."""
        return [
            rivals
            for rivals in _all_rivals(self._problem)
            if any(slot in self.parts for slot in rivals.slots)
        ]

    def of_anchor(self, anchor: int) -> list[RivalMarket] | None:
        """Return the market of each of the rivals; None where some of them cannot be served."""
        if anchor not in self._known:
            markets = [self._market(rivals, anchor) for rivals in self.rivals]
            existing = [market for market in markets if market is not None]
            self._problem.budget.hold(sum(market.nbytes for market in existing))
            self._known[anchor] = existing if len(existing) == len(markets) else None
        return self._known[anchor]

    def _market(self, rivals: RivalSlots, anchor: int) -> RivalMarket | None:
        options = [self._problem.relations[slot].providers_of(anchor) for slot in rivals.slots]
        providers = np.unique(np.concatenate(options))
        places = np.arange(rivals.most) < self._room(rivals, providers)[:, None]
        if len(rivals.slots) * places.size > thresholds.MOST_RIVAL_WORTHS:
            return self._without_rivalry(rivals, options)
        worth = np.stack([self._worth(slot, rivals, providers) for slot in rivals.slots])
        allowed = np.stack([np.isin(providers, mine)[:, None] & places for mine in options])
        potentials = _potentials(worth, allowed, self._problem.budget.check)
        if potentials is None:
            return None
        prices = potentials.prices.reshape(places.shape)
        return RivalMarket(providers, worth, allowed, potentials.claims, prices)

    def _without_rivalry(self, rivals: RivalSlots, options: Sequence[Positions]) -> RivalMarket:
        """Return the potentials of slots that may all have the best of their options."""
        claims = [
            int(self._worth(slot, rivals, mine)[:, 0].max(initial=0))
            for slot, mine in zip(rivals.slots, options, strict=True)
        ]
        nobody = np.empty((len(claims), 0, rivals.most), dtype=np.int64)
        return RivalMarket(
            np.empty(0, dtype=np.int64),
            nobody,
            nobody.astype(np.bool_),
            np.array(claims, dtype=np.int64),
            nobody[0],
        )

    def _room(self, rivals: RivalSlots, providers: Positions) -> Units:
        """Return how many of some rivals each provider can serve."""
        room = np.full(len(providers), rivals.most, dtype=np.float64)
        for name, amount in rivals.least.items():
            totals = self._totals(name)
            left = totals.capacity[providers] - totals.used[providers]
            np.minimum(room, left // amount, out=room)
        return room.astype(np.int64)

    def _worth(self, slot: int, rivals: RivalSlots, providers: Positions) -> Matrix:
        """Return what it is worth to a slot to be a provider's first, second, ... rival at most."""
        most = rivals.most
        worth = np.zeros((len(providers), most), dtype=np.int64)
        for number in self.parts.get(slot, ()):
            part = self._value.parts[number]
            value = part.value
            if part.factor > 0 and isinstance(value, ValueOfSlot):
                worth += units(value.most(providers), part.factor)[:, None]
            elif isinstance(value, PackProvidersOfSlot):
                worth += self._declining(part.factor, value, rivals, providers)
            elif isinstance(value, ValueOfSlot):
                worth += units(value.fewest(providers), part.factor)[:, None]
        return worth

    def _declining(
        self,
        factor: float,
        value: PackProvidersOfSlot,
        rivals: RivalSlots,
        providers: Positions,
    ) -> Matrix:
        """Return the same for one part of a score that is the less, the fuller a provider is.

        Whoever comes later makes it fuller for those before, too.
        """
        amount = value.amount
        counts = np.arange(1, rivals.most + 1)
        if rivals.are_alike:
            each = [value.shared(providers, amount * n) for n in counts.tolist()]
            together = units(np.stack(each, axis=1), factor) * counts
            return np.diff(together, axis=1, prepend=0)
        pair = amount + rivals.least.get(value.resource_class, 0)
        each = [value.shared(providers, amount + pair * (n - 1)) for n in counts.tolist()]
        # What is rounded for each does not add up to what is rounded for all.
        return units(np.stack(each, axis=1), factor) + counts


def _potentials(
    worth: npt.NDArray[np.int64], allowed: npt.NDArray[np.bool_], check: Callable[[], None]
) -> Potentials | None:
    """Return the potentials where each place of each provider is a column."""
    return potentials(worth.reshape(len(worth), -1), allowed.reshape(len(worth), -1), check)


def left_of(
    rivals: RivalSlots, market: RivalMarket, chosen: Choices, filled: frozenset[int]
) -> Units:
    """Return what the rivals that are not filled yet may get at most, under one anchor."""
    taken = [slot for slot in rivals.slots if slot in filled]
    claims = [slot not in filled for slot in rivals.slots]
    left = np.full(len(chosen), market.claims[claims].sum() + market.prices.sum())
    if len(market.providers):
        for provider, place in _places_of(market, chosen[:, taken]):
            left -= market.prices[provider, place]
    return left


def assigned(
    rivals: RivalSlots,
    market: RivalMarket,
    chosen: Positions,
    filled: frozenset[int],
    check: Callable[[], None],
) -> int | None:
    """Return the same for one partial candidate, exactly; None if they cannot all be served."""
    left = [index for index, slot in enumerate(rivals.slots) if slot not in filled]
    if not left or not len(market.providers):
        return int(market.claims[left].sum())
    allowed = market.allowed[left]
    taken = [slot for slot in rivals.slots if slot in filled]
    for provider, place in _places_of(market, chosen[None, taken]):
        allowed[:, provider, place] = False
    potentials = _potentials(market.worth[left], allowed, check)
    return None if potentials is None else int(potentials.claims.sum() + potentials.prices.sum())


def _places_of(market: RivalMarket, positions: Choices) -> Iterator[tuple[Positions, Positions]]:
    """Yield the provider of each column, by number, and how many columns before it have the same."""
    providers = search_ascending(market.providers, positions)
    for column in range(positions.shape[1]):
        same = positions[:, :column] == positions[:, [column]]
        yield providers[:, column], np.count_nonzero(same, axis=1)


def _all_rivals(problem: Problem) -> list[RivalSlots]:
    """Return all that compete; no slot is in two of them."""
    plan = problem.plan
    every = [
        RivalSlots(constraint.slots, 1, {}, are_alike=True)
        for constraint in plan.joint_constraints
        if constraint.resource_class is None
    ]
    isolated = {slot for rivals in every for slot in rivals.slots}
    others: dict[tuple[str, ...], list[int]] = {}
    for slot, want in enumerate(plan.slots):
        if slot not in isolated and want.resources:
            others.setdefault(tuple(sorted(want.resources)), []).append(slot)
    for names, slots in others.items():
        if len(slots) > 1:
            amounts = [[plan.slots[slot].resources[name] for slot in slots] for name in names]
            least = {
                name: min(some)
                for name, some in zip(names, amounts, strict=True)
                if _are_summed(problem, name, slots)
            }
            are_alike = all(min(some) == max(some) for some in amounts)
            every.append(RivalSlots(tuple(slots), len(slots), least, are_alike))
    return every


def _are_summed(problem: Problem, name: str, slots: Sequence[int]) -> bool:
    """Tell whether what some slots take of a class from one provider must fit together."""
    return any(
        constraint.resource_class == name and set(slots) <= set(constraint.slots)
        for constraint in problem.plan.joint_constraints
    )
