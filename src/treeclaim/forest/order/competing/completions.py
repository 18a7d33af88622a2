# SPDX-License-Identifier: Apache-2.0
"""What a partial candidate becomes at best, where its slots concern each other.

All that providers are worth to slots is added up exactly (`fillings`): what each gives to several, whom
isolation keeps apart, which traits are preferred. How near some groups are depends on all of them, but
only by their lowest common ancestor and the depth of the deepest: each pair of these is tried with the
providers that it leaves. Rules of subtrees and required traits of a whole group are overlooked, and of
several terms `near` or `far` all but one are bounded by themselves. So this is a bound; where there are
no such, it is what is attained.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

import numpy as np

from treeclaim.forest.order.competing.filling import HARDLY, NEVER
from treeclaim.forest.order.competing.fillings import Filled, Fillings, Options
from treeclaim.forest.order.terms.near import Frame, Near
from treeclaim.forest.order.terms.pack import PackProvidersOfSlot
from treeclaim.forest.order.terms.term import Partial, Sum, Units, ValueOfSlot, units
from treeclaim.forest.question.plan import Plan
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Positions


class Completions:
    """Bounds of single partial candidates of one search."""

    def __init__(self, problem: Problem, value: Sum) -> None:
        self._problem = problem
        self._plan: Plan = problem.plan
        self._value = value

    @cached_property
    def are_useful(self) -> bool:
        """Tell whether slots affect each other, so that what each gets by itself says little."""
        return bool(self._nears) or any(len(slots) > 1 for slots in self._fillings.together)

    def may_go_on(self, made: int) -> bool:
        """Tell whether more may be bounded, after this many partial candidates were made."""
        return self._fillings.allowance.has_more(made)

    def bound(self, partial: Partial) -> int | None:
        """Return the most that a single partial candidate may become.

        Returns:
            In units; `NEVER` if it becomes no candidate; None if that would take too long.
        """
        anchor, chosen = int(partial.anchor[0]), partial.chosen[0]
        options = self._fillings.options(anchor)
        fillings = [self._fillings.filled(some, chosen, partial.filled) for some in options]
        known = [filling for filling in fillings if filling is not None]
        if len(known) < len(options):
            return None
        alone = [filled.filling.most() for filled in known]
        if NEVER in alone:
            return NEVER
        total = self._nearest(partial, options, known, alone) if self._near_slots else sum(alone)
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
        for options in self._fillings.options(anchor):
            filled = self._fillings.filled(options, chosen, partial.filled, but=slot)
            if filled is None:
                return None
            if filled.instead is None:
                total += filled.filling.most()
            else:
                providers, most = options.providers, filled.filling.most_instead(filled.instead)
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
    def _fillings(self) -> Fillings:
        parts = {
            slot: [self._value.parts[number] for number in numbers]
            for slot, numbers in self._by_slot.items()
        }
        return Fillings(self._problem, parts, self._near_slots)

    @cached_property
    def _counted(self) -> frozenset[int]:
        """Return the numbers of all parts that are added up here."""
        return frozenset(
            [*self._nears, *(number for some in self._by_slot.values() for number in some)]
        )

    # -- how near they are -----------------------------------------------------------------------

    def _nearest(
        self,
        partial: Partial,
        options: Sequence[Options],
        fillings: Sequence[Filled],
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

    def _within(self, frame: Frame, options: Options, filled: Filled, most: int) -> int:
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
