# SPDX-License-Identifier: Apache-2.0
"""Slots that compete: for separate providers, or for the capacity of a class."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treeclaim.forest.question.slots import Slot
from treeclaim.model.request import CandidateRequest


@dataclass(frozen=True, slots=True)
class JointConstraint:
    """Slots that compete.

    Attributes:
        slots: At least two.
        resource_class: What they share; None where each needs a provider of its own.
        least: The smallest amount asked for (1 without a class).
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
    alone = tuple(slot for slot in numbers if slots[slot].suffix in request.isolated)
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
    left: list[JointConstraint] = []
    for constraint in joint_constraints:
        name = constraint.resource_class
        if name is None:
            left.append(constraint)
        else:
            numbers = tuple(slot for slot in constraint.slots if (slot, name) not in disjoint)
            left += _joint_constraint_for(slots, name, numbers)
    return tuple(left)
