# SPDX-License-Identifier: Apache-2.0
"""What can be said of a request before any provider is looked at.

Schedulers ask the same few questions all day, one for each flavor, so plans are cached.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from treeclaim.forest.bounds.cache import ByteCache, size_of
from treeclaim.forest.question.slots import (
    BEYOND_ALL_ROOM,
    JointConstraint,
    Slot,
    SlotValues,
    having_what_is_compared,
    joint_constraints_of,
    slot_values_of,
    slots_of,
    without_disjoint,
)
from treeclaim.model.request import NO_GROUP, CandidateRequest, RequestGroup

_PLANS_BYTES = 12_000_000
"""Bytes of plans: some thousand of usual requests, or a few of very large ones."""

_PLAN_BYTES = 4_000
"""Bytes that are counted for a plan besides its request."""

_GROUP_BYTES = 1_500
_RESOURCE_BYTES = 400
"""Memory that is counted for a group of a request, and for each resource that it asks for: a name
has 255 characters at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A request in the form in which the search works on it. Plans are equal by value.

    Attributes:
        request: What was asked.
        groups: Its groups; of several that ask for the same, one.
        wants: What each slot asks for, in the order of the columns of a candidate.
        lists: The slots inside of each same_subtree list; lists that say nothing are left out.
        outside: For each of them the slots that must be outside.
        joint_constraints: Which slots compete.
        subtree_constraints: For each of the lists: which of its slots compete.
        unsuffixed: The slots of the unsuffixed group.
        required: The sets of traits that the providers of the unsuffixed group must cover
            together.
        values: Which slots' providers have the same value of an attribute, or different ones.
        split: Amounts of the classes of the unsuffixed group that several providers may give;
            no slot is for them.
        disjoint: Slots and names of classes for which no other slot can use the same provider.
        nbytes: Memory that it takes, with the request.
    """

    request: CandidateRequest
    groups: tuple[RequestGroup, ...]
    slots: tuple[Slot, ...]
    lists: tuple[tuple[int, ...], ...]
    outside: tuple[tuple[int, ...], ...]
    joint_constraints: tuple[JointConstraint, ...]
    subtree_constraints: tuple[tuple[JointConstraint, ...], ...]
    unsuffixed: tuple[int, ...]
    required: tuple[frozenset[str], ...]
    values: tuple[SlotValues, ...]
    split: Mapping[str, int]
    disjoint: frozenset[tuple[int, str]] = frozenset()

    nbytes: int = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Compute once what caches ask for again and again."""
        object.__setattr__(self, "nbytes", _PLAN_BYTES + _bytes_of(self.request))
        object.__setattr__(self, "_hash", hash((self.request, self.disjoint)))

    def __eq__(self, other: object) -> bool:
        """Compare by value: all of a plan follows from the request and what is disjoint."""
        return self is other or (
            isinstance(other, Plan)
            and self.request == other.request
            and self.disjoint == other.disjoint
        )

    def __hash__(self) -> int:
        """Return the hash of the value."""
        return self._hash

    def without_disjoint(self, disjoint: frozenset[tuple[int, str]]) -> "Plan":
        """Return the plan where some slots do not compete for a class; the same one each time.

        Args:
            disjoint: Slots and names of classes for which no other slot can use the same provider.
        """
        if not disjoint:
            return self
        return _plans.get((self, disjoint), lambda: self._without_disjoint(disjoint))

    def _without_disjoint(self, disjoint: frozenset[tuple[int, str]]) -> "Plan":
        return replace(
            self,
            joint_constraints=without_disjoint(self.slots, self.joint_constraints, disjoint),
            subtree_constraints=tuple(
                without_disjoint(self.slots, joint_constraints, disjoint)
                for joint_constraints in self.subtree_constraints
            ),
            disjoint=disjoint,
        )


def _bytes_of(request: CandidateRequest) -> int:
    """Estimate the memory of a request; an exact measure would take long."""
    conditions = [request.root, *(group.conditions for group in request.groups)]
    amounts = [amount for group in request.groups for amount in group.resources.values()]
    return (
        _GROUP_BYTES * len(request.groups)
        + _RESOURCE_BYTES * len(amounts)
        + sum(map(int.bit_length, amounts)) // 8
        + sum(size_of(condition) for condition in conditions if not condition.is_empty)
        + size_of(request.same_subtree)
        + size_of(request.values)
    )


_plans = ByteCache(_PLANS_BYTES, lambda _: 0, makes_read_only=False)
"""Plans by request, and by plan and what is disjoint there; a plan counts its request."""


def plan_of(request: CandidateRequest) -> Plan:
    """Return the plan of a request; mostly the same one for the same request."""
    return _plans.get(request, lambda: _planned(request))


def _planned(request: CandidateRequest) -> Plan:
    split, required = _split(request)
    asked = having_what_is_compared(request)
    if split:
        asked = tuple(_without(split, group) for group in asked)
    groups, slots = slots_of(asked)
    unsuffixed = tuple(number for number, slot in enumerate(slots) if slot.suffix == NO_GROUP)
    lists = _subtree_lists(request, slots)
    return Plan(
        request=request,
        groups=groups,
        slots=slots,
        lists=tuple(inside for inside, _ in lists),
        outside=tuple(outside for _, outside in lists),
        joint_constraints=joint_constraints_of(slots, request, range(len(slots))),
        subtree_constraints=tuple(
            joint_constraints_of(slots, request, inside) for inside, _ in lists
        ),
        unsuffixed=unsuffixed,
        # The provider of a single class is chosen by its traits in the first place.
        required=required if split or len(unsuffixed) > 1 else (),
        values=slot_values_of(request, slots),
        split=split,
    )


def _split(request: CandidateRequest) -> tuple[Mapping[str, int], tuple[frozenset[str], ...]]:
    """Return the amounts to split, and the traits that the unsuffixed group requires."""
    for group in request.groups:
        if group.suffix == NO_GROUP:
            names = [name for name in group.resources if name in request.can_split]
            split = {name: min(group.resources[name], BEYOND_ALL_ROOM) for name in names}
            return split, group.conditions.required
    return {}, ()


def _without(split: Mapping[str, int], group: RequestGroup) -> RequestGroup:
    """Return a group without what is split, and without traits that can be judged only then."""
    if group.suffix != NO_GROUP:
        return group
    resources = {name: n for name, n in group.resources.items() if name not in split}
    return replace(group, resources=resources, conditions=replace(group.conditions, required=()))


def _subtree_lists(
    request: CandidateRequest, slots: Sequence[Slot]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the slots inside and outside of each list that says something."""
    by_suffix = {slot.suffix: index for index, slot in enumerate(slots)}

    def numbers(suffixes: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted({by_suffix[suffix] for suffix in suffixes}))

    lists = {(numbers(listed.inside), numbers(listed.outside)) for listed in request.same_subtree}
    return sorted(
        slots_of_list for slots_of_list in lists if len(slots_of_list[0]) > 1 or slots_of_list[1]
    )
