# SPDX-License-Identifier: Apache-2.0
"""The slots of a request: the demand of each, and the slots that are compared by an attribute.

Contract page 102, section 1, defines the comparisons `match` and `distinct`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from treeclaim.model.extension.expressions import Exists, Expression
from treeclaim.model.provider import MAXIMUM_INTEGER
from treeclaim.model.request import NO_GROUP, STRICT, CandidateRequest, RequestGroup

BEYOND_ANY_ROOM = MAXIMUM_INTEGER + 1
"""Replaces every greater amount of a slot, so that sums fit into 64 bits: a provider gives at most
its max_unit to one candidate, so none gives this amount, or a sum with it."""

BEYOND_ALL_ROOM = 2**62
"""The same bound for an amount that several providers give: more than two thousand million of them."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The demand of a slot. A slot is a place in a candidate that takes one provider.

    Attributes:
        suffix: The group's suffix, "" for a slot of the unsuffixed group.
        resources: Amounts that the provider gives, by class name; empty for a resourceless
            group.
        group: Index in `Plan.groups` of its group.
        part: Number of the slot in that group.
        lenient: Classes of which some limit is ignored, to explain a search.
    """

    suffix: str
    resources: Mapping[str, int]
    group: int
    part: int
    lenient: frozenset[str] = frozenset()


def slots_of(
    groups: Sequence[RequestGroup],
) -> tuple[tuple[RequestGroup, ...], tuple[Slot, ...]]:
    """Return the groups, without repetitions of equal ones, and the slots of all."""
    distinct: list[RequestGroup] = []
    slots = []
    for group in groups:
        same = [number for number, other in enumerate(distinct) if _asks_the_same(group, other)]
        number = same[0] if same else len(distinct)
        if not same:
            distinct.append(group)
        lenient = frozenset([name for name, how in group.leniency.items() if how != STRICT])
        saturated = {
            name: min(amount, BEYOND_ANY_ROOM) for name, amount in group.resources.items()
        }
        parts = [saturated]
        if group.suffix == NO_GROUP:
            parts = [{name: amount} for name, amount in saturated.items()]
        for part, amounts in enumerate(parts):
            slots.append(Slot(group.suffix, amounts, number, part, lenient))
    return tuple(distinct), tuple(slots)


def _asks_the_same(group: RequestGroup, other: RequestGroup) -> bool:
    return (
        NO_GROUP not in (group.suffix, other.suffix)
        and group.resources == other.resources
        and group.conditions == other.conditions
        and group.leniency == other.leniency
    )


@dataclass(frozen=True, slots=True)
class JointConstraint:
    """Slots that compete.

    Attributes:
        slots: At least two.
        resource_class: The class that they share; None where each needs a provider of its own.
        least: The smallest amount (1 without a class).
        total: The sum of the amounts.
    """

    slots: tuple[int, ...]
    resource_class: str | None
    least: int
    total: int


def joint_constraints_of(
    slots: Sequence[Slot], request: CandidateRequest, numbers: Sequence[int]
) -> tuple[JointConstraint, ...]:
    """Find out which of some slots compete."""
    joint_constraints = []
    alone = tuple([slot for slot in numbers if slots[slot].suffix in request.isolated])
    if len(alone) > 1:
        joint_constraints.append(JointConstraint(alone, None, 1, len(alone)))
    if not request.sums_groups:
        return tuple(joint_constraints)
    by_class: dict[str, list[int]] = {}
    for number in numbers:
        for name in slots[number].resources:
            # An amount of which a limit is overlooked is not added to others either.
            if name not in slots[number].lenient:
                by_class.setdefault(name, []).append(number)
    for name, competing in by_class.items():
        if len(competing) > 1:
            joint_constraints += _joint_constraint_for(slots, name, tuple(competing))
    return tuple(joint_constraints)


def _joint_constraint_for(
    slots: Sequence[Slot], name: str, numbers: tuple[int, ...]
) -> list[JointConstraint]:
    """Return the joint constraint of some slots for a class, none if there are not two."""
    amounts = [slots[slot].resources[name] for slot in numbers]
    return [JointConstraint(numbers, name, min(amounts), sum(amounts))] if len(numbers) > 1 else []


def without_disjoint(
    slots: Sequence[Slot],
    joint_constraints: Iterable[JointConstraint],
    disjoint: frozenset[tuple[int, str]],
) -> tuple[JointConstraint, ...]:
    """Return joint constraints without the slots that do not compete for the class."""
    remaining_constraints: list[JointConstraint] = []
    for constraint in joint_constraints:
        name = constraint.resource_class
        if name is None:
            remaining_constraints.append(constraint)
        else:
            numbers = tuple(slot for slot in constraint.slots if (slot, name) not in disjoint)
            remaining_constraints += _joint_constraint_for(slots, name, numbers)
    return tuple(remaining_constraints)


@dataclass(frozen=True, slots=True)
class SlotComparison:
    """Slots whose providers are compared by an attribute, or the earlier slots with which a slot is compared.

    Attributes:
        name: The name of the attribute.
        slots: The slots, ascending.
        is_same: Whether all have the same value; else each has another one.
    """

    name: str
    slots: tuple[int, ...]
    is_same: bool


def slot_values_of(request: CandidateRequest, slots: Sequence[Slot]) -> tuple[SlotComparison, ...]:
    """Return which slots are compared, each comparison once."""
    by_suffix = {slot.suffix: number for number, slot in enumerate(slots)}
    slot_values = {
        SlotComparison(
            listed.name,
            tuple(sorted(by_suffix[suffix] for suffix in listed.suffixes)),
            listed.is_same,
        )
        for listed in request.values
    }
    return tuple(
        sorted(slot_values, key=lambda values: (values.name, values.slots, values.is_same))
    )


def having_what_is_compared(request: CandidateRequest) -> tuple[RequestGroup, ...]:
    """Return the groups of a request; those that are compared have the attributes."""
    names: dict[str, dict[str, None]] = {}
    for listed in request.values:
        for suffix in listed.suffixes:
            names.setdefault(suffix, {})[listed.name] = None
    return tuple(
        group if group.suffix not in names else _having(group, sorted(names[group.suffix]))
        for group in request.groups
    )


def _having(group: RequestGroup, names: Sequence[str]) -> RequestGroup:
    has = tuple(Expression(f"exists {name}", Exists(name), (name,)) for name in names)
    return replace(
        group, conditions=replace(group.conditions, where=(*group.conditions.where, *has))
    )


def compared_with(
    values: Sequence[SlotComparison], slot: int, earlier: Sequence[int]
) -> tuple[SlotComparison, ...]:
    """Return the earlier slots with which a slot is compared: one of them if all have the same value."""
    comparisons = []
    before = frozenset(earlier)
    for listed in values:
        if slot in listed.slots:
            earlier_slots = tuple(
                earlier_slot for earlier_slot in listed.slots if earlier_slot in before
            )
            if earlier_slots:
                compared = earlier_slots[:1] if listed.is_same else earlier_slots
                comparisons.append(SlotComparison(listed.name, compared, listed.is_same))
    return tuple(comparisons)
