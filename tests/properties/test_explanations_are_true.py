# SPDX-License-Identifier: Apache-2.0
"""Explanations agree with the formal definition (contract page 97, section 3)."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.properties.test_candidates_match_the_definition import several, with_one_request
from tests.reference.blocking import matching_without, without_group
from tests.reference.candidates import Reference, TooManyError
from tests.reference.funnel import KINDS, Lenient, funnel
from tests.reference.keeping import emptied
from tests.reference.strategies import (
    cards,
    consuming,
    divided,
    extended_requests,
    nested,
    requests,
)
from tests.reference.world import Group, Request, uuid_of
from tests.tiers import many_worlds
from treeclaim.forest.explain.constraints import Reason, split_into_constraints
from treeclaim.forest.explain.explain import Focus, explain_request

REQUESTS_EACH = 5
MOST_COMBINATIONS = 2000


def nested_requests(world):
    """Requests from 1.29 on."""
    return st.one_of(requests(world), extended_requests(world)).map(nested)


QUESTIONS = {
    "competing groups": cards().map(with_one_request),
    "worlds": several(nested_requests, count=REQUESTS_EACH),
    "consumption": several(nested_requests, consuming, REQUESTS_EACH),
    "split amounts": divided().map(with_one_request),
}
SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in list(QUESTIONS)[1:]]


@pytest.mark.parametrize("kind", ["competing groups", *SLOW])
def test_explanations_match_the_reference(kind):
    @many_worlds(100)
    @given(QUESTIONS[kind])
    def check_each(question):
        check_all(*question)

    check_each()


def check_all(world, requests):
    forest = forest_of(world)
    for request in requests:
        result = explain_request(forest, candidate_request(request), Focus(nearest=50))
        try:
            check(world, request, result)
        except TooManyError:
            continue


def check(world, request, explanation):
    where = f"{world}\n{request}\n{explanation}"
    reference = Reference(world)
    matching = reference.matching(request, MOST_COMBINATIONS)
    trees = {"considered": len(reference.roots), "matching": len(matching)}
    assert explanation["trees"] == trees, where
    assert explanation["feasible"] == bool(matching), where
    empty = Reference(emptied(world)).matching(request, MOST_COMBINATIONS)
    assert explanation["fits_when_empty"] == bool(empty), where
    check_funnel(world, request, explanation, where)
    check_nearest(explanation, {uuid_of(name) for name in matching}, where)
    check_nothing_else_blocks(world, request, explanation, where)
    check_order_of_nearest(world, request, explanation, where)
    check_advice(world, request, explanation, where)


def check_funnel(world, request, explanation, where):
    expected = list(funnel(world, request, MOST_COMBINATIONS))
    assert len(explanation["funnel"]) == len(expected), (where, expected)
    remaining = explanation["trees"]["considered"]
    for step, (reason, group, before, after) in zip(explanation["funnel"], expected, strict=True):
        assert step["reason"] in set(Reason), where
        if step["reason"] != Reason.NO_COMMON_TREE:
            assert (step["reason"], step["group"]) == (reason, group), (where, expected)
        assert (step["trees_before"], step["trees_after"]) == (before, after), (where, expected)
        assert remaining == before
        remaining = after
    assert remaining == explanation["trees"]["matching"], where


def check_nearest(explanation, matching, where):
    constraints_by_root = {
        nearest["root_provider"]["uuid"]: nearest["blocked_by"]
        for nearest in explanation["nearest"]
    }
    assert not constraints_by_root.keys() & matching, where
    assert len(constraints_by_root) == explanation["trees"]["considered"] - len(matching), where
    for blocked in constraints_by_root.values():
        assert blocked, where


def check_nothing_else_blocks(world, request, explanation, where):
    """A tree matches once everything is gone that the explanation names."""
    for tree in explanation["nearest"]:
        blocking = [
            (constraint["reason"], constraint["group"], constraint["detail"])
            for constraint in tree["blocked_by"]
        ]
        matching = matching_without(world, request, blocking, MOST_COMBINATIONS)
        assert tree["root_provider"]["uuid"] in set(map(uuid_of, matching)), (where, tree)


def check_order_of_nearest(world, request, explanation, where):
    """Trees that satisfy more groups alone come first, of equal ones the older tree."""
    satisfied = [satisfying(world, request, group) for group in request.groups]
    ranked = sorted(
        Reference(world).roots, key=lambda root: -sum(root in trees for trees in satisfied)
    )
    shown_roots = [nearest["root_provider"]["uuid"] for nearest in explanation["nearest"]]
    assert shown_roots == [uuid_of(root) for root in ranked if uuid_of(root) in shown_roots], where


def satisfying(world, request, group):
    """Return the roots of the trees that match a request with this group alone."""
    judged = {(group.suffix, name, kind) for name in group.resources for kind in KINDS}
    can_split = frozenset() if group.suffix else request.can_split
    single_request = Request((group,), can_split=can_split, split_policy=request.split_policy)
    return Lenient(world, frozenset(judged), sums_groups=False).matching(
        single_request, MOST_COMBINATIONS
    )


def check_advice(world, request, explanation, where):
    """All constraints that alone stand in the way are named, and no others."""
    expected = [] if explanation["feasible"] else list(advice(world, request))
    assert explanation["advice"] == expected, (where, expected)
    event("advice" if expected else "no advice")


def advice(world, request):
    """The sentences of an explanation, where no tree matches."""
    for text, less, omitted in lessened(world, request):
        count = len(matching_without(world, less, omitted, MOST_COMBINATIONS))
        if count:
            yield f"Without {text} {count} {'tree' if count == 1 else 'trees'} would match."


def lessened(world, request):
    """Yield each constraint of the advice, the request, and the part to leave out."""
    consuming_classes = {name for provider in world.providers for name in provider.consumes}
    for constraint in split_into_constraints(
        candidate_request(request), consuming=consuming_classes
    ):
        reason, suffix, text = constraint.reason.value, constraint.group, constraint.text
        if reason == "no_inventory" and is_all_of_a_group(request, constraint):
            # The group has no constraints any more, so it is removed.
            yield text, without_group(request, suffix), []
        else:
            yield text, request, [(reason, suffix, constraint.detail)]


def is_all_of_a_group(request, constraint):
    """Return whether a group requests nothing but a class; the unsuffixed group needs a class."""
    named_suffixes = {
        named_suffix
        for inside, outside in request.same_subtree
        for named_suffix in (*inside, *outside)
    }
    named_suffixes.update(suffix for _, suffixes, _ in request.values for suffix in suffixes)
    (group,) = [group for group in request.groups if group.suffix == constraint.group]
    is_bare = group == Group(group.suffix, group.resources) and group.suffix not in named_suffixes
    return len(group.resources) == 1 and (is_bare or not group.suffix)
