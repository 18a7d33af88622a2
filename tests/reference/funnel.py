# SPDX-License-Identifier: Apache-2.0
"""The funnel of an explanation by brute force (contract page 97, section 3).

Constraints are added one after the other; the definition decides each time which trees match.
"""

from dataclasses import replace

from tests.reference.candidates import Reference, total
from tests.reference.world import Group, uuid_of

KINDS = ("units", "room", "consumed")
"""Kinds of comparisons of an amount."""


class Lenient(Reference):
    """The definition, where some comparisons of amounts with inventories are left out.

    `judged` holds (suffix, class, "units", "room" or "consumed") for each comparison that is made; of
    what an amount consumes none is, unless that of its own room is too.
    """

    def __init__(self, world, judged, *, sums_groups):
        super().__init__(world)
        self.judged = judged
        self.sums_groups = sums_groups
        self.suffix = ""
        self.splitting = frozenset()
        self.strict = {}
        self.limited = {}

    def suffixed(self, g, a):
        """Return the definition's result, with the comparisons of this group.

        The consumption of all its classes is added up, even where amounts of groups are not.
        """
        self.suffix = g.suffix
        judged = {
            c
            for c in g.resources
            if {(g.suffix, c, k) for k in ("room", "consumed")} <= self.judged
        }
        return [(A, V) for A, V in super().suffixed(g, a) if self.has_room(A, judged)]

    def unsuffixed(self, g, a, request, taken_amounts):
        """Return the definition's result, with the comparisons of this group.

        The consumption of the parts of one amount is added up, even where amounts of groups are not.
        """
        self.suffix = ""
        return [
            (A, V)
            for A, V in super().unsuffixed(g, a, request, taken_amounts)
            if all(self.has_room(A, {name}) for name in request.can_split)
        ]

    def has_room(self, A, classes):
        """Return whether amounts of some classes, and their consumption, fit by themselves."""
        alloc = {(p, c): n for p, c, n in A if c in classes}
        return all(self.used(q, d) + n <= self.cap(q, d) for (q, d), n in self.uses(alloc).items())

    def fit(self, p, c, n):
        """Return the definition's result without the comparisons that are left out."""
        stock = self.P[p].stock.get(c)
        if stock is None:
            return False
        units = super().has_units(p, c, n)
        room = self.used(p, c) + n <= self.cap(p, c)
        consumed = self.fit_consumed(p, c, n)
        kinds = {kind for kind in KINDS if (self.suffix, c, kind) in self.judged}
        return (
            (units or "units" not in kinds)
            and (room or "room" not in kinds)
            and (consumed or not {"room", "consumed"} <= kinds)
        )

    def has_units(self, p, c, n):
        """Return the definition's result, unless no units of a divided amount are judged."""
        return self.is_of_any_units(c) or super().has_units(p, c, n)

    def common_step(self, c, a):
        """Return the definition's result, unless no units of a divided amount are judged."""
        return 1 if self.is_of_any_units(c) else super().common_step(c, a)

    def is_of_any_units(self, c):
        """Return whether an amount is divided whatever the units of inventories are."""
        return c in self.splitting and ("", c, "units") not in self.judged

    def sum_taken(self, groups, sigma):
        """Return the definition's result for constraints on whole sums, if groups are added up at all."""
        return super().sum_taken(groups, self.wholly(groups, sigma)) if self.sums_groups else {}

    def _combined(self, request, groups, sigma):
        wholly = self.wholly(groups, sigma)
        self.strict = total(wholly)
        self.limited = total(
            (frozenset(part for part in A if g.suffix or not self.is_of_any_units(part[1])), V)
            for g, (A, V) in zip(groups, wholly, strict=True)
        )
        return super()._combined(request, groups, sigma)

    def wholly(self, groups, sigma):
        """The solutions of some groups, with no amounts but those that are judged wholly."""
        return [
            (frozenset(part for part in A if self.is_strict(g.suffix, part[1])), V)
            for g, (A, V) in zip(groups, sigma, strict=True)
        ]

    def is_strict(self, suffix, c):
        """Return whether all comparisons of an amount are made."""
        is_split = c in self.splitting and not suffix
        return is_split or {(suffix, c, kind) for kind in KINDS} <= self.judged

    def fits_together(self, alloc):
        """Return the definition's result for constraints on whole sums, if groups are added up at all."""
        return not self.sums_groups or super().fits_together(self.strict)

    def are_permitted(self, alloc):
        """Return the definition's result for amounts whose units are judged."""
        return super().are_permitted(self.limited)

    def anchored(self, request, most):
        """All candidates with the anchors from which they are reached."""
        self.splitting = request.can_split
        return super().anchored(request, most)


def funnel(world, request, most):
    """Yield (reason, group, trees before, trees after) of each step that rules something out."""
    before = sum(provider.parent is None for provider in world.providers)
    consuming = {name for provider in world.providers for name in provider.consumes}
    for reason, group, less, judged, sums_groups in prefixes(request, consuming):
        after = len(Lenient(world, judged, sums_groups=sums_groups).matching(less, most))
        if after < before:
            yield reason, group, before, after
        before = after
        if not after:
            return


def prefixes(request, consuming=frozenset()):
    """Yield reason, group and the request so far, for each constraint.

    Args:
        request: The request.
        consuming: The classes of which some inventory consumes others.
    """
    less = replace(
        request,
        groups=(),
        root=Group(),
        same_subtree=(),
        isolated=frozenset(),
        values=(),
        can_split=frozenset(),
    )
    judged = set()
    for reason, root in grown(Group(), request.root, "root_trait", "root_trait", "root_member_of"):
        less = replace(less, root=root)
        yield reason, None, less, frozenset(judged), False
    for text in request.root.where:
        less = replace(less, root=replace(less.root, where=(*less.root.where, text)))
        yield "root_where", None, less, frozenset(judged), False
    for group in request.groups:
        groups = less.groups
        group_so_far = Group(group.suffix)
        for reason, name, grown_group in stocked(group_so_far, group, request):
            group_so_far = grown_group
            if reason == "amount_unit":
                judged.add((group.suffix, name, "units"))
            if reason == "capacity":
                judged.add((group.suffix, name, "room"))
                if name not in consuming:
                    judged.add((group.suffix, name, "consumed"))
                if not group.suffix and name in request.can_split:
                    less = replace(less, can_split=less.can_split | {name})
            less = replace(less, groups=(*groups, group_so_far))
            yield reason, group.suffix, less, frozenset(judged), False
        for name in group.resources:
            judged.add((group.suffix, name, "consumed"))
            if name in consuming and (group.suffix or name not in request.can_split):
                yield "consumed", group.suffix, less, frozenset(judged), False
        for reason, grown_group in placed(group_so_far, group):
            group_so_far = grown_group
            less = replace(less, groups=(*groups, group_so_far))
            yield reason, group.suffix, less, frozenset(judged), False
        less = replace(less, groups=(*groups, group_so_far))
    for subtree_list in request.same_subtree:
        if len(subtree_list[0]) > 1 or subtree_list[1]:
            less = replace(less, same_subtree=(*less.same_subtree, subtree_list))
            yield "same_subtree", None, less, frozenset(judged), False
    if request.isolated:
        less = replace(less, isolated=request.isolated)
        yield "isolate", None, less, frozenset(judged), False
    for subtree_list in request.values:
        less = replace(less, values=(*less.values, subtree_list))
        yield "match" if subtree_list[2] else "distinct", None, less, frozenset(judged), False
    yield "combined_capacity", None, less, frozenset(judged), True


def stocked(bare, group, request):
    """Add the classes of a group: that there is any, its units, and its room."""
    for name, amount in group.resources.items():
        bare = replace(bare, resources={**bare.resources, name: amount})
        yield "no_inventory", name, bare
        reasons = ["amount_unit", "capacity"]
        # Units do not constrain an amount that is not divided yet.
        is_split = not group.suffix and name in request.can_split
        for reason in reversed(reasons) if is_split else reasons:
            yield reason, name, bare


def placed(bare, group):
    """Add the conditions of a group."""
    if group.in_tree:
        bare = replace(bare, in_tree=group.in_tree)
        yield "not_in_tree", bare
    if group.in_subtree:
        bare = replace(bare, in_subtree=group.in_subtree)
        yield "not_in_subtree", bare
    names = ("trait_missing", "trait_forbidden", "not_member_of", "forbidden_member_of")
    for reason, grown_group in grown(bare, group, *names):
        bare = grown_group
        yield reason, bare
    for text in group.where:
        bare = replace(bare, where=(*bare.where, text))
        yield "where", bare


def grown(bare, group, required, forbidden, member_of, not_member_of=None):
    """Add traits and aggregates one after the other."""
    for traits in group.required:
        bare = replace(bare, required=(*bare.required, traits))
        yield required, bare
    for traits in sorted(group.forbidden):
        bare = replace(bare, forbidden=bare.forbidden | {traits})
        yield forbidden, bare
    for traits in group.member_of:
        bare = replace(bare, member_of=(*bare.member_of, traits))
        yield member_of, bare
    for traits in sorted(group.not_member_of, key=uuid_of):
        bare = replace(bare, not_member_of=bare.not_member_of | {traits})
        yield not_member_of or member_of, bare
