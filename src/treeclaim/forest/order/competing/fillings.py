# SPDX-License-Identifier: Apache-2.0
"""What providers are worth to slots that concern each other, of which some are filled.

Slots that all providers serve alike are of one kind. Kinds that want the same differ only by who may
serve them and what they are worth there: what else a provider is worth follows from how many slots it
serves that want each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from treeclaim.forest.order.competing.filling import (
    NEVER,
    Allowance,
    Filling,
    FillingByPairs,
    Matrix,
    States,
    pairs_of,
    states_of,
)
from treeclaim.forest.order.competing.one_by_one import FillingOneByOne, ones_of
from treeclaim.forest.order.terms.pack import PackProvidersOfSlot
from treeclaim.forest.order.terms.term import ValueOfSlot, Weighted, units
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Mask, Positions, search_ascending
from treeclaim.model.request import NO_GROUP

_FEW = 8
"""As many providers are taken for granted, so that the states of a few do not become too many."""

_MOST_WRITTEN = 2**20
"""How many numbers are written down at most to find out whether there is a shorter way."""


@dataclass(frozen=True, slots=True)
class Options:
    """Who may serve slots that concern each other, under one anchor.

    Attributes:
        slots: The slots.
        kinds: The kind of each: alike are those that providers serve alike.
        firsts: The first slot of each kind.
        wants: The number of what each kind wants.
        providers: Positions, ascending.
        allowed: Whom each provider may serve, shape (kinds, providers).
        worth: What each provider is worth to a slot of each kind, whatever else it serves, in units.
        room: By name of a class that is summed: the most that a candidate may take of each provider.
    """

    slots: Sequence[int]
    kinds: Integers
    firsts: Sequence[int]
    wants: Sequence[int]
    providers: Positions
    allowed: Mask
    worth: Matrix
    room: Mapping[str, Integers]

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""
        arrays = (self.kinds, self.providers, self.allowed, self.worth, *self.room.values())
        return sum(array.nbytes for array in arrays)


class Filled(NamedTuple):
    """What providers are worth to slots of which some are filled.

    Attributes:
        filling: What each is worth with what it serves already.
        instead: The same if it serves the slot, too, whose options are tried; None if that is elsewhere.
        hot: In which states slots of `near` are served.
        begun: Which providers serve such slots already.
    """

    filling: Filling
    instead: Matrix | None
    hot: Mask
    begun: Mask


class _Served(NamedTuple):
    """Which slots are served, by which providers, and which are not.

    Attributes:
        numbers: Slots of each kind that are still to be served.
        base: Slots of each kind that each provider serves, shape (providers, kinds).
        begun: Which providers serve slots of `near`.
        besides: The kind of the slot whose options are tried; None without one.
    """

    numbers: tuple[int, ...]
    base: Matrix
    begun: Mask
    besides: int | None


class Fillings:
    """What providers are worth to the slots of one search.

    Attributes:
        allowance: How many pairs may still be added up for it.
    """

    def __init__(
        self,
        problem: Problem,
        parts: Mapping[int, Sequence[Weighted]],
        near_slots: frozenset[int],
    ) -> None:
        """Take what a search has.

        Args:
            problem: What is searched.
            parts: The parts of the score that are added up for each slot.
            near_slots: Slots of which it counts where those are that serve them.
        """
        self._problem = problem
        self._plan: Plan = problem.plan
        self._parts = parts
        self._near_slots = near_slots
        self._options: dict[int, list[Options]] = {}
        self._states: dict[tuple[int, ...], States] = {}
        self.allowance = Allowance()

    @cached_property
    def together(self) -> Sequence[Sequence[int]]:
        """Return the slots in sets that do not concern each other."""
        isolated = self._plan.request.isolated
        sets: list[_Concerns] = []
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

    def options(self, anchor: int) -> list[Options]:
        """Return the providers that may serve the slots under an anchor, for each set of these."""
        if anchor not in self._options:
            of_slots = [self._options_of(slots, anchor) for slots in self.together]
            self._problem.budget.hold(sum(options.nbytes for options in of_slots))
            self._options[anchor] = of_slots
        return self._options[anchor]

    def _options_of(self, slots: Sequence[int], anchor: int) -> Options:
        self._problem.budget.check()
        served = [self._problem.relations[slot].providers_of(anchor) for slot in slots]
        providers = np.unique(np.concatenate(served))
        allowed = np.stack([np.isin(providers, some) for some in served])
        worth = np.stack([self._worth(slot, providers) for slot in slots])
        wanted: dict[object, int] = {}
        wants = [wanted.setdefault(self._wants(slot), len(wanted)) for slot in slots]
        alike: dict[object, int] = {}
        kinds = [
            alike.setdefault((want, allowed[at].tobytes(), worth[at].tobytes()), len(alike))
            for at, want in enumerate(wants)
        ]
        firsts = [kinds.index(kind) for kind in range(len(alike))]
        names = {name for slot in slots for name in self._plan.slots[slot].resources}
        return Options(
            slots,
            np.array(kinds, dtype=np.int64),
            [slots[at] for at in firsts],
            [wants[at] for at in firsts],
            providers,
            allowed[firsts],
            worth[firsts],
            {name: self._room(name, providers) for name in names if self._summed(name)},
        )

    def _wants(self, slot: int) -> object:
        """Return what a slot wants, except for who may serve it and what it is worth there."""
        want = self._plan.slots[slot]
        factors = [
            (part.value.resource_class, part.factor)
            for part in self._parts.get(slot, ())
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
        for part in self._parts.get(slot, ()):
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

    def filled(
        self,
        options: Options,
        chosen: Positions,
        filled: frozenset[int],
        but: int | None = None,
    ) -> Filled | None:
        """Return what providers are worth to all slots; None if it would take too long.

        Args:
            options: Who may serve the slots.
            chosen: Who serves those that are filled, by slot.
            filled: These.
            but: The slot whose options are tried, which is served besides.
        """
        check = self._problem.budget.check
        check()
        key, base, begun, besides = self._served(options, chosen, filled, but)
        pairs = pairs_of(key) * max(len(options.providers), _FEW)
        ways = self._ways(options, key, base) if self._are_few(options, key, pairs) else None
        ones = np.inf if ways is None else ones_of(key, options.wants, ways)
        # All options of a slot take thrice as long as none.
        if not self.allowance.affords(min(ones, pairs) * (1 if besides is None else 3)):
            return None
        if ways is not None and ones < pairs:
            gains = np.where(options.allowed, options.worth, NEVER)
            one_by_one = FillingOneByOne(key, options.wants, ways, gains, check)
            instead = None if besides is None else self._ways(options, key, base, besides)
            return Filled(one_by_one, instead, np.zeros(1, dtype=np.bool_), begun)
        states = self._states_of(key)
        near = [slot in self._near_slots for slot in options.firsts]
        hot: Mask = np.logical_or.reduce(states.counts[:, near] > 0, axis=1)
        offered = self._offered(options, states.counts, base)
        instead = None
        if besides is not None:
            more = states.counts + np.eye(len(key), dtype=np.int64)[besides]
            instead = self._offered(options, more, base)
        return Filled(FillingByPairs(states, offered, check), instead, hot, begun)

    def _served(
        self, options: Options, chosen: Positions, filled: frozenset[int], but: int | None
    ) -> _Served:
        """Return what providers serve already; see `filled`."""
        numbers = [0] * len(options.firsts)
        base = np.zeros((len(options.providers), len(numbers)), dtype=np.int64)
        begun = np.zeros(len(options.providers), dtype=np.bool_)
        besides = None
        for slot, kind in zip(options.slots, options.kinds.tolist(), strict=True):
            if slot == but:
                besides = kind
            elif slot in filled:
                at = int(search_ascending(options.providers, chosen[slot]))
                base[at, kind] += 1
                begun[at] |= slot in self._near_slots
            else:
                numbers[kind] += 1
        return _Served(tuple(numbers), base, begun, besides)

    def _are_few(self, options: Options, numbers: tuple[int, ...], pairs: float) -> bool:
        """Tell whether there are few ways to serve one slot after the other, if that can be done."""
        if not self._near_slots.isdisjoint(options.slots):
            return False
        shape = np.bincount(options.wants, numbers) + 1
        written = np.prod(shape) * len(shape) * len(options.providers)
        return bool(written <= min(pairs, _MOST_WRITTEN))

    def _states_of(self, key: tuple[int, ...]) -> States:
        if key not in self._states:
            self._states[key] = states_of(key)
            self._problem.budget.hold(sum(array.nbytes for array in self._states[key]))
        return self._states[key]

    def _ways(
        self,
        options: Options,
        numbers: tuple[int, ...],
        base: Matrix,
        besides: int | None = None,
    ) -> Matrix:
        """Return what providers are worth by how many slots they serve that want the same.

        Args:
            options: Who may serve the slots.
            numbers: How many of each kind are to be served.
            base: How many each provider serves already, shape (providers, kinds).
            besides: The kind of a slot that each serves, too.

        Returns:
            Shape (providers, ways); see `FillingOneByOne`.
        """
        of_wants = np.eye(max(options.wants) + 1, dtype=np.int64)[options.wants]
        shape = np.array(numbers) @ of_wants + 1
        counts = np.stack(np.unravel_index(np.arange(shape.prod()), shape), axis=1)
        worth = (base * options.worth.T).sum(axis=1)
        able = np.ones(len(worth), dtype=np.bool_)
        if besides is not None:
            counts = counts + of_wants[besides]
            worth += options.worth[besides]
            able = options.allowed[besides]
        nothing = np.zeros((len(shape), len(worth)), dtype=np.int64)
        alike = replace(
            options,
            firsts=[options.firsts[options.wants.index(want)] for want in range(len(shape))],
            allowed=nothing == 0,
            worth=nothing,
        )
        ways = self._offered(alike, counts, base @ of_wants)
        return np.where((ways > NEVER) & able[:, None], ways + worth[:, None], NEVER)

    def _offered(self, options: Options, more: Matrix, base: Matrix) -> Matrix:
        """Return what each provider is worth if it serves each state in addition to what it serves already.

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
            for part in self._parts.get(slot, ()):
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


_Concerns = tuple[set[int], set[str], bool, bool]
"""Slots, the classes that they take, and whether any is suffixed, and isolated."""


def _concern(some: _Concerns, others: _Concerns) -> bool:
    """Tell whether what serves some slots matters to others."""
    _, names, suffixed, isolated = some
    _, other_names, other_suffixed, other_isolated = others
    return bool(names & other_names) or (
        suffixed and other_suffixed and (isolated or other_isolated)
    )
