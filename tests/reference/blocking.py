# SPDX-License-Identifier: Apache-2.0
"""A request without some of its constraints, by the definition (contract page 97, section 3)."""

from dataclasses import replace

from tests.reference.funnel import KINDS, Lenient
from tests.reference.world import uuid_of

COMPARISONS = {"amount_unit": "units", "capacity": "room", "consumed": "consumed"}
"""By reason: which comparison of an amount it is."""


def matching_without(world, request, constraints, most):
    """Return the roots whose trees match without some constraints; see `anchored_without`."""
    return {anchor for anchor, _ in anchored_without(world, request, constraints, most)}


def anchored_without(world, request, constraints, most):
    """Return all candidates with their anchors, without some constraints.

    Args:
        world: The searched world.
        request: The request.
        constraints: The constraints of an explanation: reason, group, detail.
        most: The maximum number of combinations to try.
    """
    judged = {
        (group.suffix, name, kind)
        for group in request.groups
        for name in group.resources
        for kind in KINDS
    }
    sums_groups = True
    for reason, suffix, detail in constraints:
        if reason == "combined_capacity":
            sums_groups = False
        elif reason in COMPARISONS:
            name = detail["resource_class"]
            judged.discard((suffix, name, COMPARISONS[reason]))
            if reason != "amount_unit" and not suffix and name in request.can_split:
                request = replace(request, can_split=request.can_split - {name})
                judged -= {(suffix, name, kind) for kind in KINDS}
        else:
            request = without(request, reason, suffix, detail)
    # A group without a suffix and without resources does not count.
    counted_groups = tuple(group for group in request.groups if group.suffix or group.resources)
    request = replace(request, groups=counted_groups)
    return Lenient(world, frozenset(judged), sums_groups=sums_groups).anchored(request, most)


def without(request, reason, suffix, detail):
    """A request without a constraint that is no comparison of amounts."""
    if reason == "same_subtree":
        lists = list(request.same_subtree)
        group_lists = [
            [*inside, *(f"!{suffix}" for suffix in outside)] for inside, outside in lists
        ]
        del lists[group_lists.index(list(detail["groups"]))]
        return replace(request, same_subtree=tuple(lists))
    if reason in ("match", "distinct"):
        values = list(request.values)
        values.remove((detail["attribute"], tuple(detail["groups"]), reason == "match"))
        return replace(request, values=tuple(values))
    if reason == "isolate":
        return replace(request, isolated=frozenset())
    if suffix is None:
        return replace(request, root=less(request.root, reason, detail))
    return replace(
        request,
        groups=tuple(
            less(group, reason, detail) if group.suffix == suffix else group
            for group in request.groups
        ),
    )


def less(group, reason, detail):
    """A group, or the root, without a constraint."""
    if reason == "no_inventory":
        remaining_amounts = {
            n: a for n, a in group.resources.items() if n != detail["resource_class"]
        }
        return replace(group, resources=remaining_amounts)
    if reason == "not_in_tree":
        if "forbidden_providers" in detail:
            return replace(group, not_in_tree=())
        return replace(group, in_tree=())
    if reason == "not_in_subtree":
        return replace(group, in_subtree=())
    if "where" in reason:
        where = list(group.where)
        where.remove(detail["expression"])
        return replace(group, where=tuple(where))
    names = ("forbidden", "required") if "trait" in reason else ("not_member_of", "member_of")
    return lacking(group, *names, reason, detail)


def lacking(group, negative, positive, reason, detail):
    """A group without one set of names, or without one name that it forbids."""
    spelling = str if positive == "required" else uuid_of
    ((key, value),) = detail.items()
    if "forbidden" in f"{reason} {key}":
        remaining_names = {name for name in getattr(group, negative) if spelling(name) != value}
        return replace(group, **{negative: frozenset(remaining_names)})
    sets = list(getattr(group, positive))
    wanted_names = {value} if isinstance(value, str) else set(value)
    sets.remove(next(names for names in sets if set(map(spelling, names)) == wanted_names))
    return replace(group, **{positive: tuple(sets)})


def without_group(request, suffix):
    """A request without a whole group, which no list of same_subtree names."""
    return replace(
        request,
        groups=tuple(group for group in request.groups if group.suffix != suffix),
        isolated=request.isolated - {suffix},
        values=tuple(value for value in request.values if suffix not in value[1]),
    )
