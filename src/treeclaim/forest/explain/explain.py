# SPDX-License-Identifier: Apache-2.0
"""Explains the outcome of a search for candidates (contract page 97, section 3).

All parts of an explanation are searches with some of the request's single constraints:

- The funnel adds one constraint after the other.
- An advice omits one constraint.
- A tree is blocked by the constraints that must be omitted for it to match.

Each search determines, for all trees at once, whether a tree has a candidate. No search is repeated.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.explain.constraints import Constraint, Reason, split_into_constraints
from treeclaim.forest.explain.details import consuming_classes, find_details
from treeclaim.forest.explain.matching_trees import (
    AMOUNT_REASONS,
    ROOT_REASONS,
    Judge,
    MatchingTrees,
)
from treeclaim.forest.table.columns import cap_count
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import (
    HeldUnits,
    add_held,
    free_holds,
    include_consumption,
    subtract_held,
)
from treeclaim.model.parts import CONDITIONS
from treeclaim.model.request import NO_GROUP, CandidateRequest, RequestGroup

_MOST_PROVIDERS = 10
"""Providers shown for one reason."""


@dataclass(frozen=True)
class Focus:
    """The trees to explain one by one.

    Attributes:
        nearest: Number of nearest non-matching trees.
        tree: UUID of a provider in the only tree to explain; None for the nearest trees.
    """

    nearest: int = 5
    tree: str | None = None


def explain_request(
    forest: Forest,
    request: CandidateRequest,
    focus: Focus,
    budget: Budget = UNBOUNDED,
    *,
    rules: Sequence[Constraint] = (),
    judge: Judge | None = None,
) -> dict[str, Any]:
    """Return the explanation of a request as a document.

    `judge` evaluates the `rules` of a placing call, which are constraints with the reason `rule`.

    Raises:
        SearchGivenUpError, SearchTooLargeError: if the budget is exceeded.
        TraitsNotFoundError, ResourceClassNotFoundError: if the request has an unknown name.
    """
    require_known_names(forest, request)
    unnamed_held = _find_unnamed_held(forest, request)
    forest, request = free_holds(forest, request, budget)
    constraints = split_into_constraints(
        request,
        {group.suffix for group in request.groups if _has_untolerated_conditions(forest, group)},
        consuming_classes(forest, request),
    )
    trees = MatchingTrees(forest, request, [*constraints, *rules], budget, judge)
    empty = MatchingTrees(forest.view_emptied(), request, constraints, budget)
    matching = trees.matching(trees.constraints)
    feasible = bool(matching.any())
    has_room = feasible or bool(trees.matching(constraints).any())
    return {
        "feasible": feasible,
        "fits_when_empty": has_room or empty.is_any_matching(),
        "trees": {"considered": len(forest.order.roots), "matching": int(matching.sum())},
        "funnel": list(_build_funnel(trees)),
        "nearest": [
            _explain_tree(trees, tree, unnamed_held) for tree in _select_trees(trees, focus)
        ],
        "advice": [] if feasible else [*_advise(trees), *_advise_on_holds(trees, unnamed_held)],
    }


def _has_untolerated_conditions(forest: Forest, group: RequestGroup) -> bool:
    links, alive = forest.links[CONDITIONS.name], forest.alive.values
    in_force = forest.conditions_in_force(group.conditions.tolerates)
    return any(len(links.rows(condition, alive)) for condition in in_force)


def _find_unnamed_held(forest: Forest, request: CandidateRequest) -> HeldUnits | None:
    """Return the amounts of the holds that a request does not name; None if the Forest has no sums of holds."""
    everywhere = forest.held_amounts.everywhere
    if everywhere is None:
        return None
    named_held = forest.held_amounts.of_holds(forest, request.from_holds)
    return include_consumption(forest, add_held(everywhere, named_held, -1))


def _advise_on_holds(trees: MatchingTrees, unnamed_held: HeldUnits | None) -> Iterator[str]:
    if unnamed_held:
        count = int(trees.match_in(subtract_held(trees.forest, unnamed_held)).sum())
        if count:
            yield f"Without what is held {_format_tree_count(count)} would match."


def _format_tree_count(count: int) -> str:
    return f"{count} tree" if count == 1 else f"{count} trees"


def _build_funnel(trees: MatchingTrees) -> Iterator[dict[str, Any]]:
    """Yield a step for each constraint that excludes further trees."""
    kept_constraints: list[Constraint] = []
    group_suffixes: list[str] = []
    trees_before = trees.matching([], [])
    for constraint in trees.constraints:
        kept_constraints.append(constraint)
        if constraint.group is not None and constraint.group not in group_suffixes:
            group_suffixes.append(constraint.group)
        concerns_groups = constraint.group is None and constraint.reason not in ROOT_REASONS
        trees_after = trees.matching(kept_constraints, None if concerns_groups else group_suffixes)
        if trees_after.sum() < trees_before.sum():
            yield _describe_step(
                trees, constraint, group_suffixes, int(trees_before.sum()), int(trees_after.sum())
            )
        trees_before = trees_after
        if not trees_after.any():
            return


def _describe_step(
    trees: MatchingTrees,
    constraint: Constraint,
    group_suffixes: Sequence[str],
    before: int,
    after: int,
) -> dict[str, Any]:
    group = constraint.group
    is_one_of_many = not after and group is not None and len(group_suffixes) > 1
    if is_one_of_many and trees.matching(trees.of_group(str(group)), [str(group)]).any():
        group, reason = None, Reason.NO_COMMON_TREE
        detail: Mapping[str, Any] = {"groups": list(group_suffixes)}
    else:
        reason, detail = find_details(trees, constraint, None)[0]
    return {
        "group": group,
        "reason": reason.value,
        "detail": dict(detail),
        "trees_before": before,
        "trees_after": after,
    }


def _select_trees(trees: MatchingTrees, focus: Focus) -> list[int]:
    if focus.tree is None:
        return _find_nearest(trees, focus.nearest)
    order = trees.forest.order
    row = trees.forest.row_of(focus.tree)
    if row is None:
        return []
    return [int(order.tree[row])]


def _find_nearest(trees: MatchingTrees, count: int) -> list[int]:
    """Return the non-matching trees, those with the most groups satisfied alone first, then in canonical order."""
    unmatched_trees = np.flatnonzero(~trees.matching(trees.constraints))
    if not count or not len(unmatched_trees):
        return []
    satisfied = np.zeros(len(unmatched_trees), dtype=np.int64)
    for group in trees.request.groups:
        satisfied += trees.matching(trees.of_group(group.suffix), [group.suffix])[unmatched_trees]
    nearest: list[int] = unmatched_trees[np.argsort(-satisfied, kind="stable")][:count].tolist()
    return nearest


def _explain_tree(
    trees: MatchingTrees, tree: int, unnamed_held: HeldUnits | None
) -> dict[str, Any]:
    order = trees.forest.order
    provider = trees.forest.provider(int(order.roots[tree]))
    blocking = [] if trees.matching(trees.constraints)[tree] else list(_find_blocking(trees, tree))
    return {
        "root_provider": {"uuid": provider.uuid, "name": provider.name},
        "blocked_by": [
            {
                "group": constraint.group,
                "reason": reason.value,
                "detail": dict(detail),
                "providers": list(
                    islice(
                        _describe_providers(trees, tree, constraint, unnamed_held), _MOST_PROVIDERS
                    )
                ),
            }
            for constraint in blocking
            for reason, detail in find_details(trees, constraint, tree)
        ],
    }


def _find_blocking(trees: MatchingTrees, tree: int) -> Iterator[Constraint]:
    """Yield the constraints without which a tree matches."""
    blocking = [
        constraint
        for group in trees.request.groups
        for constraint in _find_blocking_in_group(trees, tree, group.suffix)
    ]
    blocking += [
        constraint
        for constraint in trees.ungrouped
        if constraint.reason in ROOT_REASONS and not trees.matching([constraint], [])[tree]
    ]
    if not blocking:
        blocking = [
            constraint
            for constraint in trees.ungrouped
            if constraint.reason not in ROOT_REASONS
            and trees.matching(_omit_constraints(trees, [constraint]))[tree]
        ]
    yield from blocking
    yield from _find_jointly_blocking(trees, tree, _omit_constraints(trees, blocking))


def _find_jointly_blocking(
    trees: MatchingTrees, tree: int, constraints: Sequence[Constraint]
) -> Iterator[Constraint]:
    """Yield each constraint that a tree violates only in combination with the constraints before it."""
    kept_constraints = list(constraints)
    met_count = 0
    while not trees.matching(kept_constraints)[tree]:
        # Bisection finds the first violated constraint: additional constraints never add trees.
        first, end = met_count, len(kept_constraints)
        while end - first > 1:
            middle = (first + end) // 2
            if trees.matching(kept_constraints[:middle])[tree]:
                first = middle
            else:
                end = middle
        yield kept_constraints.pop(first)
        met_count = first


def _omit_constraints(trees: MatchingTrees, omitted: Collection[Constraint]) -> list[Constraint]:
    """Return the constraints without some of them, and without the amounts of omitted classes."""
    meaningless_amounts = {
        (constraint.group, constraint.value)
        for constraint in omitted
        if constraint.reason == Reason.NO_INVENTORY
    }
    return [
        constraint
        for constraint in trees.constraints
        if constraint not in omitted
        and not (
            constraint.reason in AMOUNT_REASONS
            and (constraint.group, constraint.value) in meaningless_amounts
        )
    ]


def _find_blocking_in_group(trees: MatchingTrees, tree: int, suffix: str) -> Iterator[Constraint]:
    """Yield the constraints of a group that no provider of a tree satisfies, each evaluated alone."""
    group_constraints = trees.of_group(suffix)
    if trees.matching(group_constraints, [suffix])[tree]:
        return
    missing_classes: set[str] = set()
    is_blocked = False
    for constraint in group_constraints:
        needs = trees.needed_by(constraint)
        if any(need.value in missing_classes for need in needs):
            if constraint.reason in AMOUNT_REASONS:
                continue
            needs = [need for need in needs if need.value not in missing_classes]
        is_met = trees.matching([*needs, constraint], [suffix])[tree]
        # If no provider has all classes, no condition of the group is to blame.
        if not is_met and trees.matching(needs, [suffix])[tree]:
            is_blocked = True
            if constraint.reason == Reason.NO_INVENTORY:
                missing_classes.add(constraint.value)
            yield constraint
    if is_blocked:
        return
    # Some provider satisfies each constraint, but none satisfies all: show the first that leaves none.
    for number, constraint in enumerate(group_constraints, 1):
        if not trees.matching(group_constraints[:number], [suffix])[tree]:
            yield constraint
            return


def _describe_providers(
    trees: MatchingTrees, tree: int, constraint: Constraint, unnamed_held: HeldUnits | None
) -> Iterator[dict[str, Any]]:
    lacks_room = constraint.reason in (Reason.CAPACITY, Reason.COMBINED_CAPACITY)
    forest, order = trees.forest, trees.forest.order
    amount_by_class = _find_requested_amounts(trees.request, constraint)
    root = int(order.roots[tree])
    for row in range(root, int(order.end[root])):
        provider = forest.provider(row)
        document = {"uuid": provider.uuid, "name": provider.name}
        for class_id, index in forest.inventory_indices(row):
            resource_class = forest.catalogue.class_by_id[class_id].name
            if resource_class not in amount_by_class:
                continue
            columns = forest.classes[class_id]
            free_units = columns.inventory(index).whole_capacity - int(columns.used.values[index])
            amounts = {
                "resource_class": resource_class,
                "requested": cap_count(amount_by_class[resource_class]),
                "free": cap_count(max(free_units, 0)),
            }
            if unnamed_held is not None and lacks_room:
                held_units = unnamed_held.get((int(forest.id.values[row]), class_id), 0)
                amounts["held"] = cap_count(held_units)
            yield document | amounts | _describe_attributes(forest, row, constraint)
        if constraint.attributes and not amount_by_class:
            # A constraint without amounts, such as one on the root, shows attributes alone.
            yield document | _describe_attributes(forest, row, constraint)
            if constraint.reason == Reason.ROOT_WHERE:
                return


def _describe_attributes(forest: Forest, row: int, constraint: Constraint) -> dict[str, Any]:
    if not constraint.attributes:
        return {}
    value_by_name = forest.attributes_of(row)
    return {
        "attributes": {
            name: value_by_name[name] for name in constraint.attributes if name in value_by_name
        }
    }


def _find_requested_amounts(
    request: CandidateRequest, constraint: Constraint
) -> Mapping[str, int]:
    if constraint.reason in (*AMOUNT_REASONS, Reason.NO_INVENTORY):
        amounts = {group.suffix: group.resources for group in request.groups}
        return {constraint.value: amounts[constraint.group or NO_GROUP][constraint.value]}
    groups = constraint.detail.get("groups", [constraint.group])
    suffixes = {str(suffix).removeprefix("!") for suffix in groups if suffix is not None}
    amount_by_class: dict[str, int] = {}
    for group in request.groups:
        if group.suffix in suffixes or (constraint.reason == Reason.COMBINED_CAPACITY):
            for name, amount in group.resources.items():
                amount_by_class[name] = amount_by_class.get(name, 0) + amount
    return amount_by_class


def _advise(trees: MatchingTrees) -> Iterator[str]:
    """Yield a sentence for each constraint without which some tree would match."""
    for constraint in trees.constraints:
        kept_constraints, groups = _omit_constraints(trees, [constraint]), None
        if _is_all_of_a_group(trees.request, constraint):
            kept_constraints = [
                each for each in kept_constraints if each.group != constraint.group
            ]
            groups = [
                group.suffix for group in trees.request.groups if group.suffix != constraint.group
            ]
        count = int(trees.matching(kept_constraints, groups).sum())
        if count:
            yield f"Without {constraint.text} {_format_tree_count(count)} would match."


def _is_all_of_a_group(request: CandidateRequest, constraint: Constraint) -> bool:
    """Return whether a group vanishes without a constraint: its only class.

    A suffixed group remains if it has other conditions or another parameter names it.
    """
    if constraint.reason != Reason.NO_INVENTORY:
        return False
    (group,) = [group for group in request.groups if group.suffix == constraint.group]
    has_other_demands = not group.conditions.is_empty or any(
        group.suffix in (*listed.inside, *listed.outside) for listed in request.same_subtree
    )
    has_other_demands |= any(group.suffix in compared.suffixes for compared in request.values)
    return len(group.resources) == 1 and (group.suffix == NO_GROUP or not has_other_demands)
