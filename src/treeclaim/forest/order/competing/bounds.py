# SPDX-License-Identifier: Apache-2.0
"""Bounds where slots compete for providers.

The bound of a term lets each slot have the best of its options. Where slots must have different
providers, or a provider has room for few of them, they cannot all have the best one, and a search
would go through all ways to give it to some of them before it comes to a candidate: k! of them, where k
groups are alike. So rivals are assigned to providers together: the best assignment under an anchor,
rules aside, is found once, and its potentials bound whatever partial candidates may become. They are exact
for those that lead to it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treeclaim.forest.order.competing.completions import Completions
from treeclaim.forest.order.competing.filling import NEVER
from treeclaim.forest.order.competing.markets import RivalMarkets, assigned, left_of
from treeclaim.forest.order.terms.term import Partial, Sum, Units
from treeclaim.forest.order.totals import ClassTotals
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Positions, search_ascending

NOTHING = np.iinfo(np.int64).min
"""The bound of what becomes no candidate."""

_KEY_BYTES = 100
"""Memory that a number of a key takes, with a share of what it takes to find it."""


class _Judged(NamedTuple):
    """Bounds of what a partial candidate becomes with each option of a slot.

    Attributes:
        positions: The options, ascending.
        bounds: Of each; `NOTHING` where it becomes no candidate.
    """

    positions: Positions
    bounds: Units


class RivalBounds:
    """Bounds of the partial candidates of one search, in which slots compete."""

    def __init__(self, problem: Problem, value: Sum, totals: Callable[[str], ClassTotals]) -> None:
        """Take what a search has; who competes is found out when it is asked.

        Args:
            problem: What is searched; it splits nothing.
            value: The score.
            totals: Tells what is used of a class.
        """
        self._problem = problem
        self._value = value
        self._markets = RivalMarkets(problem, value, totals)
        self._known: dict[tuple[int, ...], _Judged] = {}
        self._known_alone: dict[tuple[int, ...], int] = {}

    @cached_property
    def _completions(self) -> Completions:
        return Completions(self._problem, self._value)

    @property
    def are_any(self) -> bool:
        """Tell whether any slots compete for what counts."""
        return bool(self._markets.rivals) or self._completions.are_useful

    def bound(self, partial: Partial) -> Units:
        """Return the most that partial candidates may become; `NOTHING` for no candidate."""
        bound = self._without_rivals(partial)
        for anchor in np.unique(partial.anchor).tolist():
            mine = np.flatnonzero(partial.anchor == anchor)
            markets = self._markets.of_anchor(anchor)
            if markets is None:
                bound[mine] = NOTHING
                continue
            for rivals, market in zip(self._markets.rivals, markets, strict=True):
                bound[mine] += left_of(rivals, market, partial.chosen[mine], partial.filled)
        return np.minimum(bound, self._value.bound(partial))

    def are_closest_worth(self, made: int) -> bool:
        """Tell whether to judge more closely is worth it, after so many partial candidates were made."""
        return self._completions.may_go_on(made)

    def closest(self, partial: Partial) -> Iterator[tuple[Integers, Units]]:
        """Yield closer bounds for the first partial candidate, and for those that are alike so far.

        What each grew out of is judged before it, and remembered: so what grew out of one that leads to
        nothing is not judged by itself.

        Yields:
            Numbers of partial candidates, the first among them, and the bound of each.
        """
        first = partial.chosen[0].tolist()
        alike = np.flatnonzero(partial.anchor == partial.anchor[0])
        key: tuple[int, ...] = (int(partial.anchor[0]),)
        filled: frozenset[int] = frozenset()
        for slot in self._problem.rules.slots:
            if slot not in partial.filled:
                break
            before = Partial(partial.anchor[:1], partial.chosen[:1], filled)
            others, (key, filled) = key, ((*key, first[slot]), filled | {slot})
            judged = self._judged(before, others, slot)
            positions = partial.chosen[alike, slot]
            if judged is not None:
                yield alike, judged.bounds[search_ascending(judged.positions, positions)]
            alike = alike[positions == first[slot]]
            if judged is None:
                yield (
                    alike,
                    np.full(len(alike), self._judged_alone(replace(before, filled=filled), key)),
                )
        if not filled:
            yield alike, np.full(len(alike), self._judged_alone(partial, key))

    def _judged(self, partial: Partial, key: tuple[int, ...], slot: int) -> _Judged | None:
        """Return the bounds of what a partial candidate becomes with one more slot, if it may be known."""
        if key not in self._known:
            judged = self._completions.of_options(partial, slot)
            if judged is None:
                return None
            positions, bounds = judged
            self._problem.budget.hold(positions.nbytes + bounds.nbytes + _KEY_BYTES * len(key))
            self._known[key] = _Judged(positions, np.where(bounds == NEVER, NOTHING, bounds))
        return self._known[key]

    def _judged_alone(self, partial: Partial, key: tuple[int, ...]) -> int:
        """Return the bound of a single partial candidate, which may be known."""
        if key not in self._known_alone:
            self._problem.budget.hold(_KEY_BYTES * len(key))
            self._known_alone[key] = self._closest(partial)
        return self._known_alone[key]

    def _closest(self, partial: Partial) -> int:
        """Return the same for a single partial candidate, all of whose slots are looked at anew."""
        exact = self._completions.bound(partial)
        if exact is not None:
            least = min(exact, int(self._value.bound(partial)[0]))
            return NOTHING if exact == NEVER else least
        markets = self._markets.of_anchor(int(partial.anchor[0]))
        if markets is None:
            return NOTHING
        bound = int(self._without_rivals(partial)[0])
        for rivals, market in zip(self._markets.rivals, markets, strict=True):
            left = assigned(
                rivals, market, partial.chosen[0], partial.filled, self._problem.budget.check
            )
            if left is None:
                return NOTHING
            bound += left
        return min(bound, int(self._value.bound(partial)[0]))

    def _without_rivals(self, partial: Partial) -> Units:
        """Return the most that partial candidates may become without what rivals still get."""
        without = {
            number
            for rivals in self._markets.rivals
            for slot in rivals.slots
            if slot not in partial.filled
            for number in self._markets.parts.get(slot, ())
        }
        return self._value.bound(partial, without)
