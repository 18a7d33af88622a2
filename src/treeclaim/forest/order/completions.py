# SPDX-License-Identifier: Apache-2.0
"""What a partial candidate becomes at best, where its slots concern each other.

All that providers are worth to slots is added up exactly (`filling`): what each gives to several, whom
isolation keeps apart, which traits are preferred. How near some groups are depends on all of them, but
only by their lowest common ancestor and the depth of the deepest: each pair of these is tried with the
providers that it leaves. Rules of subtrees and required traits of a whole group are overlooked, and of
several terms `near` or `far` all but one are bounded by themselves. So this is a bound; where there are
no such, it is what is attained.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.order.filling import (
    HARDLY,
    NEVER,
    Filling,
    Matrix,
    States,
    pairs_of,
    states_of,
)
from treeclaim.forest.order.terms.combination import Sum, Units, units
from treeclaim.forest.order.terms.near import Frame, Near
from treeclaim.forest.order.terms.pack_providers import PackProvidersOfSlot
from treeclaim.forest.order.terms.term import Partial, ValueOfSlot
from treeclaim.forest.order.totals import ClassTotals
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Mask, Positions, search_ascending
from treeclaim.model.request import NO_GROUP

_FEW = 8
"""As many providers are taken for granted, so that the states of a few do not become too many."""


@dataclass(frozen=True, slots=True)
class _Options:
    """Who may serve slots that concern each other, under one anchor.

    Attributes:
        slots: The slots.
        kinds: The kind of each: alike are those that providers serve alike.
        firsts: The first slot of each kind.
        providers: Positions, ascending.
        allowed: Whom each provider may serve, shape (kinds, providers).
        worth: Of each provider to a slot of each kind, whatever else it serves, in units.
        room: By name of a class that is summed: the most that a candidate may take of each provider.
    """

    slots: Sequence[int]
    kinds: Integers
    firsts: Sequence[int]
    providers: Positions
    allowed: Mask
    worth: Matrix
    room: Mapping[str, Integers]

    @property
    def nbytes(self) -> int:
        arrays = (self.kinds, self.providers, self.allowed, self.worth, *self.room.values())
        return sum(array.nbytes for array in arrays)


class _Filled(NamedTuple):
    """What providers are worth to slots of which some are filled.

    Attributes:
        filling: What each is worth with what it serves already.
        base: What each serves already, shape (providers, kinds).
        hot: In which states slots of `near` are served.
        begun: Which providers serve such slots already.
    """

    filling: Filling
    base: Matrix
    hot: Mask
    begun: Mask


class Completions:
    """Bounds of single partial candidates of one search."""

    def __init__(self, problem: Problem, value: Sum, totals: Callable[[str], ClassTotals]) -> None:
        """Take what a search has.

        Args:
            problem: What is searched.
            value: The score.
            totals: Tells what is used of a class.
        """
        self._problem = problem
        self._plan: Plan = problem.plan
        self._value = value
        self._totals = totals
        self._options: dict[int, list[_Options]] = {}
        self._states: dict[tuple[int, ...], States] = {}
        self._left_open = 0

    @cached_property
    def are_useful(self) -> bool:
        """Tell whether slots concern each other, so that what each gets alone says little."""
        return bool(self._nears) or any(len(slots) > 1 for slots in self._together)

    def bound(self, partial: Partial) -> int | None:
        """Return the most that a single partial candidate may become.

        Returns:
            In units; `NEVER` if it becomes no candidate; None if that would take too long.
        """
        anchor, chosen = int(partial.anchor[0]), partial.chosen[0]
        options = self._options_of(anchor)
        fillings = [self._filling(some, chosen, partial.filled) for some in options]
        found = [filling for filling in fillings if filling is not None]
        if len(found) < len(options):
            return None
        alone = [filled.filling.most() for filled in found]
        if NEVER in alone:
            return NEVER
        total = self._nearest(partial, options, found, alone) if self._near_slots else sum(alone)
        if total < HARDLY:
            return NEVER
        return total + int(self._value.bound(partial, self._counted)[0])

    def of_options(self, partial: Partial, slot: int) -> tuple[Positions, Units] | None:
        """Return the most that a single partial candidate may become with each option of a slot.

        What the others are worth together is added up once for all options.

        Returns:
            Positions and what `bound` tells of each; None if that would take too long, or where how
            near some groups are counts, which is tried for each by itself.
        """
        if self._near_slots:
            return None
        anchor, chosen = int(partial.anchor[0]), partial.chosen[0]
        total = 0
        providers = most = np.empty(0, dtype=np.int64)
        for options in self._options_of(anchor):
            filled = self._filling(options, chosen, partial.filled, but=slot)
            if filled is None:
                return None
            if slot in options.slots:
                providers = options.providers
                kind = int(options.kinds[options.slots.index(slot)])
                more = filled.filling.states.counts.copy()
                more[:, kind] += 1
                most = filled.filling.most_instead(self._offered(options, more, filled.base))
            else:
                total += filled.filling.most()
        some = np.repeat(partial.chosen, len(providers), axis=0)
        some[:, slot] = providers
        grown = Partial(partial.anchor.repeat(len(providers)), some, partial.filled | {slot})
        bound = most + total + self._value.bound(grown, self._counted)
        bound = np.minimum(bound, self._value.bound(grown))
        return providers, np.where((most > NEVER) & (total > HARDLY), bound, NEVER)

    # -- what the score is made of ---------------------------------------------------------------

    @cached_property
    def _nears(self) -> Sequence[int]:
        """Return the number of the part that says how near some groups are; of several the first."""
        parts = enumerate(self._value.parts)
        return [number for number, part in parts if isinstance(part.value, Near)][:1]

    @property
    def _near(self) -> tuple[Near, float]:
        """Return that part where there is one, and its factor."""
        (number,) = self._nears
        part = self._value.parts[number]
        return cast(Near, part.value), part.factor

    @cached_property
    def _near_slots(self) -> frozenset[int]:
        return frozenset(self._near[0].slots if self._nears else ())

    @cached_property
    def _by_slot(self) -> Mapping[int, Sequence[int]]:
        """Return the numbers of the parts that are added up for each slot."""
        parts: dict[int, list[int]] = {}
        for number, part in enumerate(self._value.parts):
            value = part.value
            # What is divided is not known before all slots are filled.
            if isinstance(value, PackProvidersOfSlot) and value.resource_class in self._plan.split:
                continue
            if isinstance(value, ValueOfSlot):
                parts.setdefault(value.slot, []).append(number)
        return parts

    @cached_property
    def _counted(self) -> frozenset[int]:
        """Return the numbers of all parts that are added up here."""
        return frozenset(
            [*self._nears, *(number for some in self._by_slot.values() for number in some)]
        )

    @cached_property
    def _together(self) -> Sequence[Sequence[int]]:
        """Return the slots in sets that do not concern each other."""
        isolated = self._plan.request.isolated
        sets: list[tuple[set[int], set[str], bool, bool]] = []
        for slot, want in enumerate(self._plan.slots):
            merged = {slot}, set(want.resources), want.suffix != NO_GROUP, want.suffix in isolated
            apart = []
            for other in sets:
                if _concern(merged, other):
                    merged = (
                        merged[0] | other[0],
                        merged[1] | other[1],
                        merged[2] or other[2],
                        merged[3] or other[3],
                    )
                else:
                    apart.append(other)
            sets = [*apart, merged]
        return [sorted(slots) for slots, _, _, _ in sets]

    # -- who may serve ---------------------------------------------------------------------------

    def _options_of(self, anchor: int) -> list[_Options]:
        if anchor not in self._options:
            found = [self._made(slots, anchor) for slots in self._together]
            self._problem.budget.hold(sum(options.nbytes for options in found))
            self._options[anchor] = found
        return self._options[anchor]

    def _made(self, slots: Sequence[int], anchor: int) -> _Options:
        self._problem.budget.check()
        served = [self._problem.relations[slot].providers_of(anchor) for slot in slots]
        providers = np.unique(np.concatenate(served))
        allowed = np.stack([np.isin(providers, some) for some in served])
        worth = np.stack([self._worth(slot, providers) for slot in slots])
        alike: dict[object, int] = {}
        kinds = [
            alike.setdefault(
                (self._wants(slot), allowed[at].tobytes(), worth[at].tobytes()), len(alike)
            )
            for at, slot in enumerate(slots)
        ]
        firsts = [kinds.index(kind) for kind in range(len(alike))]
        names = {name for slot in slots for name in self._plan.slots[slot].resources}
        return _Options(
            slots,
            np.array(kinds, dtype=np.int64),
            [slots[at] for at in firsts],
            providers,
            allowed[firsts],
            worth[firsts],
            {name: self._room(name, providers) for name in names if self._summed(name)},
        )

    def _wants(self, slot: int) -> object:
        """Return what else makes two slots alike."""
        want = self._plan.slots[slot]
        factors = [
            (part.value.resource_class, part.factor)
            for part in map(self._value.parts.__getitem__, self._by_slot.get(slot, ()))
            if isinstance(part.value, PackProvidersOfSlot)
        ]
        return (
            tuple(sorted(want.resources.items())),
            tuple(slot in self._summed(name) for name in sorted(want.resources)),
            tuple(factors),
            want.suffix == NO_GROUP,
            want.suffix in self._plan.request.isolated,
            slot in self._near_slots,
        )

    def _worth(self, slot: int, providers: Positions) -> Integers:
        worth = np.zeros(len(providers), dtype=np.int64)
        for number in self._by_slot.get(slot, ()):
            part = self._value.parts[number]
            if isinstance(part.value, ValueOfSlot) and not isinstance(
                part.value, PackProvidersOfSlot
            ):
                worth += units(part.value.most(providers), part.factor)
        return worth

    def _summed(self, name: str) -> Sequence[int]:
        """Return the slots of which a provider must have room for all together."""
        for constraint in self._plan.joint_constraints:
            if constraint.resource_class == name:
                return constraint.slots
        return ()

    def _room(self, name: str, providers: Positions) -> Integers:
        forest = self._problem.forest
        columns = forest.class_inventories(name)
        has, indices = columns.indices_of(forest.order.row[providers])
        room = np.zeros(len(providers), dtype=np.int64)
        room[has] = columns.room(indices)
        return room

    # -- what they are worth ---------------------------------------------------------------------

    def _filling(
        self,
        options: _Options,
        chosen: Positions,
        filled: frozenset[int],
        but: int | None = None,
    ) -> _Filled | None:
        """Return what providers are worth to all slots but one; None if it would take too long."""
        kinds = len(options.firsts)
        numbers = [0] * kinds
        base = np.zeros((len(options.providers), kinds), dtype=np.int64)
        begun = np.zeros(len(options.providers), dtype=np.bool_)
        for slot, kind in zip(options.slots, options.kinds.tolist(), strict=True):
            if slot == but:
                continue
            if slot in filled:
                at = int(search_ascending(options.providers, chosen[slot]))
                base[at, kind] += 1
                begun[at] |= slot in self._near_slots
            else:
                numbers[kind] += 1
        key = tuple(numbers)
        most = thresholds.MOST_FILLINGS_ADDED * min(1 + self._left_open / 8, 8)
        if pairs_of(key) * max(len(options.providers), _FEW) > most:
            self._left_open += 1
            return None
        if key not in self._states:
            self._states[key] = states_of(key)
            self._problem.budget.hold(sum(array.nbytes for array in self._states[key]))
        self._problem.budget.check()
        states = self._states[key]
        near = [slot in self._near_slots for slot in options.firsts]
        hot: Mask = np.logical_or.reduce(states.counts[:, near] > 0, axis=1)
        return _Filled(
            Filling(
                states, self._offered(options, states.counts, base), self._problem.budget.check
            ),
            base,
            hot,
            begun,
        )

    def _offered(self, options: _Options, more: Matrix, base: Matrix) -> Matrix:
        """Return what each provider is worth that serves each state besides what it serves already.

        Args:
            options: The providers.
            more: Slots of each kind, shape (states, kinds).
            base: The same for each provider.
        """
        counts = base[:, None, :] + more[None, :, :]
        allowed = np.logical_and.reduce((more == 0) | options.allowed.T[:, None, :], axis=2)
        wants = [self._plan.slots[slot] for slot in options.firsts]
        suffixed = [want.suffix != NO_GROUP for want in wants]
        isolated = [want.suffix in self._plan.request.isolated for want in wants]
        if any(isolated):
            alone = counts[:, :, isolated].sum(axis=2) > 0
            allowed &= ~alone | (counts[:, :, suffixed].sum(axis=2) == 1)
        worth: Matrix = (counts * options.worth.T[:, None, :]).sum(axis=2)
        for name, room in options.room.items():
            summed = self._summed(name)
            amounts = [
                want.resources.get(name, 0) if slot in summed else 0
                for slot, want in zip(options.firsts, wants, strict=True)
            ]
            allowed &= counts @ np.array(amounts, dtype=np.int64) <= room[:, None]
        for kind, slot in enumerate(options.firsts):
            for number in self._by_slot.get(slot, ()):
                part = self._value.parts[number]
                value = part.value
                if isinstance(value, PackProvidersOfSlot):
                    name = value.resource_class
                    amounts = [want.resources.get(name, 0) for want in wants]
                    taken = counts @ np.array(amounts, dtype=np.int64)
                    filled = value.filled(options.providers[:, None], taken)
                    worth += counts[:, :, kind] * units(filled, part.factor)
        # What is served already is served, whatever rules say.
        allowed[:, ~more.any(axis=1)] = True
        return np.where(allowed, worth, NEVER)

    # -- how near they are -----------------------------------------------------------------------

    def _nearest(
        self,
        partial: Partial,
        options: Sequence[_Options],
        fillings: Sequence[_Filled],
        alone: Sequence[int],
    ) -> int:
        """Return the most with what the groups are worth that are to be near, or far."""
        near, factor = self._near
        known = [int(partial.chosen[0, slot]) for slot in near.slots if slot in partial.filled]
        frames = near.frames(known, self._near_options(partial))
        worths = [int(units(np.array(frame.value), factor)) for frame in frames]
        best = NEVER
        for at in sorted(range(len(frames)), key=worths.__getitem__, reverse=True):
            self._problem.budget.check()
            if worths[at] + sum(alone) <= best:
                break
            total = worths[at]
            for some, filled, most in zip(options, fillings, alone, strict=True):
                total += self._within(frames[at], some, filled, most)
            best = max(best, total)
        return max(best, NEVER)

    def _within(self, frame: Frame, options: _Options, filled: _Filled, most: int) -> int:
        """Return the most that slots get where those of `near` keep within a frame.

        Args:
            frame: It.
            options: Who may serve the slots.
            filled: What they are worth.
            most: The most wherever they are.
        """
        near, factor = self._near
        if frame.above is None or not (filled.hot.any() or filled.begun.any()):
            return most
        inside = near.is_inside(frame, options.providers)
        if factor > 0 or not self._near_slots.issubset(options.slots):
            return filled.filling.most(filled.hot, inside)
        branch = near.branches(frame.above, options.providers)
        return filled.filling.most_apart(filled.hot, inside, filled.begun, branch)

    def _near_options(self, partial: Partial) -> Sequence[Positions]:
        """Return the options of each slot of `near` that is not filled."""
        anchor = int(partial.anchor[0])
        left = self._near_slots - partial.filled
        return [self._problem.relations[slot].providers_of(anchor) for slot in sorted(left)]


_Concerns = tuple[set[int], set[str], bool, bool]
"""Slots, the classes that they take, and whether any is suffixed, and isolated."""


def _concern(some: _Concerns, others: _Concerns) -> bool:
    """Tell whether what serves some slots matters to others."""
    _, names, suffixed, isolated = some
    _, other_names, other_suffixed, other_isolated = others
    return bool(names & other_names) or (
        suffixed and other_suffixed and (isolated or other_isolated)
    )
