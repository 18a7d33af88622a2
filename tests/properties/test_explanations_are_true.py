# SPDX-License-Identifier: Apache-2.0
"""What an explanation says is what the formal definition has (contract page 97, section 3)."""

import os
import re
from dataclasses import replace

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.candidates import Reference, TooManyError
from tests.reference.funnel import Lenient, funnel
from tests.reference.strategies import extended_requests, requests, worlds
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.explain.explain import Focus, explained
from treeclaim.forest.solve.existence import matching_anchors
from treeclaim.forest.solve.relate import relate
from treeclaim.model.reasons import Reason
from treeclaim.model.request import SearchOptions

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "100"))
REQUESTS_EACH = 5
MOST_COMBINATIONS = 2000
SENTENCE = re.compile(r"Without (.+) (\d+) trees? would match\.")


@st.composite
def questions(draw):
    world = draw(worlds())
    kinds = st.one_of(requests(world), extended_requests(world))
    return world, [replace(draw(kinds), nested=True) for _ in range(REQUESTS_EACH)]


@settings(
    max_examples=WORLDS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(questions())
def test_explanations_are_true(question):
    world, asked = question
    forest = forest_of(world)
    for request in asked:
        told = explained(forest, candidate_request(request), Focus(nearest=50))
        try:
            check(world, request, told)
        except TooManyError:
            continue


def check(world, request, told):
    where = f"{world}\n{request}\n{told}"
    matching = Reference(world).matching(request, MOST_COMBINATIONS)
    roots = [one for one in world.providers if one.parent is None]
    assert told["trees"] == {"considered": len(roots), "matching": len(matching)}, where
    assert told["feasible"] == bool(matching), where
    empty = Reference(emptied(world)).matching(request, MOST_COMBINATIONS)
    assert told["fits_when_empty"] == bool(empty), where
    check_funnel(world, request, told, where)
    check_nearest(told, {uuid_of(one) for one in matching}, where)
    check_nearest_come_first(world, request, told, where)
    check_advice(world, request, told, where)


def check_funnel(world, request, told, where):
    expected = list(funnel(world, request, MOST_COMBINATIONS))
    assert len(told["funnel"]) == len(expected), (where, expected)
    left = told["trees"]["considered"]
    for step, (reason, group, before, after) in zip(told["funnel"], expected, strict=True):
        assert step["reason"] in set(Reason), where
        if step["reason"] != Reason.NO_COMMON_TREE:
            assert (step["reason"], step["group"]) == (reason, group), (where, expected)
        assert (step["trees_before"], step["trees_after"]) == (before, after), (where, expected)
        assert left == before
        left = after
    assert left == told["trees"]["matching"], where


def check_nearest(told, matching, where):
    shown = {one["root_provider"]["uuid"]: one["blocked_by"] for one in told["nearest"]}
    assert not shown.keys() & matching, where
    assert len(shown) == told["trees"]["considered"] - len(matching), where
    for blocked in shown.values():
        assert blocked, where


def check_nearest_come_first(world, request, told, where):
    names = {uuid_of(one.name): one.name for one in world.providers}
    shown = [names[one["root_provider"]["uuid"]] for one in told["nearest"]]
    distances = [
        (-places_met(world, request, root), -len(classes_met(world, request, root)))
        for root in shown
    ]
    assert distances == sorted(distances), (where, distances)


def places_met(world, request, root):
    """How many lists of places a tree holds a provider of, or is served from."""
    tree = tree_of(world, root)
    met = 0
    for group in request.groups:
        asked = Group(group.suffix, group.resources)
        for named, bare in (
            (group.in_tree, replace(asked, in_tree=group.in_tree)),
            (group.in_subtree, replace(asked, in_subtree=group.in_subtree)),
        ):
            if named:
                served = Lenient(world, frozenset(), sums_groups=False).matching(Request((bare,)))
                met += bool(tree & set(named)) or root in served
    return met


def classes_met(world, request, root):
    """The groups and classes of which a tree has, or is lent, some inventory."""
    return {
        (group.suffix, name)
        for group in request.groups
        for name, amount in group.resources.items()
        if root
        in Lenient(world, frozenset(), sums_groups=False).matching(
            Request((Group(group.suffix, {name: amount}),))
        )
    }


def tree_of(world, root):
    """The names of a tree's providers."""
    parents = {one.name: one.parent for one in world.providers}

    def top(name):
        return name if parents[name] is None else top(parents[name])

    return {one.name for one in world.providers if top(one.name) == root}


def check_advice(world, request, told, where):
    if told["feasible"]:
        assert not told["advice"], where
        return
    for sentence in told["advice"]:
        text, count = SENTENCE.fullmatch(sentence).groups()
        less = without(request, text)
        if less is None:
            event("advice that is not a parameter")
            continue
        event("advice")
        found = Reference(world).matching(less, MOST_COMBINATIONS)
        assert len(found) == int(count) > 0, (where, sentence)


def emptied(world):
    """The same world with nothing allocated."""
    return World(
        tuple(
            replace(one, stock={name: replace(s, used=0) for name, s in one.stock.items()})
            for one in world.providers
        )
    )


def without(request, text):
    """A request without a parameter, as the advice writes it; None for other advice."""
    name, _, value = text.partition("=")
    if name == "same_subtree":
        suffixes = value.split(",")
        inside = {one for one in suffixes if not one.startswith("!")}
        outside = {one[1:] for one in suffixes if one.startswith("!")}
        lists = [
            one for one in request.same_subtree if (set(one[0]), set(one[1])) != (inside, outside)
        ]
        return replace(request, same_subtree=tuple(lists))
    if name in ("group_policy", "isolate"):
        return replace(request, isolated=frozenset())
    if name.startswith("root_"):
        return replace(request, root=lacking(request.root, name.removeprefix("root_"), value))
    match = re.fullmatch(r"(required|member_of|in_tree|in_subtree)(_.)?", name)
    if match is None:
        return None
    suffix = match[2] or ""
    groups = [
        lacking(one, match[1], value) if one.suffix == suffix else one for one in request.groups
    ]
    return replace(request, groups=tuple(groups))


def lacking(group, name, value):
    """A group without one value of a parameter."""
    if name in ("in_tree", "in_subtree"):
        return replace(group, **{name: ()})
    negative, positive = {
        "required": ("forbidden", "required"),
        "member_of": ("not_member_of", "member_of"),
    }[name]
    if value.startswith("!"):
        left = {one for one in getattr(group, negative) if value[1:] not in (one, uuid_of(one))}
        return replace(group, **{negative: frozenset(left)})
    wanted = set(value.removeprefix("in:").split(","))
    sets = [
        one
        for one in getattr(group, positive)
        if one != wanted and {uuid_of(name) for name in one} != wanted
    ]
    return replace(group, **{positive: tuple(sets)})


def test_every_tree_that_matches_is_found_among_many_candidates():
    """Existence is judged without drawing all candidates, also where groups compete."""
    world, request = wide_world()
    forest = forest_of(world)
    found = matching_anchors(
        relate(forest, candidate_request(request), SearchOptions(), UNBOUNDED)
    )
    assert len(found) == len(Reference(world).matching(request))


def wide_world():
    providers = []
    for tree in range(3):
        providers.append(Provider(f"root{tree}"))
        providers += [
            Provider(f"child{tree}{one}", f"root{tree}", {"FPGA": Stock(1)})
            for one in range(tree + 2)
        ]
    groups = tuple(Group(f"_{one}", {"FPGA": 1}) for one in range(3))
    return World(tuple(providers)), Request(groups)
