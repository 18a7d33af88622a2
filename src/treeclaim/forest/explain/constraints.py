# SPDX-License-Identifier: Apache-2.0
"""Splits a request into single constraints, and builds requests with fewer of them.

An explanation repeats the search with fewer constraints. Only the search judges providers.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from treeclaim.forest.table.columns import cap_count
from treeclaim.model.extension.expressions import Expression
from treeclaim.model.request import (
    NO_GROUP,
    CandidateRequest,
    Leniency,
    ProviderConditions,
    RequestGroup,
)


class Reason(StrEnum):
    """The reason that excludes a tree; also a label in metrics."""

    NO_INVENTORY = "no_inventory"
    """No provider has any inventory of the class."""
    AMOUNT_UNIT = "amount_unit"
    """min_unit, max_unit or step_size does not allow the amount."""
    CAPACITY = "capacity"
    """The free capacity is too low."""
    CONDITION = "condition"
    """Conditions of providers or their ancestors forbid new allocations (page 102, section 3)."""
    CONSUMED = "consumed"
    """The free capacity of a consumed inventory is too low (page 102, section 2)."""
    TRAIT_MISSING = "trait_missing"
    TRAIT_FORBIDDEN = "trait_forbidden"
    NOT_MEMBER_OF = "not_member_of"
    FORBIDDEN_MEMBER_OF = "forbidden_member_of"
    NOT_IN_TREE = "not_in_tree"
    NOT_IN_SUBTREE = "not_in_subtree"
    ROOT_TRAIT = "root_trait"
    """The root lacks a required trait, or has a forbidden one."""
    ROOT_MEMBER_OF = "root_member_of"
    """The root is not in a required aggregate, or is in a forbidden one."""
    WHERE = "where"
    """An expression about a provider's attributes does not hold (page 102, section 1)."""
    ROOT_WHERE = "root_where"
    """An expression about the root's attributes does not hold."""
    SAME_SUBTREE = "same_subtree"
    ISOLATE = "isolate"
    MATCH = "match"
    """No providers of the groups have the same value of an attribute."""
    DISTINCT = "distinct"
    """Providers of groups must have distinct values of an attribute."""
    COMBINED_CAPACITY = "combined_capacity"
    """Each group fits alone, but not all groups together."""
    NO_COMMON_TREE = "no_common_tree"
    """Every group has providers, but no tree serves them all."""
    RULE = "rule"
    """A rule of a placing call leaves none of the trees (page 98, section 4)."""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A single condition of a request; equal by identity.

    Attributes:
        reason: The reason reported for a tree that violates it.
        group: Suffix of its group; None for a constraint on the root or on several groups.
        value: The value in the request.
        detail: Members of the explanation that describe it.
        text: The client's query parameter, or a description.
        attributes: Names of the attributes that it reads.
        part: Field of `ProviderConditions` with the value; empty for other constraints.
    """

    reason: Reason
    group: str | None
    value: Any
    detail: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    attributes: tuple[str, ...] = ()
    part: str = ""


_ROOT_REASONS = {
    "required": Reason.ROOT_TRAIT,
    "forbidden": Reason.ROOT_TRAIT,
    "member_of": Reason.ROOT_MEMBER_OF,
    "in_tree": Reason.NOT_IN_TREE,
    "not_in_tree": Reason.NOT_IN_TREE,
    "forbidden_aggregates": Reason.ROOT_MEMBER_OF,
    "where": Reason.ROOT_WHERE,
}
"""Reasons of the conditions on the root, in the order of evaluation."""

_GROUP_REASONS = {
    "in_tree": Reason.NOT_IN_TREE,
    "in_subtree": Reason.NOT_IN_SUBTREE,
    "required": Reason.TRAIT_MISSING,
    "forbidden": Reason.TRAIT_FORBIDDEN,
    "member_of": Reason.NOT_MEMBER_OF,
    "forbidden_aggregates": Reason.FORBIDDEN_MEMBER_OF,
    "where": Reason.WHERE,
}
"""Reasons of the conditions on a group, in the order of evaluation."""

_PARAMETERS = {
    "forbidden": "required",
    "forbidden_aggregates": "member_of",
    "not_in_tree": "in_tree",
}
"""Query parameters of the negated conditions, which have values with a leading `!`."""


def split_into_constraints(
    request: CandidateRequest,
    conditioned: Collection[str] = (),
    consuming: Collection[str] = (),
) -> list[Constraint]:
    """Return the single constraints of a request, in the search's order of evaluation.

    `conditioned` has the suffixes of groups to which conditions of providers apply, and `consuming` the
    classes with inventories that consume others.
    """
    constraints = [*_constrain_conditions(request.root, None)]
    for group in request.groups:
        constraints += _constrain_amounts(group, request.can_split)
        if group.resources and group.suffix in conditioned:
            constraints.append(_constrain_providers(group))
        constraints += _constrain_consumption(group, request.can_split, consuming)
        constraints += _constrain_conditions(group.conditions, group.suffix)
    constraints += _constrain_groups_together(request, consuming)
    return constraints


def _constrain_amounts(group: RequestGroup, can_split: Collection[str]) -> Iterator[Constraint]:
    for name, amount in group.resources.items():
        detail = {"resource_class": name, "requested": cap_count(amount)}
        parameter = f"resources{group.suffix}={name}:{amount}"
        yield Constraint(
            Reason.NO_INVENTORY, group.suffix, name, {"resource_class": name}, parameter
        )
        text = f"the limits of min_unit, max_unit and step_size for {parameter}"
        units = Constraint(Reason.AMOUNT_UNIT, group.suffix, name, detail, text)
        text = f"the limit of free capacity for {parameter}"
        capacity = Constraint(Reason.CAPACITY, group.suffix, name, detail, text)
        # Unit limits do not apply to an amount that is not divided yet.
        is_split = name in can_split and group.suffix == NO_GROUP
        yield from (capacity, units) if is_split else (units, capacity)


def _constrain_providers(group: RequestGroup) -> Constraint:
    """Return the constraint that no untolerated condition applies; `details` finds the condition later."""
    text = "the conditions of providers"
    if group.suffix != NO_GROUP:
        text += f" for resources{group.suffix}"
    tolerated = group.conditions.tolerates
    return Constraint(Reason.CONDITION, group.suffix, tolerated, {}, text, part="tolerates")


def _constrain_consumption(
    group: RequestGroup, can_split: Collection[str], consuming: Collection[str]
) -> Iterator[Constraint]:
    # A split amount has no such constraint: free capacity, consumption included, limits each part.
    for name, amount in group.resources.items():
        if name in consuming and (name not in can_split or group.suffix != NO_GROUP):
            detail = {"resource_class": name, "amount": cap_count(amount)}
            text = f"the limit of what resources{group.suffix}={name}:{amount} consumes"
            yield Constraint(Reason.CONSUMED, group.suffix, name, detail, text)


def _constrain_conditions(
    conditions: ProviderConditions, group: str | None
) -> Iterator[Constraint]:
    for part, reason in (_ROOT_REASONS if group is None else _GROUP_REASONS).items():
        values = getattr(conditions, part)
        if isinstance(values, frozenset):
            values = sorted(values)
        elif part.endswith("tree"):
            values = [values] if values else []
        parameter = _PARAMETERS.get(part, part)
        key = f"root_{parameter}" if group is None else f"{parameter}{group}"
        for value in values:
            detail, text = _describe(part, value, is_root=group is None)
            names = value.names if isinstance(value, Expression) else ()
            yield Constraint(reason, group, value, detail, f"{key}={text}", names, part)


def _describe(part: str, value: Any, *, is_root: bool) -> tuple[dict[str, Any], str]:
    """Return the detail of a condition and its value in query syntax."""
    if part == "where":
        return {"expression": value.text}, value.text
    if part == "required":
        return _traits(value), _any_of(value)
    if part == "member_of":
        return {"aggregates": sorted(value)}, _any_of(value)
    if part in {"forbidden", "forbidden_aggregates"}:
        name = "trait" if part == "forbidden" else "aggregate"
        return {f"forbidden_{name}" if is_root else name: value}, f"!{value}"
    if part == "not_in_tree":
        return {"forbidden_providers": list(value)}, f"!{_any_of(value)}"
    return {"providers": list(value)}, _any_of(value)


def _constrain_groups_together(
    request: CandidateRequest, consuming: Collection[str]
) -> Iterator[Constraint]:
    for subtree in request.same_subtree:
        names = [*subtree.inside, *(f"!{suffix}" for suffix in subtree.outside)]
        if len(subtree.inside) > 1 or subtree.outside:
            text = f"same_subtree={','.join(names)}"
            yield Constraint(Reason.SAME_SUBTREE, None, subtree, {"groups": names}, text)
    suffixed = [group.suffix for group in request.groups if group.suffix != NO_GROUP]
    if request.isolated and len(suffixed) > 1:
        names = [suffix for suffix in suffixed if suffix in request.isolated]
        is_policy = len(names) == len(suffixed)
        text = "group_policy=isolate" if is_policy else f"isolate={','.join(names)}"
        yield Constraint(Reason.ISOLATE, None, request.isolated, {"groups": names}, text)
    for values in request.values:
        reason = Reason.MATCH if values.is_same else Reason.DISTINCT
        suffixes = list(values.suffixes)
        text = f"{reason}={':'.join([values.name, *suffixes])}"
        detail = {"attribute": values.name, "groups": suffixes}
        yield Constraint(reason, None, values, detail, text, (values.name,))
    shared = _shared_classes(request, consuming)
    if shared:
        text = "counting what the groups take of a provider together"
        detail = {"resource_classes": shared}
        yield Constraint(Reason.COMBINED_CAPACITY, None, None, detail, text)


def _shared_classes(request: CandidateRequest, consuming: Collection[str]) -> list[str]:
    """Return the classes of several groups, and the classes that may consume the same inventory."""
    counts = Counter(name for group in request.groups for name in group.resources)
    may_meet = counts.total() > 1
    return [name for name, n in counts.items() if n > 1 or (may_meet and name in consuming)]


def _traits(names: Collection[str]) -> dict[str, Any]:
    return {"trait": next(iter(names))} if len(names) == 1 else {"any_trait": sorted(names)}


def _any_of(names: Collection[str]) -> str:
    return next(iter(names)) if len(names) == 1 else "in:" + ",".join(sorted(names))


_Parts = Mapping[tuple[str, str | None], Sequence[Any]]
"""Values of the kept constraints by part (or reason, without a part) and group."""


def reduce_request(
    request: CandidateRequest,
    kept_constraints: Collection[Constraint],
    groups: Collection[str] | None,
    consuming: Collection[str],
) -> CandidateRequest:
    """Return a request with some of its constraints, and the groups with some suffixes (None for all).

    `consuming` has the classes with inventories that consume others.
    """
    parts: defaultdict[tuple[str, str | None], list[Any]] = defaultdict(list)
    for constraint in kept_constraints:
        parts[constraint.part or constraint.reason, constraint.group].append(constraint.value)
    reduced_groups = [
        _reduced_group(group, parts, consuming, request.can_split)
        for group in request.groups
        if groups is None or group.suffix in groups
    ]
    suffixes = {group.suffix for group in reduced_groups}
    subtrees = parts.get((Reason.SAME_SUBTREE, None), [])
    comparisons = [
        *parts.get((Reason.MATCH, None), []),
        *parts.get((Reason.DISTINCT, None), []),
    ]
    return replace(
        request,
        groups=tuple(reduced_groups),
        root=replace(_reduced_conditions(parts, None), tolerates=request.root.tolerates),
        same_subtree=tuple(
            subtree
            for subtree in subtrees
            if suffixes.issuperset((*subtree.inside, *subtree.outside))
        ),
        isolated=request.isolated & suffixes if (Reason.ISOLATE, None) in parts else frozenset(),
        values=tuple(values for values in comparisons if suffixes.issuperset(values.suffixes)),
        can_split=request.can_split.intersection(parts.get((Reason.CAPACITY, NO_GROUP), [])),
        sums_groups=(Reason.COMBINED_CAPACITY, None) in parts,
        limit=None,
        order=None,
    )


def _reduced_conditions(parts: _Parts, group: str | None) -> ProviderConditions:
    def get_values(part: str) -> Sequence[Any]:
        return parts.get((part, group), ())

    return ProviderConditions(
        required=tuple(get_values("required")),
        forbidden=frozenset(get_values("forbidden")),
        member_of=tuple(get_values("member_of")),
        forbidden_aggregates=frozenset(get_values("forbidden_aggregates")),
        in_tree=next(iter(get_values("in_tree")), ()),
        in_subtree=next(iter(get_values("in_subtree")), ()),
        not_in_tree=next(iter(get_values("not_in_tree")), ()),
        where=tuple(get_values("where")),
        tolerates=next(iter(get_values("tolerates")), None),
    )


def _reduced_group(
    group: RequestGroup, parts: _Parts, consuming: Collection[str], can_split: Collection[str]
) -> RequestGroup:
    def get_values(reason: Reason) -> Sequence[Any]:
        return parts.get((reason, group.suffix), ())

    classes, units, capacity, consumed = map(
        get_values, (Reason.NO_INVENTORY, Reason.AMOUNT_UNIT, Reason.CAPACITY, Reason.CONSUMED)
    )
    if group.suffix == NO_GROUP:
        units = [name for name in units if name not in can_split or name in capacity]
    return RequestGroup(
        suffix=group.suffix,
        resources={name: n for name, n in group.resources.items() if name in classes},
        leniency={
            name: Leniency(
                ignore_units=name not in units,
                ignore_capacity=name not in capacity,
                ignore_consumed_capacity=name in consuming and name not in consumed,
            )
            for name in classes
        },
        conditions=_reduced_conditions(parts, group.suffix),
    )


def matching_key(request: CandidateRequest) -> Hashable:
    """Return a cache key for the matching trees of a reduced request.

    Equal groups are interchangeable unless another parameter names them. Without constraints
    between groups, a repeated group changes nothing.
    """
    named_suffixes = {suffix for values in request.values for suffix in values.suffixes}
    for subtree in request.same_subtree:
        named_suffixes.update(subtree.inside, subtree.outside)
    suffixes = {group.suffix for group in request.groups} - {NO_GROUP}
    if request.isolated != suffixes:
        named_suffixes |= request.isolated
    groups = [
        replace(group, suffix="_") if group.suffix in suffixes - named_suffixes else group
        for group in request.groups
    ]
    is_bound = request.sums_groups or request.isolated or request.same_subtree or request.values
    counts = Counter(groups) if is_bound else dict.fromkeys(groups, 1)
    without_groups = replace(request, groups=(), isolated=request.isolated & named_suffixes)
    return frozenset(counts.items()), without_groups, bool(request.isolated)
