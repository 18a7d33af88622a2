# SPDX-License-Identifier: Apache-2.0
"""Where something is consumed, trees that are alike are searched once, and no others are taken for alike."""

import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.forest_adapter import LOWERED, candidate_request, forest_of, lowered
from tests.reference.strategies import consuming, extended_requests, requests, worlds
from tests.reference.world import Group, Provider, Request, Stock, World
from tests.tiers import many_examples
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.solve.combine import matching_anchors
from treeclaim.forest.solve.relate import relate
from treeclaim.model.request import SearchOptions

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "100"))
MIG = "CUSTOM_MIG_4G_40GB"
SLICES = "CUSTOM_GPU_SLICE"
TWO = Request((Group("_1", {MIG: 1}), Group("_2", {MIG: 1})))


def host(name, free=(7, 0), amount=4, consumed=None, attributes=None, traits=None, nested=False):
    """A host of some cards, which say how many slices are free, and which card's their profile takes."""
    cards = [
        Provider(
            f"{name} gpu{number}",
            f"{name} gpu0" if nested and number else name,
            {SLICES: Stock(8, used=8 - slices), MIG: Stock(2)},
            traits=frozenset(traits[number] if traits else ()),
            attributes=attributes[number] if attributes else {},
            consumes={MIG: ((f"{name} gpu{(consumed or range(9))[number]}", SLICES, amount),)},
        )
        for number, slices in enumerate(free)
    ]
    return [Provider(name, None, {"VCPU": Stock(8)}), *cards]


def cloud(*hosts):
    return World(tuple(provider for providers in hosts for provider in providers))


def related(world, request, budget=UNBOUNDED):
    return relate(forest_of(world), candidate_request(request), SearchOptions(), budget)


def names_of_matching(world, request):
    roots = [provider.name for provider in world.providers if provider.parent is None]
    problem = related(world, request)
    names = [problem.forest.provider(int(row)).name for row in range(problem.forest.row_count)]
    found = [names[position] for position in matching_anchors(problem)]
    assert set(found) <= set(roots)
    return found


FAST, SLOW = "CUSTOM_FAST", "CUSTOM_SLOW"
SAME = replace(TWO, values=(("numa", ("_1", "_2"), True),))
TOGETHER = replace(TWO, same_subtree=((("_1", "_2"), ()),))
APART = Request(
    (
        Group("_1", {MIG: 1}, required=(frozenset({FAST}),)),
        Group("_2", {MIG: 1}, required=(frozenset({SLOW}),)),
        Group("_3", {MIG: 1}),
    ),
    isolated=frozenset({"_1", "_2", "_3"}),
)
NEAR = Request(
    (Group("_1", {MIG: 1}, required=(frozenset({FAST}),)), Group("_2", {MIG: 1})),
    values=SAME.values,
)
_NODES = {"attributes": ({"numa": 0}, {"numa": 1}), "traits": ((FAST,), ())}
COVERING = Request(
    (
        Group("", {"VCPU": 1, MIG: 2}, required=(frozenset({FAST}),)),
        Group("_1", {MIG: 1}),
    )
)


@pytest.mark.parametrize(
    ("asked", "suits", "does_not"),
    [
        (TWO, {"free": (8,)}, {"free": (7,)}),
        (TWO, {"free": (7,), "amount": 3}, {"free": (7,), "amount": 4}),
        (TWO, {"free": (7, 7)}, {"free": (7, 7), "consumed": (0, 0)}),
        (TWO, {"free": (7, 7)}, {"free": (7, 7), "consumed": (1, 1)}),
        (
            SAME,
            {"free": (4, 4), "attributes": ({"numa": 0}, {"numa": 0})},
            {"free": (4, 4), "attributes": ({"numa": 0}, {"numa": 1})},
        ),
        (NEAR, {"free": (8, 7), **_NODES}, {"free": (7, 7), **_NODES}),
        (TOGETHER, {"free": (4, 4), "nested": True}, {"free": (4, 4)}),
        (
            APART,
            {"free": (8, 8, 8), "amount": 1, "traits": ((FAST,), (SLOW,), ())},
            {"free": (8, 8, 8), "amount": 1, "traits": ((FAST, SLOW), (), ())},
        ),
        (
            COVERING,
            {"free": (4, 8), "traits": ((), (FAST,))},
            {"free": (4, 8), "traits": ((FAST,), ())},
        ),
    ],
    ids=[
        "free",
        "amount",
        "whose",
        "of which",
        "values",
        "values and amounts",
        "subtrees",
        "places",
        "traits",
    ],
)
@pytest.mark.parametrize("first", [True, False], ids=["it comes first", "it comes last"])
def test_relevant_differences_separate_trees(asked, suits, does_not, first):
    pairs = [("host0", suits), ("host1", does_not), ("host2", suits), ("host3", does_not)]
    pairs = pairs if first else [(f"host{3 - at}", one) for at, (_, one) in enumerate(pairs)][::-1]
    world = cloud(*(host(name, **given) for name, given in pairs))
    expected = [name for name, given in pairs if given is suits]
    assert names_of_matching(world, asked) == expected


@st.composite
def repeated(draw):
    """A world in which each tree is there up to three times, at times with other amounts in use."""
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
                stock={n: replace(s, used=s.used + busier) for n, s in provider.stock.items()},
                consumes={
                    name: tuple((named(other), *rest) for other, *rest in uses)
                    for name, uses in provider.consumes.items()
                },
            )
            for provider in world.providers
        ]
    kinds = st.one_of(requests(world), extended_requests(world))
    return World(tuple(copies)), [
        replace(draw(kinds), nested=True, can_split=frozenset()) for _ in range(5)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{}, LOWERED], ids=["usual", "lowered"])
@many_examples(WORLDS)
@given(question=repeated())
def test_trees_judged_together_match_single_judgements(sizes, question):
    world, asked = question
    with lowered(sizes):
        for request in asked:
            problem = related(world, request)
            roots = problem.forest.order.roots
            alone = []
            for tree in range(len(roots)):
                only = roots == roots[tree]
                allowed = only if problem.allowed is None else only & problem.allowed
                alone += matching_anchors(replace(problem, allowed=allowed)).tolist()
            assert matching_anchors(problem).tolist() == alone, f"{world}\n{request}"
