# SPDX-License-Identifier: Apache-2.0
"""Compiles a request into slots, constraints and steps, which depend on no provider.

Plans are cached: schedulers repeat a few requests all day, one for each flavor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from treeclaim.forest.bounds.cache import ByteCache, size_of
from treeclaim.forest.question.slots import (
    MAXIMUM_SPLIT_AMOUNT,
    JointConstraint,
    Slot,
    SlotComparison,
    build_slots,
    find_comparisons,
    find_joint_constraints,
    require_compared_attributes,
    without_disjoint,
)
from treeclaim.forest.question.steps import Step, order_steps
from treeclaim.model.request import NO_GROUP, CandidateRequest, RequestGroup

_PLANS_BYTES = 12_000_000
"""Bytes of cached plans: thousands of usual requests, or a few very large ones."""

_PLAN_BYTES = 4_000
"""Bytes counted for a plan besides its request."""

_STEP_BYTES = 16
"""Bytes counted for each pair of slots in the steps of a plan."""

_GROUP_BYTES = 1_500
_RESOURCE_BYTES = 400
"""Bytes counted for a group of a request and for each of its resources; a name has at most 255 characters."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A request in the form that the search uses; equal requests usually share it.

    Attributes:
        groups: The distinct groups.
        slots: The slots, in the order of a candidate's columns.
        lists: The slots of each same_subtree list that has an effect.
        outside: For each list, the slots that must be outside.
        joint_constraints: The competing slots.
        subtree_constraints: For each list, its competing slots.
        unsuffixed: The slots of the unsuffixed group.
        required: Sets of traits that the providers of the unsuffixed group must cover together.
        values: The slots compared by an attribute.
        split: Amounts of the unsuffixed group that several providers may give, by class; without slots.
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
    values: tuple[SlotComparison, ...]
    split: Mapping[str, int]

    @cached_property
    def nbytes(self) -> int:
        """Return the bytes of the plan and its request."""
        steps = len(self.slots) + len(self.lists)
        return _PLAN_BYTES + _STEP_BYTES * steps**2 + _estimate_bytes(self.request)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Return the steps of the search, in the canonical order."""
        return order_steps(self)

    def without_disjoint(self, disjoint: frozenset[tuple[int, str]]) -> "Plan":
        """Return the cached plan in which slots do not compete for a class: pairs of slot and class."""
        if not disjoint:
            return self
        return _plans.get((self, disjoint), partial(self._without_disjoint, disjoint))

    def _without_disjoint(self, disjoint: frozenset[tuple[int, str]]) -> "Plan":
        return replace(
            self,
            joint_constraints=without_disjoint(self.slots, self.joint_constraints, disjoint),
            subtree_constraints=tuple(
                without_disjoint(self.slots, joint_constraints, disjoint)
                for joint_constraints in self.subtree_constraints
            ),
        )


def _estimate_bytes(request: CandidateRequest) -> int:
    """Estimate the memory of a request; an exact measure is too slow."""
    nbytes = sum(map(size_of, filter(None, (request.same_subtree, request.values))))
    if not request.root.is_empty:
        nbytes += size_of(request.root)
    for group in request.groups:
        nbytes += _GROUP_BYTES + _RESOURCE_BYTES * len(group.resources)
        nbytes += sum(map(int.bit_length, group.resources.values())) // 8
        if not group.conditions.is_empty:
            nbytes += size_of(group.conditions)
    return nbytes


_plans = ByteCache(_PLANS_BYTES, None, makes_read_only=False)
"""Plans by request, and by plan and disjoint slots."""


def get_plan(request: CandidateRequest) -> Plan:
    """Return the plan of a request, usually from the cache."""
    return _plans.get(request, partial(_make_plan, request))


def _make_plan(request: CandidateRequest) -> Plan:
    split, required = _find_split(request)
    requested_groups = require_compared_attributes(request) if request.values else request.groups
    if split:
        requested_groups = tuple(
            [_remove_split_classes(split, group) for group in requested_groups]
        )
    groups, slots = build_slots(requested_groups)
    unsuffixed = tuple([number for number, slot in enumerate(slots) if slot.suffix == NO_GROUP])
    lists = _find_subtree_lists(request, slots) if request.same_subtree else ()
    inside, outside = zip(*lists, strict=True) if lists else ((), ())
    return Plan(
        request=request,
        groups=groups,
        slots=slots,
        lists=inside,
        outside=outside,
        joint_constraints=find_joint_constraints(slots, request, range(len(slots))),
        subtree_constraints=tuple(map(partial(find_joint_constraints, slots, request), inside)),
        unsuffixed=unsuffixed,
        # For a single class, the traits already restrict the options.
        required=required if split or len(unsuffixed) > 1 else (),
        values=find_comparisons(request, slots) if request.values else (),
        split=split,
    )


def _find_split(request: CandidateRequest) -> tuple[Mapping[str, int], tuple[frozenset[str], ...]]:
    for group in request.groups:
        if group.suffix == NO_GROUP:
            split = {
                name: min(amount, MAXIMUM_SPLIT_AMOUNT)
                for name, amount in group.resources.items()
                if name in request.can_split
            }
            return split, group.conditions.required
    return {}, ()


def _remove_split_classes(split: Mapping[str, int], group: RequestGroup) -> RequestGroup:
    """Return a group without split classes, and without traits, which are checked after the split."""
    if group.suffix != NO_GROUP:
        return group
    resources = {name: n for name, n in group.resources.items() if name not in split}
    return replace(group, resources=resources, conditions=replace(group.conditions, required=()))


def _find_subtree_lists(
    request: CandidateRequest, slots: Sequence[Slot]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    by_suffix = {slot.suffix: index for index, slot in enumerate(slots)}

    def numbers(suffixes: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted({by_suffix[suffix] for suffix in suffixes}))

    lists = {(numbers(listed.inside), numbers(listed.outside)) for listed in request.same_subtree}
    return sorted(
        slots_of_list for slots_of_list in lists if len(slots_of_list[0]) > 1 or slots_of_list[1]
    )
