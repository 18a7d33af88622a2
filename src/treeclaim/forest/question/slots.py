# SPDX-License-Identifier: Apache-2.0
"""The slots of a request: their demands, competition, and comparisons (contract page 102, section 1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from treeclaim.model.extension.expressions import Existence, Expression
from treeclaim.model.provider import MAXIMUM_INTEGER
from treeclaim.model.request import NO_GROUP, STRICT, CandidateRequest, RequestGroup

MAXIMUM_SLOT_AMOUNT = MAXIMUM_INTEGER + 1
"""Replaces greater amounts of a slot, so that sums fit into 64 bits. It exceeds every max_unit, so no provider
gives it."""

MAXIMUM_SPLIT_AMOUNT = 2**62
"""Replaces greater amounts that several providers give; it exceeds the sum of two thousand million providers."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a candidate that takes one provider, with its demand.

    Attributes:
        suffix: The group's suffix, "" for a slot of the unsuffixed group.
        resources: Amounts that the provider gives, by class name; empty for a resourceless group.
        group: Index of its group in `Plan.groups`.
        part: Number of the slot in that group.
        counted: The resources that add to those of other slots; only an explanation ignores limits and omits classes.
    """

    suffix: str
    resources: Mapping[str, int]
    group: int
    part: int
    counted: Mapping[str, int]


def build_slots(
    groups: Sequence[RequestGroup],
) -> tuple[tuple[RequestGroup, ...], tuple[Slot, ...]]:
    """Return the distinct groups, and the slots of all groups."""
    distinct: list[RequestGroup] = []
    slots = []
    for group in groups:
        equal_groups = (
            number for number, earlier in enumerate(distinct) if _have_equal_demand(group, earlier)
        )
        number = next(equal_groups, len(distinct))
        if number == len(distinct):
            distinct.append(group)
        bounded = {
            name: min(amount, MAXIMUM_SLOT_AMOUNT) for name, amount in group.resources.items()
        }
        parts = [bounded]
        if group.suffix == NO_GROUP:
            parts = [{name: amount} for name, amount in bounded.items()]
        for part, resources in enumerate(parts):
            counted = {
                name: amount
                for name, amount in resources.items()
                if group.leniency.get(name, STRICT) == STRICT
            }
            slots.append(Slot(group.suffix, resources, number, part, counted))
    return tuple(distinct), tuple(slots)


def _have_equal_demand(first: RequestGroup, second: RequestGroup) -> bool:
    return (
        NO_GROUP not in (first.suffix, second.suffix)
        and first.resources == second.resources
        and first.conditions == second.conditions
        and first.leniency == second.leniency
    )


@dataclass(frozen=True, slots=True)
class JointConstraint:
    """At least two slots that compete for providers.

    Attributes:
        resource_class: The class that they share; None if each needs a different provider.
        least: The smallest amount (1 without a class).
        total: The sum of the amounts.
    """

    slots: tuple[int, ...]
    resource_class: str | None
    least: int
    total: int


def find_joint_constraints(
    slots: Sequence[Slot], request: CandidateRequest, numbers: Sequence[int]
) -> tuple[JointConstraint, ...]:
    """Return the joint constraints of the slots with some numbers."""
    joint_constraints = []
    isolated = tuple([number for number in numbers if slots[number].suffix in request.isolated])
    if len(isolated) > 1:
        joint_constraints.append(JointConstraint(isolated, None, 1, len(isolated)))
    if not request.sums_groups:
        return tuple(joint_constraints)
    numbers_by_class: dict[str, list[int]] = {}
    for number in numbers:
        for name in slots[number].counted:
            numbers_by_class.setdefault(name, []).append(number)
    for name, competing in numbers_by_class.items():
        joint_constraints += _joint_constraint_for(slots, name, tuple(competing))
    return tuple(joint_constraints)


def _joint_constraint_for(
    slots: Sequence[Slot], name: str, numbers: tuple[int, ...]
) -> list[JointConstraint]:
    amounts = [slots[number].resources[name] for number in numbers]
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
    """Slots with providers that are compared by an attribute.

    Attributes:
        slots: All compared slots, ascending; in a step, the earlier slots.
        is_same: Whether all values must be equal (`match`), else pairwise different (`distinct`).
    """

    name: str
    slots: tuple[int, ...]
    is_same: bool


def find_comparisons(
    request: CandidateRequest, slots: Sequence[Slot]
) -> tuple[SlotComparison, ...]:
    """Return the distinct comparisons of a request, sorted."""
    number_by_suffix = {slot.suffix: number for number, slot in enumerate(slots)}
    comparisons = {
        SlotComparison(
            values.name,
            tuple(sorted(number_by_suffix[suffix] for suffix in values.suffixes)),
            values.is_same,
        )
        for values in request.values
    }
    return tuple(sorted(comparisons, key=lambda each: (each.name, each.slots, each.is_same)))


def require_compared_attributes(request: CandidateRequest) -> tuple[RequestGroup, ...]:
    """Return the groups of a request, compared ones with the condition that the attributes exist."""
    names_by_suffix: dict[str, set[str]] = {}
    for values in request.values:
        for suffix in values.suffixes:
            names_by_suffix.setdefault(suffix, set()).add(values.name)
    return tuple(
        _require_attributes(group, sorted(names_by_suffix.get(group.suffix, ())))
        for group in request.groups
    )


def _require_attributes(group: RequestGroup, names: Sequence[str]) -> RequestGroup:
    if not names:
        return group
    exist = tuple(Expression(f"exists {name}", Existence(name), (name,)) for name in names)
    return replace(
        group, conditions=replace(group.conditions, where=(*group.conditions.where, *exist))
    )


def select_comparisons(
    comparisons: Sequence[SlotComparison], slot: int, earlier: Sequence[int]
) -> tuple[SlotComparison, ...]:
    """Return the comparisons of a slot with earlier slots; for `match`, one earlier slot is sufficient."""
    selected = []
    earlier_slots = frozenset(earlier)
    for comparison in comparisons:
        if slot not in comparison.slots:
            continue
        compared = tuple(number for number in comparison.slots if number in earlier_slots)
        if compared:
            if comparison.is_same:
                compared = compared[:1]
            selected.append(replace(comparison, slots=compared))
    return tuple(selected)
