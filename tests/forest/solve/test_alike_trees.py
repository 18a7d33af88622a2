# SPDX-License-Identifier: Apache-2.0
"""Where each tree is searched alone, trees that are alike are searched once, and no others are taken for alike."""

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from tests.forest.building import EndingBudget, wide_trees, with_links
from tests.forest.building import forest_of as forest_of_records
from tests.properties.forest_adapter import candidate_request, forest_of, lowered, property_of
from tests.reference.expressions import attributes
from tests.reference.strategies import (
    consuming,
    extended_requests,
    requests,
    seldom,
    worlds,
)
from tests.reference.world import World
from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.solve.combine import find_matching_anchors
from treeclaim.forest.solve.problem import relate
from treeclaim.model.provider import Condition, Effect
from treeclaim.model.request import (
    CandidateRequest,
    Order,
    RequestGroup,
    SearchOptions,
    Term,
    TermName,
)


def related(world, request, budget=UNBOUNDED):
    return relate(forest_of(world), candidate_request(request), SearchOptions(), budget)


@st.composite
def repeated(draw):
    """A world in which each tree is there three times, at times with other amounts, traits or attributes."""
    world = draw(worlds().flatmap(consuming))
    copies = []
    for number in range(3):
        busier = draw(st.sampled_from([0, 0, 1]))

        def named(name, number=number):
            return f"{name}.{number}" if name and number else name

        copies += [
            replace(
                provider,
                name=named(provider.name),
                parent=named(provider.parent),
                traits=draw(seldom(st.just(frozenset()), provider.traits)),
                attributes=draw(seldom(attributes, provider.attributes)),
                stock={n: replace(s, used=s.used + busier) for n, s in provider.stock.items()},
                consumes={
                    name: tuple(
                        (named(other), kind, draw(seldom(st.integers(1, 3), amount)))
                        for other, kind, amount in uses
                    )
                    for name, uses in provider.consumes.items()
                },
            )
            for provider in world.providers
        ]
    kinds = st.one_of(requests(world), extended_requests(world))
    return World(tuple(copies)), [
        replace(draw(kinds), nested=True, can_split=frozenset()) for _ in range(5)
    ]


def test_alike_trees_with_many_combinations_are_searched_once():
    suffixes = [f"_{number}" for number in range(6)]
    groups = tuple(RequestGroup(suffix, {"CUSTOM_DEVICE": 1}) for suffix in suffixes)
    request = CandidateRequest(groups, isolated=frozenset(suffixes))
    # One step for each tree, to find its kind, and the search of one tree.
    budget = EndingBudget(400, everywhere=True)
    problem = relate(forest_of_records(wide_trees(300, 6)), request, SearchOptions(), budget)
    assert len(find_matching_anchors(problem)) == 300


@pytest.mark.parametrize("order", [None, Order((Term(TermName.SPREAD),))], ids=["usual", "spread"])
def test_tree_whose_condition_begins_with_the_first_use_is_of_its_own_kind(order):
    groups = tuple(RequestGroup(f"_{number}", {"CUSTOM_DEVICE": 1}) for number in range(2))
    request = CandidateRequest(groups, isolated=frozenset(("_0", "_1")), order=order)
    condition = Condition("CLEANING", Effect.NO_NEW, on_use=True, began=False)
    records = [
        with_links(each, conditions=(condition,)) if each.id == 6 else each
        for each in wide_trees(3, 4)
    ]
    with lowered({"solve.tree_kinds.MANY_COMBINATIONS": 2}):
        limits = CapacityLimits(None, 0)
        counted = count_capacity(forest_of_records(records), request, limits, Budget())
    assert counted["fits"] == 2 + 1 + 2


@pytest.mark.slow
@property_of(100, repeated())
def test_trees_judged_together_match_single_judgements(question):
    world, queries = question
    for request in queries:
        problem = related(world, request)
        roots = problem.forest.order.roots
        alone = []
        for tree in range(len(roots)):
            only = roots == roots[tree]
            allowed = only if problem.allowed is None else only & problem.allowed
            alone += find_matching_anchors(replace(problem, allowed=allowed)).tolist()
        assert find_matching_anchors(problem).tolist() == alone, f"{world}\n{request}"
