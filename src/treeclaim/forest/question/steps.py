# SPDX-License-Identifier: Apache-2.0
"""Orders the slots of a plan, with the rules to check when each is filled."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from treeclaim.forest.question.slots import SlotComparison, select_comparisons
from treeclaim.model.request import NO_GROUP, Order, TermName

if TYPE_CHECKING:
    from treeclaim.forest.question.plan import Plan


@dataclass(frozen=True, slots=True)
class SummedSlots:
    """Earlier slots that may take the same class from the same provider as a step's slot.

    Attributes:
        amount: The amount of the step's slot.
        amounts: The amounts of the earlier slots, int64, shape (k,).
    """

    amount: int
    slots: tuple[int, ...]
    amounts: npt.NDArray[np.int64]

    @property
    def is_uniform(self) -> bool:
        """Return whether all earlier slots take the same amount."""
        return bool((self.amounts == self.amounts[0]).all())


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the search: guess the head of a same_subtree list, or fill a slot.

    Attributes:
        slot: The slot to fill; None to guess a head of the list `subtree`.
        covers: Earlier slots that must be in the subtree of the guessed head.
        spares: Earlier slots that must be outside the subtree of the guessed head.
        within: The lists that contain the slot.
        avoids: The lists with subtrees that the slot must avoid.
        completes: The lists that this step completes.
        differs: Earlier slots that must have different providers.
        summed: Earlier slots with amounts that add to this one's, by class name.
        other_trees: Earlier slots that must have the same provider or another tree (below 1.29).
        completes_unsuffixed: Whether it fills the last slot of the unsuffixed group.
        compared: Comparisons of attributes with earlier slots.
        not_before: An earlier slot with a provider that this one must not precede; see `steps_without_exchanges`.
    """

    slot: int | None
    subtree: int = -1
    covers: tuple[int, ...] = ()
    spares: tuple[int, ...] = ()
    within: tuple[int, ...] = ()
    avoids: tuple[int, ...] = ()
    completes: tuple[int, ...] = ()
    differs: tuple[int, ...] = ()
    summed: Mapping[str, SummedSlots] = field(default_factory=dict, hash=False)
    other_trees: tuple[int, ...] = ()
    completes_unsuffixed: bool = False
    compared: tuple[SlotComparison, ...] = ()
    not_before: int | None = None

    @property
    def is_bound(self) -> bool:
        """Return whether the options of the slot depend on earlier slots."""
        is_compared = bool(self.differs or self.summed or self.other_trees or self.compared)
        return is_compared or self.not_before is not None


def order_steps(plan: "Plan") -> tuple[Step, ...]:
    """Order heads and slots so that the search prunes early, with the rules of each step.

    Each head precedes the unfilled slots of its list; slots without a list come last. Slots with
    greater demand come first.

    This is the canonical order of candidates (contract page 90, section 6). It depends on the
    request alone, so cached candidates, trees that are counted alone, and later searches agree.
    """
    by_demand = sorted(range(len(plan.slots)), key=partial(_rate_demand, plan), reverse=True)
    ranks = {slot: rank for rank, slot in enumerate(by_demand)}
    planner = _Planner(plan, ranks)
    for subtree, members in enumerate(plan.lists):
        planner.guess_head(subtree)
        planner.fill(members)
    planner.fill(range(len(plan.slots)))
    return tuple(planner.steps)


def steps_without_exchanges(plan: "Plan", order: Order) -> tuple[Step, ...]:
    """Return steps that find only the first of the candidates that differ by exchanges between equal slots.

    Such candidates have the same score. Eight equal groups on eight devices have 40,320 of them.
    """
    named_suffixes = {preference.suffix for preference in order.preferences}
    for term in order.terms:
        if term.name in {TermName.MOST, TermName.LEAST}:
            named_suffixes.update(term.arguments)
    sets = [
        *(set(members) for members in (*plan.lists, *plan.outside)),
        *(set(values.slots) for values in plan.values),
    ]
    steps: list[Step] = []
    last: dict[object, int] = {}
    for step in plan.steps:
        slot = None if step.slot is None else plan.slots[step.slot]
        if slot is None or slot.suffix == NO_GROUP or slot.suffix in named_suffixes:
            steps.append(step)
            continue
        key = (
            slot.group,
            slot.suffix in plan.request.isolated,
            *(step.slot in members for members in sets),
            *(slot.suffix in term.arguments for term in order.terms),
        )
        steps.append(replace(step, not_before=last.get(key)))
        last[key] = cast("int", step.slot)
    return tuple(steps)


def _rate_demand(plan: "Plan", slot: int) -> tuple[int, int, int, int]:
    """Return the demand of a slot: fewer providers are likely to serve a greater one."""
    demanded_slot = plan.slots[slot]
    conditions = plan.groups[demanded_slot.group].conditions
    trees = bool(conditions.in_tree) + bool(conditions.in_subtree)
    return (
        len(conditions.required) + len(conditions.member_of) + len(conditions.where) + trees,
        len(demanded_slot.resources),
        max(demanded_slot.resources.values(), default=0),
        -slot,
    )


class _Planner:
    """Appends steps, and records the filled slots and guessed heads."""

    def __init__(self, plan: "Plan", ranks: Mapping[int, int]) -> None:
        self.steps: list[Step] = []
        self._plan = plan
        self._ranks = ranks
        self._suffixed = [slot.suffix != NO_GROUP for slot in plan.slots]
        self._isolated = [
            slot.suffix != NO_GROUP and slot.suffix in plan.request.isolated for slot in plan.slots
        ]
        self._competing = {
            constraint.resource_class: frozenset(constraint.slots)
            for constraint in plan.joint_constraints
            if constraint.resource_class is not None
        }
        self._filled: list[int] = []
        self._guessed: list[int] = []

    def guess_head(self, subtree: int) -> None:
        """Add the step that guesses the head of a `same_subtree` list."""
        members = self._plan.lists[subtree]
        self._guessed.append(subtree)
        self.steps.append(
            Step(
                slot=None,
                subtree=subtree,
                covers=tuple(slot for slot in members if slot in self._filled),
                spares=tuple(slot for slot in self._plan.outside[subtree] if slot in self._filled),
                completes=(subtree,) if set(members) <= set(self._filled) else (),
            )
        )

    def fill(self, slots: Iterable[int]) -> None:
        """Add steps for the unfilled slots, the greatest demand first."""
        unfilled = [slot for slot in slots if slot not in self._filled]
        for slot in sorted(unfilled, key=self._ranks.__getitem__):
            earlier = tuple(self._filled)
            self._filled.append(slot)
            self.steps.append(self._make_step(slot, earlier))

    def _make_step(self, new_slot: int, earlier: tuple[int, ...]) -> Step:
        slot = self._plan.slots[new_slot]
        differs = self._slots_to_avoid(new_slot, earlier) if self._suffixed[new_slot] else ()
        within, avoids, completes = self._subtrees_of(new_slot) if self._guessed else ((), (), ())
        return Step(
            slot=new_slot,
            within=within,
            avoids=avoids,
            completes=completes,
            differs=differs,
            summed=self._summed_slots(new_slot, differs, earlier),
            other_trees=(
                ()
                if self._plan.request.nested or not slot.resources
                else tuple(number for number in earlier if self._plan.slots[number].resources)
            ),
            completes_unsuffixed=(
                new_slot in self._plan.unsuffixed
                and set(self._plan.unsuffixed) <= set(self._filled)
            ),
            compared=select_comparisons(self._plan.values, new_slot, earlier)
            if self._plan.values
            else (),
        )

    def _subtrees_of(self, new_slot: int) -> tuple[tuple[int, ...], ...]:
        """Return the `within`, `avoids` and `completes` of a step."""
        within = [subtree for subtree in self._guessed if new_slot in self._plan.lists[subtree]]
        avoids = [subtree for subtree in self._guessed if new_slot in self._plan.outside[subtree]]
        filled = set(self._filled)
        completes = [subtree for subtree in within if filled.issuperset(self._plan.lists[subtree])]
        return tuple(within), tuple(avoids), tuple(completes)

    def _slots_to_avoid(self, new_slot: int, earlier: Sequence[int]) -> tuple[int, ...]:
        """Return the earlier slots that need other providers than a slot of a suffixed group."""
        is_rival = self._suffixed if self._isolated[new_slot] else self._isolated
        return tuple(number for number in earlier if is_rival[number])

    def _summed_slots(
        self, new_slot: int, differs: Sequence[int], earlier: Sequence[int]
    ) -> dict[str, SummedSlots]:
        summed: dict[str, SummedSlots] = {}
        if len(differs) == len(earlier):
            return summed
        differing = set(differs)
        for name, amount in self._plan.slots[new_slot].resources.items():
            competing = self._competing.get(name, frozenset())
            if new_slot not in competing:
                continue
            rivals = tuple(slot for slot in earlier if slot in competing and slot not in differing)
            if rivals:
                amounts = np.array(
                    [self._plan.slots[slot].resources[name] for slot in rivals], dtype=np.int64
                )
                amounts.flags.writeable = False
                summed[name] = SummedSlots(amount, rivals, amounts)
        return summed
