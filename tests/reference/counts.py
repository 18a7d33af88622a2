# SPDX-License-Identifier: Apache-2.0
"""The count of a request in a tree by brute force: contract page 101, definitions, test by test."""

from collections import Counter
from dataclasses import replace

from tests.reference.candidates import Reference


def count_in_tree(world, request, tree):
    """The greatest x that passes the three tests, for the tree with this root."""
    reference = Reference(world)
    serving = {}
    for group in request.groups:
        for part in parts_of(group):
            serving[group.suffix, part] = [
                p for p in reference.P if may_serve(reference, request, group, part, p, tree)
            ]
    if not third_test(reference, request, serving, tree):
        return 0
    most = sum(reference.free(p, c) for p, provider in reference.P.items() for c in provider.stock)
    x = 0
    while x < most and passes(reference, request, serving, x + 1):
        x += 1
    return x


def parts_of(group):
    """The classes of a part: one class of the unsuffixed group, or all of a suffixed group."""
    if group.suffix:
        return [tuple(sorted(group.resources))]
    return [(c,) for c in group.resources]


def may_serve(reference, request, group, part, p, tree):
    """Return whether a provider may serve a part, whatever is free."""
    for c in part:
        if c not in reference.P[p].stock:
            return False
        if c not in request.can_split and not reference.has_units(p, c, group.resources[c]):
            return False
    if group.suffix:
        return reference.may_serve(p, group, tree)
    return all(reference.may_use(p, c, tree, group) for c in part)


def third_test(reference, request, serving, tree):
    """Return whether the root, the groups without resources, and the traits of the unsuffixed group match."""
    if not reference.may_be_root(tree, request.root):
        return False
    for group in request.groups:
        if not group.resources and group.suffix and not serving[group.suffix, ()]:
            return False
        if not group.suffix:
            providers = {
                p for (suffix, _), servers in serving.items() if not suffix for p in servers
            }
            if not all(any(s & reference.traits(p) for p in providers) for s in group.required):
                return False
    return True


def passes(reference, request, serving, x):
    """Return whether x passes the first and the second test."""
    amounts, providers = Counter(), {}
    for group in request.groups:
        for part in parts_of(group):
            for c in part:
                amounts[c] += group.resources[c]
                providers.setdefault(c, set()).update(serving[group.suffix, part])
    for c, amount in amounts.items():
        if x * amount > sum(reference.free(p, c) for p in providers[c]):
            return False
    for group in request.groups:
        for part in parts_of(group):
            if not group.suffix and part[0] in request.can_split:
                continue
            if not part:
                continue
            alike = [
                other
                for other in request.groups
                if group.suffix and replace(other, suffix=group.suffix) == group
            ] or [group]
            are_apart = len(alike) > 1 and all(other.suffix in request.isolated for other in alike)
            fits = [
                min(reference.free(p, c) // group.resources[c] for c in part)
                for p in serving[group.suffix, part]
            ]
            if len(alike) * x > sum(min(fit, x) if are_apart else fit for fit in fits):
                return False
    return True


def count_everywhere(world, request):
    """The sum of the counts in all trees."""
    return sum(count_in_tree(world, request, tree) for tree in Reference(world).roots)
