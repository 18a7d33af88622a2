# SPDX-License-Identifier: Apache-2.0
"""Slots whose providers have the same value of an attribute, or different ones.

See contract page 102, section 1: `match` and `distinct`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from treeclaim.forest.question.slots import Slot
from treeclaim.model.extension.expressions import Exists, Expression
from treeclaim.model.request import CandidateRequest, RequestGroup


@dataclass(frozen=True, slots=True)
class SlotValues:
    """Slots whose providers are compared by an attribute.

    Attributes:
        name: Of the attribute.
        slots: At least two, ascending.
        is_same: Whether all have the same value; else each has another one.
    """

    name: str
    slots: tuple[int, ...]
    is_same: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """What a slot has to be compared with when it is filled.

    Attributes:
        name: Of the attribute.
        slots: Earlier ones; a single one where all have the same value.
        is_same: Whether the values are to be the same; else different from each.
    """

    name: str
    slots: tuple[int, ...]
    is_same: bool


def slot_values_of(request: CandidateRequest, slots: Sequence[Slot]) -> tuple[SlotValues, ...]:
    """Return which slots are compared, each comparison once."""
    by_suffix = {slot.suffix: number for number, slot in enumerate(slots)}
    found = {
        SlotValues(
            listed.name,
            tuple(sorted(by_suffix[suffix] for suffix in listed.suffixes)),
            listed.is_same,
        )
        for listed in request.values
    }
    return tuple(sorted(found, key=lambda values: (values.name, values.slots, values.is_same)))


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
    values: Sequence[SlotValues], slot: int, earlier: Sequence[int]
) -> tuple[Compared, ...]:
    """Return what a slot is compared with, given those that are filled earlier."""
    found = []
    before = frozenset(earlier)
    for listed in values:
        if slot in listed.slots:
            others = tuple(other for other in listed.slots if other in before)
            if others:
                compared = others[:1] if listed.is_same else others
                found.append(Compared(listed.name, compared, listed.is_same))
    return tuple(found)
